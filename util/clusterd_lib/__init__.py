"""clusterd, the agent of a node: it knows the other nodes, measures the links to them, and shows both.

protocol/     the messages between agents; no clock, no sockets
measure/      rails, links, load, endpoints: what this node finds out
daemon        one process: protocol and measuring on an event loop
transport     UDP sockets, one a rail, and multicast
query         signed queries over TCP between agents, and queries over a local socket
view          the cluster as one value, for programs
remote        commands that users start on other nodes, as themselves
job_group     the processes of a job on this node: start, and end with the job
passed_sockets  what systemd has opened before any user could
audit         a line for each login, job and action

Nothing in the provider needs the agent. It queries running endpoints through cluster-info and sends little
(protocol/traffic.py).
"""
