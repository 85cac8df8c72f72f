"""A node whose interface gets another hardware or IP address, as after a fail-over or a move: fabtests/life.

    moves_test.py --build BUILD --program life_peer [test...]

Both sides adapt: the node itself puts the new address into its frames, and the other side no longer sends to the old
one.
"""
import tempfile
import time

from life_process import LATE, Case, Process, acquaint, exchange, run_tests, virtual_nodes

LINKS = ("packet", "udp")
WINDOW = 0.25 * LATE
WITHIN = 1.0 * LATE + WINDOW  # of the interface being up again
UNPRIVILEGED = ("setpriv", "--bounding-set", "-net_raw,-net_admin", "--inh-caps", "-net_raw,-net_admin")


class Moves(Case):
    @classmethod
    def setUpClass(cls):
        cls.cluster = virtual_nodes.make(2, suffix="-moves")
        cls.addClassCleanup(cls.cluster.down)
        cls.moves = 0

    def start(self, node, link, before=(), **settings):
        process = Process(self.cluster.command(node, *before), FI_LOG_LEVEL="warn", FI_CLUSTER_LINK=link, **settings)
        self.addCleanup(process.close)
        return process

    def ip(self, node, *words):
        self.cluster.run(node, "ip", *words)

    def move(self, node, down):
        """Sets another hardware address and returns it. The interface is down meanwhile, as most drivers need, or stays
        up."""
        type(self).moves += 1
        address = f"02:00:00:00:{node:02x}:{self.moves:02x}"
        if down:
            self.ip(node, "link", "set", "eth0", "down")
        self.ip(node, "link", "set", "eth0", "address", address)
        if down:
            self.ip(node, "link", "set", "eth0", "up")
        return address

    def know(self, node, other):
        """The kernel of a node has the hardware address of another, for more than the second in which it takes no second answer."""
        send = f"echo > /dev/udp/{self.cluster.address(other)}/9"
        self.ip(node, "neigh", "flush", "dev", "eth0")
        self.cluster.run(node, "bash", "-c", f"{send}; sleep 0.2; {send}; sleep 1.1")
        self.assertIn("REACHABLE", self.cluster.run(node, "ip", "neigh", "show", self.cluster.address(other)))

    def rate(self, process, seconds=WINDOW):
        before, since = process.volleys(), time.monotonic()
        time.sleep(seconds)
        return (process.volleys() - before) / (time.monotonic() - since)

    def volley(self, link, **settings):
        processes = [self.start(node, link, **settings) for node in (1, 2)]
        handles = acquaint(*processes)
        processes[1].do(f"volley {handles[1]} 0")
        processes[0].do(f"volley {handles[0]} 1")
        return processes

    def replace(self, node, gap):
        """The node gets another address in place of its own: the new one first, or the old one is gone for `gap` seconds."""
        type(self).moves += 1
        old = f"{self.cluster.address(node)}/24"
        new = old.rsplit(".", 1)[0] + f".{100 + self.moves}/24"
        self.addCleanup(self.ip, node, "addr", "add", old, "dev", "eth0")
        self.addCleanup(self.ip, node, "addr", "flush", "dev", "eth0")
        if gap is None:
            self.cluster.run(node, "sysctl", "-qw", "net.ipv4.conf.eth0.promote_secondaries=1")
            self.ip(node, "addr", "add", new, "dev", "eth0")
        self.ip(node, "addr", "del", old, "dev", "eth0")
        if gap is not None:
            time.sleep(gap)
            self.ip(node, "addr", "add", new, "dev", "eth0")
        return new.split("/")[0]

    def returns(self, process, former):
        """Waits for half of the earlier rate, since the machine may do other things."""
        deadline, rates = time.monotonic() + WITHIN, [0]
        while rates[-1] < former / 2 and time.monotonic() < deadline:
            rates.append(self.rate(process))
        self.assertGreater(rates[-1], former / 2, f"{former}, then {rates}; {process.log()}")

    def lines(self, process):
        """The provider's log lines."""
        return [line for line in process.log().splitlines() if ":cluster:" in line]

    def test_in_the_midst(self):
        for link in LINKS:
            for down in (False, True):
                with self.subTest(link=link, down=down):
                    processes = self.volley(link)
                    former = self.rate(processes[0], 2 * WINDOW)
                    address = self.move(2, down)
                    self.returns(processes[0], former)
                    self.assertRegex("\n".join(self.lines(processes[1])), f"^[^\n]*hardware address {address}[^\n]*$")
                    self.assertFalse(self.lines(processes[0]))
                    self.doCleanups()

    def test_before_first_contact(self):
        """The caller's kernel knows the old address. Without privilege the other side cannot announce the new one."""
        for link, before in (("packet", ()), ("udp", ()), ("udp", UNPRIVILEGED)):
            for down in (False, True):
                with self.subTest(link=link, before=before, down=down):
                    one, other = self.start(1, link, before), self.start(2, link, before)
                    self.know(1, 2)
                    handle = one.peer(other.name)
                    self.move(2, down)
                    since = time.monotonic()
                    exchange(one, other, handle)
                    self.assertLess(time.monotonic() - since, WITHIN)
                    self.doCleanups()

    def test_before_the_process_began(self):
        """The moved side has not seen the change, so it has notified no host: the caller asks."""
        for link in LINKS:
            with self.subTest(link=link):
                one = self.start(1, link)
                self.know(1, 2)
                self.move(2, True)
                other = self.start(2, link)
                since = time.monotonic()
                exchange(one, other, one.peer(other.name))
                self.assertLess(time.monotonic() - since, WITHIN)
                self.doCleanups()

    def test_to_another_interface(self):
        """The node's address is that of a bridge over its interface from now on."""
        for link in LINKS:
            with self.subTest(link=link):
                processes = self.volley(link)
                former = self.rate(processes[0], 2 * WINDOW)
                net = f"{self.cluster.address(2)}/24"
                self.ip(2, "link", "add", "br7", "address", "02:00:00:00:07:07", "type", "bridge")
                self.addCleanup(self.ip, 2, "addr", "add", net, "dev", "eth0")
                self.addCleanup(self.ip, 2, "link", "del", "br7")
                self.ip(2, "link", "set", "br7", "up")
                self.ip(2, "addr", "del", net, "dev", "eth0")
                self.ip(2, "link", "set", "eth0", "master", "br7")
                self.ip(2, "addr", "add", net, "dev", "br7")
                self.returns(processes[0], former)
                self.assertIn("02:00:00:00:07:07 on br7", "\n".join(self.lines(processes[1])))
                self.doCleanups()

    def goes_on(self, link, node, gap, **settings):
        """The session goes on when the node gets another address: nothing is lost, and only its own side says so."""
        try:
            processes = self.volley(link, **settings)
            former = self.rate(processes[0], 2 * WINDOW)
            address = self.replace(node, gap)
            self.returns(processes[0], former)
            self.assertIn(f"this endpoint uses the address {address}:", "\n".join(self.lines(processes[node - 1])))
            self.assertFalse(self.lines(processes[2 - node]))
            self.assertFalse([each.losses for each in processes if each.losses])
        finally:
            self.doCleanups()

    def test_to_another_address(self):
        """Whichever side gets another address, and whether that comes first or late."""
        for link in LINKS:
            for node in (1, 2):
                for gap in (None, 0.1):
                    with self.subTest(link=link, node=node, gap=gap):
                        self.goes_on(link, node, gap)

    def test_to_another_address_with_a_key(self):
        with tempfile.NamedTemporaryFile("w") as key:
            key.write("6b" * 32)
            key.flush()
            for link in LINKS:
                with self.subTest(link=link):
                    self.goes_on(link, 2, 0.1, FI_CLUSTER_KEY_FILE=key.name)

    def test_to_another_address_while_both_sleep(self):
        """Each side sends to the other after the move: the moved side has told its peer its address in its sleep."""
        for link in LINKS:
            for first in (0, 1):
                with self.subTest(link=link, first=first):
                    try:
                        one, other = processes = [self.start(node, link, LIFE_DOZES="1") for node in (1, 2)]
                        handles = acquaint(one, other)
                        time.sleep(4 * WINDOW)
                        self.replace(2, 0.1)
                        time.sleep(WINDOW)
                        since = time.monotonic()
                        exchange(processes[first], processes[1 - first], handles[first])
                        self.assertLess(time.monotonic() - since, WITHIN)
                    finally:
                        self.doCleanups()


if __name__ == "__main__":
    run_tests(__doc__, "setpriv")
