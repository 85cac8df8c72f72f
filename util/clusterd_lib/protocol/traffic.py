"""What an agent may send, in bytes per second, IP and UDP headers and the signature included.

At rest, in a cluster in which nothing happens. The terms, for each second:
    1/0.5 + 1/1.0 probes and as many answers, with names of up to 12 characters        6 x 104 B
    1/100 of the probes is lost twice over and goes through three helpers              small, one probe more
    a hello on each of two rails every max(5, 0.3 n) seconds                           2 x 214 B / max(5, 0.3 n)
    one page of the table every 30 x max(1, n/100) seconds, and one that another node asks for
In trouble, when many nodes change at once, gossip comes on top: three messages of eight records every tenth of a
second, until the news has reached all.
"""
from . import wire
from .agent import GOSSIP_FANOUT, GOSSIP_PERIOD, GOSSIP_RECORDS
from .detector import PERIOD
from .discovery import HELLO_MIN, HELLO_PER_NODE, PULL_BYTES, REPAIR_SECONDS

_PROBE_BYTES = 104
_RECORD_BYTES = 110
_LOSS_MARGIN = 1.25


def at_rest(nodes, rails=2):
    """Bytes per second of the membership protocol, without links (measure/links.py) and cards (survey.py)."""
    probes = (1 / PERIOD + 1 / (2 * PERIOD)) * 2 * _PROBE_BYTES * _LOSS_MARGIN
    hello = rails * (_PROBE_BYTES + _RECORD_BYTES) / max(HELLO_MIN, HELLO_PER_NODE * nodes) * 1.34
    pages = (PULL_BYTES + wire.SIGNATURE_BYTES + wire.DATAGRAM_BYTES_MAX + 2 * wire.OVERHEAD_BYTES) / (REPAIR_SECONDS * max(1.0, nodes / 100))
    # False suspicions, of which each passes all nodes with its refutation.
    news = 0.05 * nodes
    return probes + hello + pages + news


def in_trouble(nodes, rails=2):
    gossip = GOSSIP_FANOUT / GOSSIP_PERIOD * (_PROBE_BYTES + GOSSIP_RECORDS * _RECORD_BYTES)
    piggyback = (1 / PERIOD + 1 / (2 * PERIOD)) * 2 * (1 + 4) * 5 * _RECORD_BYTES
    return at_rest(nodes, rails) + gossip + piggyback
