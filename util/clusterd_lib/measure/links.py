"""Round trip, loss and path MTU of every rail of this node to the same rail of every other node.

An echo leaves for one link after the other, each about once a second in a small cluster, and never more than
ECHOES_PER_SECOND in a large one. After a lost echo the link sends another at once. After three lost in a row it is
down, and the agents use another rail until an echo returns. Loss and round trip are those of the last 64 echoes,
smoothed as RFC 6298 does.

An echo that has no answer after ANSWER_TIMEOUT puts the link in doubt. It counts in the loss only after LATE, because
a busy node answers late although its link loses nothing. The round trip leaves late answers out: they measure the node.

Every 16th echo of a link is as long as its rail's MTU allows and may not be fragmented. If long ones are lost while
short ones arrive, the agent searches for the path MTU with shorter ones (RFC 8899). It begins again after
RAISE_PERIOD, because the path may have changed, or the long ones were lost by chance.

Timers: the next echo, and the answer to each.
"""
from dataclasses import dataclass, field

ECHOES_PER_SECOND = 8.0
LINK_PERIOD = 1.0
ANSWER_TIMEOUT = 0.3
LATE = 5.0
LOST_IN_A_ROW = 3
WINDOW = 64
LONG_EVERY = 16
LONG_TRIES = 3
RAISE_PERIOD = 600.0
SIZES = (9000, 4096, 1500, 1400, 1280, 576)
HEADERS = 28  # of IPv4 and UDP
ECHO_BYTES = 80  # of a short one, signed, with names of up to 12 characters
UNKNOWN, UP, DOWN = "unknown", "up", "down"


def bytes_per_second(mtu):
    """Upper bound for echoes and answers together, with IP and UDP headers: each echo gets one answer, which is
    short."""
    return 2 * ECHOES_PER_SECOND * ECHO_BYTES + ECHOES_PER_SECOND / LONG_EVERY * (mtu - ECHO_BYTES)


@dataclass
class Link:
    """One rail of this node to one rail of a peer."""
    peer: str
    rail: int
    address: tuple  # (text, port)
    mtu: int  # the smaller of both rails
    state: str = UNKNOWN
    rtt: float = 0.0  # smoothed, seconds
    rtt_min: float = float("inf")
    path_mtu: int = 0  # 0: not measured yet
    since: float = 0.0
    sent: int = 0
    lost_in_a_row: int = 0
    outcomes: list = field(default_factory=list)
    long_size: int = 0  # 0: the MTU
    long_since: float = 0.0
    long_tries: int = 0
    rate: float = 0.0  # bits a second, as last measured on request

    @property
    def loss(self):
        return 1 - sum(self.outcomes) / len(self.outcomes) if self.outcomes else 0.0

    def describe(self):
        return {"peer": self.peer, "rail": self.rail, "state": self.state, "loss": round(self.loss, 4),
                "rtt_us": round(self.rtt * 1e6, 1), "rtt_min_us": round(self.rtt_min * 1e6, 1) if self.sent and self.rtt else 0.0,
                "path_mtu": self.path_mtu, "mtu": self.mtu, "rate_bits_per_second": round(self.rate)}


class LinkMonitor:
    """`send(rail, address, sequence, size)` sends an echo of so many bytes of IP, 0 for a short one;
    `changed(link, old)` is called when a link changes its state."""

    def __init__(self, send, changed):
        self._send, self._changed = send, changed
        self.links = {}  # (peer, rail) -> Link
        self._order, self._next_at = [], float("inf")
        self._waiting = {}  # sequence -> (link, sent at, size)
        self._overdue = {}  # the same, after ANSWER_TIMEOUT
        self._sequence = 0

    def set_peer(self, peer, rails, now):
        """What a peer's rails are now: (rail, address, port, MTU) each; none if it is down."""
        wanted = {(peer, rail): (address, port, mtu) for rail, address, port, mtu in rails}
        for name in [name for name in self.links if name[0] == peer and name not in wanted]:
            del self.links[name]
        for name, (address, port, mtu) in wanted.items():
            link = self.links.get(name)
            if link is None or link.address != (address, port) or link.mtu != mtu:
                self.links[name] = Link(peer, name[1], (address, port), mtu, since=now)
        self._order = [link for link in self._order if self.links.get((link.peer, link.rail)) is link]
        if self.links and self._next_at == float("inf"):
            self._next_at = now

    def next_deadline(self):
        oldest = next(iter(self._waiting.values()), None)
        return min(self._next_at, oldest[1] + ANSWER_TIMEOUT if oldest else float("inf"))

    def run(self, now):
        while self._waiting:
            sequence, (link, sent_at, size) = next(iter(self._waiting.items()))
            if now < sent_at + ANSWER_TIMEOUT:
                break
            self._overdue[sequence] = self._waiting.pop(sequence)
            self._lost(link, size, now)
        while self._overdue and next(iter(self._overdue.values()))[1] + LATE <= now:
            link, _, size = self._overdue.pop(next(iter(self._overdue)))
            if not size:  # a long one may just be too long
                self._note(link, 0)
        if now >= self._next_at:
            if not self._order:
                self._order = list(reversed(self.links.values()))
            if not self._order:
                self._next_at = float("inf")
                return
            self._next_at = now + max(1 / ECHOES_PER_SECOND, LINK_PERIOD / len(self.links))
            self._echo(self._order.pop(), now)

    def _echo(self, link, now, short=False):
        size = 0
        if link.long_size and now >= link.long_since + RAISE_PERIOD:
            link.long_size = 0
        if not short and link.state == UP and link.lost_in_a_row == 0 and (link.sent % LONG_EVERY == 1 or link.long_tries):
            size = link.long_size or link.mtu
        self._sequence = (self._sequence + 1) & 0xFFFFFFFF
        self._waiting[self._sequence] = (link, now, size)
        link.sent += 1
        self._send(link.rail, link.address, self._sequence, size)

    def on_reply(self, sequence, peer, now):
        late = sequence in self._overdue
        link, sent_at, size = (self._overdue if late else self._waiting).get(sequence, (None, 0, 0))
        if link is None or link.peer != peer:
            return
        del (self._overdue if late else self._waiting)[sequence]
        if self.links.get((link.peer, link.rail)) is not link:
            return
        if not late:
            rtt = now - sent_at
            link.rtt_min = min(link.rtt_min, rtt)
            link.rtt = rtt if not link.rtt else link.rtt + (rtt - link.rtt) / 8
        link.lost_in_a_row = 0
        self._note(link, 1)
        if size:
            if link.long_size and size > link.long_size:
                link.long_size = size
            link.path_mtu, link.long_tries = max(size, link.path_mtu) if late else size, 0
        self._set(link, UP, now)

    def _lost(self, link, size, now):
        if self.links.get((link.peer, link.rail)) is not link:
            return
        if size:
            link.long_tries += 1
            if link.long_tries >= LONG_TRIES:
                link.long_tries = 0
                link.long_size, link.long_since = next((smaller for smaller in SIZES if smaller < size), SIZES[-1]), now
                link.path_mtu = min(link.path_mtu or size, link.long_size)
            self._echo(link, now, short=True)  # is the frame too long, or the link cut?
            return
        link.lost_in_a_row += 1
        if link.lost_in_a_row >= LOST_IN_A_ROW:
            self._set(link, DOWN, now)
        elif link.state != DOWN:
            self._echo(link, now)

    @staticmethod
    def _note(link, arrived):
        link.outcomes.append(arrived)
        if len(link.outcomes) > WINDOW:
            del link.outcomes[0]

    def _set(self, link, state, now):
        if link.state != state:
            old, link.state, link.since = link.state, state, now
            self._changed(link, old)

    def usable(self, peer):
        """Rails by which a message to a peer should leave: the first that is up. While an echo of that one is
        unanswered, all that are not down."""
        links = [link for (name, _), link in self.links.items() if name == peer and link.state != DOWN]
        links.sort(key=lambda link: link.rail)
        if links and links[0].lost_in_a_row == 0 and links[0].state == UP:
            return links[:1]
        return links
