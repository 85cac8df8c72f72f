"""Finding the others: hello, and fetching the table of a node that was found.

A hello goes to the multicast group on every rail and to the addresses of a list. The agent sends it often while it
knows no other node, then seldom. Hellos reveal wrong cables, since each names the sender's rail, and they join two
halves of a cluster that started apart. With more nodes each sends more seldom, so that a node hears only a few per
second. Only some nodes answer the hello of an unknown node.

The agent fetches the table of another node page by page, and asks again for a lost page. The first node may be as young
as this one, so the agent fetches the whole table of another after 1, 2, 4, 8 and 16 seconds. Later one page of a random
node repairs what gossip missed (anti-entropy).

A page is large, and a request can be forged or replayed under the address of a host that did not ask. So a page goes to
the address in the asker's record, never to the source of the request. It is at most three times as long as the request,
which is padded for that. At most PAGES_PER_SECOND leave, and PAGES_AT_ONCE after a rest.
"""
from . import wire

HELLO_FIRST = 0.5
HELLO_MIN = 5.0
HELLO_PER_NODE = 0.3  # seconds between two hellos of a node, for each node
ANSWERS = 3  # how many nodes should answer a hello
PULL_TIMEOUT = 0.5
PULL_TRIES = 3
REPAIR_SECONDS = 30.0
REPAIR_FIRST = 1.0
YOUNG_REPAIRS = 5
FIRST_HELLOS = 20  # after this a lone agent says hello as seldom as others
PULL_BYTES = 400
ANSWER_TIMES_MAX = 3
PAGES_PER_SECOND, PAGES_AT_ONCE = 50.0, 200.0


class Discovery:
    """`send(address, kind, sequence, target, about, number)` as in detector.py; `hello()` says hello everywhere."""

    def __init__(self, membership, random, send, hello):
        self._membership, self._random, self._send, self._hello = membership, random, send, hello
        self._hello_at = self._repair_at = self._pull_until = float("inf")
        self._pull = None  # (name, address, page, tries)
        self._hellos = self._repairs = 0
        self._whole = True  # the whole table is being fetched
        self._begun = False
        self._pages, self._pages_at = PAGES_AT_ONCE, 0.0  # how many pages may leave, and when that was computed

    def start(self, now):
        self._hello_at = now
        self._repair_at = now + REPAIR_FIRST

    def settle(self, now):
        """Acts as if this agent had been up for long."""
        self._begun, self._repairs = True, YOUNG_REPAIRS
        self._hello_at = now + max(HELLO_MIN, HELLO_PER_NODE * len(self._membership.members)) * self._random.random()
        self._repair_at = now + self._repair_pause() * self._random.random()

    def _repair_pause(self):
        if self._repairs < YOUNG_REPAIRS:
            return REPAIR_FIRST * 2 ** self._repairs
        return REPAIR_SECONDS * max(1.0, len(self._membership.members) / 100)

    def next_deadline(self):
        return min(self._hello_at, self._repair_at, self._pull_until)

    def run(self, now):
        nodes = len(self._membership.members)
        if now >= self._hello_at:
            self._hello()
            self._hellos += 1
            early = not self._membership.living() and self._hellos <= FIRST_HELLOS
            pause = HELLO_FIRST if early else max(HELLO_MIN, HELLO_PER_NODE * nodes)
            self._hello_at = now + pause * (0.75 + self._random.random() / 2)
        if now >= self._repair_at:
            self._whole = self._repairs < YOUNG_REPAIRS
            self._repairs += 1
            self._repair_at = now + self._repair_pause()
            living = self._membership.living()
            if living and self._pull is None:
                self._ask_one_of(living, 0 if self._whole else self._random.randrange(nodes), now)
        if now >= self._pull_until:
            name, address, page, tries = self._pull
            others = self._membership.living()
            if tries > 1:
                self._ask(name, address, page, tries - 1, now)
            elif others:
                self._ask_one_of(others, page, now)
            else:
                self._pull, self._pull_until = None, float("inf")

    def on_hello(self, message, address, is_new):
        """Some agents answer the hello of a node that they did not know or took for dead."""
        nodes = len(self._membership.members)
        if is_new and self._random.random() < ANSWERS / max(1, nodes - 1):
            self._send(address, wire.GOSSIP, 0, message.sender, message.sender)

    def heard_of(self, name, address, now):
        """An agent was heard: if it is the first, fetch its table."""
        if not self._begun:
            self._begun = True
            self._ask(name, address, 0, PULL_TRIES, now)

    def _ask_one_of(self, names, page, now):
        name = self._random.choice(names)
        self._ask(name, self._membership.members[name].address, page, PULL_TRIES, now)

    def _ask(self, name, address, page, tries, now):
        self._pull, self._pull_until = (name, address, page, tries), now + PULL_TIMEOUT
        self._send(address, wire.PULL, page, name)

    def _may_send_page(self, now):
        self._pages = min(PAGES_AT_ONCE, self._pages + (now - self._pages_at) * PAGES_PER_SECOND)
        self._pages_at = now
        if self._pages < 1:
            return False
        self._pages -= 1
        return True

    def on_pull(self, message, now):
        """A page: the records from a number on; its own number is that of the next page, 0 after the last."""
        asker = self._membership.members.get(message.sender)
        bytes_max = min(wire.DATAGRAM_BYTES_MAX, ANSWER_TIMES_MAX * wire.size_of(message)) - wire.HEAD_BYTES_MAX
        if asker is None or asker.status >= wire.DOWN or bytes_max <= 0 or not self._may_send_page(now):
            return
        members = list(self._membership.members.values())
        first = min(message.sequence, len(members))
        records = wire.fitting((member.record() for member in members[first:]), bytes_max)
        after = first + len(records)
        self._send(asker.address, wire.PAGE, message.sequence, message.sender, "", after if after < len(members) else 0, records)

    def on_page(self, message, now):
        """Called after the records of the page are in the table."""
        if self._pull is None or message.sequence != self._pull[2]:
            return
        name, address = self._pull[0], self._pull[1]
        self._pull, self._pull_until = None, float("inf")
        if self._whole and message.number:
            self._ask(name, address, message.number, PULL_TRIES, now)
