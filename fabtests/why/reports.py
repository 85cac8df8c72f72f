"""Reports of imaginary ranks, for tests of cluster-why without machines."""
import os
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.realpath(__file__)), "..", "..", "util"))
from cluster_why_lib import graph, sentence  # noqa: E402
from cluster_why_lib.report import ANY, Launcher, Node, Operation, Peer, Process  # noqa: E402, F401

MESSAGE, RECEIVE = "to send a message that matches it", "to post a receive that matches it"
PER_NODE = 4


def node_number(rank):
    return rank // PER_NODE + 1


def address(rank):
    return f"10.0.0.{node_number(rank)}:{5000 + rank}"


def receive(rank, seconds, **more):
    """A receive of a message from a rank; None: from any."""
    return Operation("receive", ANY if rank is None else address(rank), MESSAGE, **{"bytes": 8, "tag": 5, "age_s": seconds, **more})


def send(rank, seconds, **more):
    return Operation("send", address(rank), RECEIVE, **{"bytes": 1 << 20, "tag": 5, "age_s": seconds, **more})


def process(rank, *operations, size=16, **more):
    """A rank that sleeps in no call of its own; it makes calls unless `no_call_s` says otherwise."""
    values = {"command": "solver", "job": "42", "state": "R", "addresses": [address(rank)], "operations": list(operations)}
    return Process(f"node{node_number(rank)}", 1000 + rank, rank=rank, size=size, **{**values, **more})


def nodes(count=4, **down):
    """Nodes that answered; `node3={...}` says what is different of one."""
    made = [Node(f"node{number}", [f"10.0.0.{number}"]) for number in range(1, count + 1)]
    return [node._replace(**down.get(node.name, {})) for node in made]


def explained(processes, of_nodes=None, span_s=0.1):
    """The graph and the causes."""
    made = graph.Graph(processes, nodes() if of_nodes is None else of_nodes)
    return made, graph.causes(made, span_s)


def lines(processes, of_nodes=None, span_s=0.1):
    """What the user reads."""
    made, found = explained(processes, of_nodes, span_s)
    return sentence.answer(made, found)
