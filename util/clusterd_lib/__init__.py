"""clusterd, the agent of a node: it knows the other nodes, measures the links to them, and shows both.

protocol/     what agents say to each other; no clock, no sockets
measure/      rails, links, load, endpoints: what this node finds out
daemon        one process: protocol and measuring on an event loop
transport     UDP sockets, one a rail, and multicast
query         questions over TCP between agents, signed, and over a local socket
view          the cluster as one value, for programs
remote        commands that users start on other nodes, as themselves

Nothing in the provider needs it. It asks running endpoints through cluster-info and sends little (protocol/traffic.py).
"""
