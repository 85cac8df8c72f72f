"""What agents say to each other, without clock, sockets or randomness of its own.

wire         the bytes of a message, its signature, and the gate for what arrives
membership   what is known about each node, and which news replaces which
suspicion    how long a node that does not answer stays suspect
gossip       news that this agent still has to pass on
detector     probes: SWIM with the additions of Lifeguard
discovery    hello, and fetching the table of another node
agent        one agent made of these
traffic      what they may send, in bytes per second
simulation   many agents on a simulated clock and a network that loses messages

Das, Gupta, Motivala: SWIM: Scalable Weakly-consistent Infection-style Process Group Membership Protocol, DSN 2002.
Dadgar, Phillips, Currey: Lifeguard: Local Health Awareness for More Accurate Failure Detection, DSN-W 2018.
"""
