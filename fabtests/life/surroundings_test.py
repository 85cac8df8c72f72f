"""Two processes work as well as possible in containers and as plain users: fabtests/life.

    surroundings_test.py --build BUILD --program life_peer [test...]

In each environment two processes exchange checked messages, puts and atomics both ways. One is killed and the other
notices; one closes all objects and ends. Each logs one line (FI_LOG_LEVEL=info) on what it has to do without. The table
of man/fi_cluster_containers.7 says what works where. Afterwards /dev/shm is as empty as before.
"""
import os
import re
import signal
import subprocess
import sys
import unittest

from life_process import Process, acquaint, run_tests, virtual_nodes
from warnings_test import warnings

HERE = os.path.dirname(os.path.realpath(__file__))
LATE = float(os.environ.get("LIFE_PATIENCE", "1"))  # times as much: on a machine that does much else
LOCAL, REMOTE = 0.6, 1.0
BIG = 4 << 20
SECONDS_MAX = 20
SIZES, PUT_SIZES = (8, 3000, 100_000, BIG), (8, 90_000)

NO_RAW_SOCKETS = "uses the udp link: .*CAP_NET_RAW"
FORBIDDEN = "large messages from .* are copied twice instead of once: process_vm_readv: Operation not permitted .*seccomp"
WITHOUT_NUMBER = "large messages from .* are copied twice instead of once: the peer's process has no PID in this PID namespace"
SERVED = "cannot access the memory of .* directly: .*; the library of the peer serves remote accesses"
UNMAPPED = "cannot map the shared memory regions of .*: /proc does not show this PID namespace"


def user(number):
    return ("setpriv", "--reuid", str(number), "--regid", str(number), "--clear-groups", "--bounding-set=-all", "--inh-caps=-all",
            "--no-new-privs")


def as_root_of_own(number):
    """A rootless container: the only user of a user namespace, as which the other user of that number appears."""
    return ("setpriv", "--reuid", str(number), "--regid", str(number), "--clear-groups", "unshare", "--user", "--map-root-user")


def mounts(script):
    """A mount namespace of its own, changed by this script."""
    return ("unshare", "--mount", "sh", "-ec", script + '\nexec "$@"', "sh")


def refusing(*calls):
    return (sys.executable, "-B", os.path.join(HERE, "refuse_calls.py"), ",".join(calls))


PLAIN = user(54321)
CONTAINER = ("unshare", "--pid", "--mount", "--fork", "--kill-child", "--mount-proc")
OLD_PROFILE = ("process_vm_readv", "process_vm_writev", "pidfd_open", "membarrier", "userfaultfd")
DEVICES_WITHOUT_SHM = """
mount -t tmpfs none /mnt
for device in null zero random urandom; do : > /mnt/$device; mount --bind /dev/$device /mnt/$device; done
mount --move /mnt /dev
if test -e /dev/shm; then exit 1; fi"""
READ_ONLY = """
while read -r _ place _; do mount -o remount,bind,ro "$place" 2> /dev/null || :; done < /proc/self/mounts
for place in /dev/shm / "$HOME" "$TMPDIR"; do if touch "$place/file" 2> /dev/null; then exit 1; fi; done"""


class Contained(Process):
    """A life_peer that a command of PID namespaces has forked."""

    @property
    def pid(self):
        starter = self.process.pid
        with open(f"/proc/{starter}/task/{starter}/children", encoding="ascii") as children:
            return int(children.read().split()[0])


def lines(process, expression):
    return [line for line in process.log().splitlines() if re.search(expression, line)]


class Surroundings(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.cluster = virtual_nodes.make(2, suffix="-surroundings")
        cls.addClassCleanup(cls.cluster.down)

    def setUp(self):
        self.addCleanup(self.nothing_left)

    def nothing_left(self):
        for node in (1, 2):
            self.assertEqual(self.cluster.run(node, "ls", "-A", "/dev/shm"), "", "left behind in /dev/shm")

    def start(self, before=(), node=1, kind=Process, **settings):
        process = kind([*self.cluster.command(node), *before], FI_LOG_LEVEL="info", **settings)
        self.addCleanup(process.close)
        return process

    def hold(self, before):
        """A process that keeps namespaces."""
        holder = virtual_nodes.start([*self.cluster.command(1), *before, "sh", "-c", "echo ready; exec cat"], text=True,
                                     stdin=subprocess.PIPE, stdout=subprocess.PIPE)
        self.addCleanup(holder.communicate)
        self.assertEqual(holder.stdout.readline(), "ready\n")
        return holder.pid

    def do(self, one, other, handle, order, seed):
        """A command of `one`, with its end."""
        one.do(order.format(name=f"o{seed}", peer=handle, seed=seed))
        end = one.end(f"o{seed}", SECONDS_MAX)
        self.assertTrue(end and end[0] == 0, f"{order}: {end}; {one.log()}; {other.log()}")

    def work(self, one, other):
        """All that a job does, both ways; returns the first one's handle of the other."""
        handles = acquaint(one, other)
        for process in (one, other):
            process.do(f"keep 2 {BIG}")
        for a, b, handle in ((one, other, handles[0]), (other, one, handles[1])):
            for seed, size in enumerate(SIZES, 100):
                self.do(a, b, handle, f"say {{name}} {size} {{peer}} {{seed}}", seed)
                self.assertTrue(b.until(lambda s=(seed, size), b=b: s in b.got, SECONDS_MAX), f"message of {size} bytes: {b.log()}")
            for seed, size in enumerate(PUT_SIZES, 200):
                self.do(a, b, handle, f"put {{name}} {size} {{peer}} {{seed}} 0", seed)
            self.do(a, b, handle, "add {name} {peer}", 300)
        return handles[0]

    def notices_death(self, one, other, handle, bound):
        other.signal(signal.SIGSTOP)
        pending = [one.post("recv", 8, handle), one.post("send", BIG, handle)]
        died = other.signal(signal.SIGKILL)
        for operation in pending:
            end = one.end(operation, SECONDS_MAX)
            self.assertIsNotNone(end, f"{operation} never ends; {one.log()}")
            self.assertTrue(end[0] != 0 and end[2], end)
            self.assertLess(end[1] - died, bound * LATE, f"{operation}: {end}; {one.log()}")
        self.assertTrue(one.until(lambda: one.losses, SECONDS_MAX), "no event")

    def closes(self, process):
        process.do("quit")
        self.assertEqual(process.process.wait(SECONDS_MAX), 0, process.log())

    def job(self, one, other, carrier, says=(), warns=None):
        """`says`: a line that both logs contain once. `warns`: the only warning of one of them."""
        handle = self.work(one, other)
        said = warnings(one.log()) + warnings(other.log())
        self.assertTrue(said and all(re.search(warns, line) for line in said) if warns else not said, said)
        reached = {"shm": "is reached over shared memory", "udp": "is reached over the udp link", "packet": "is reached over the packet link"}
        for process in (one, other):
            for text in (reached[carrier], *says):
                self.assertEqual(len(lines(process, text)), 1, f"'{text}' in {process.log()}")
        self.notices_death(one, other, handle, LOCAL if carrier == "shm" else REMOTE)
        self.closes(one)

    # 1
    def test_plain_user(self):
        self.job(self.start(PLAIN), self.start(PLAIN), "shm", [NO_RAW_SOCKETS])
        self.job(self.start(PLAIN), self.start(PLAIN, node=2), "udp", [NO_RAW_SOCKETS])

    # 2
    def test_one_user_namespace(self):
        holder = self.hold(as_root_of_own(54321))
        before = ("nsenter", "--user", "--target", str(holder))
        self.job(self.start(before), self.start(before), "shm", [NO_RAW_SOCKETS])

    def test_two_user_namespaces(self):
        before = as_root_of_own(54321)
        self.job(self.start(before), self.start(before), "shm", [NO_RAW_SOCKETS, FORBIDDEN, SERVED])
        self.job(self.start(before), self.start(before, node=2), "udp", [NO_RAW_SOCKETS])

    def test_two_user_namespaces_of_two_users(self):
        one, other = (self.start(as_root_of_own(number)) for number in (54321, 54322))
        self.job(one, other, "udp", [NO_RAW_SOCKETS], warns="refused shared memory for .* it runs as another user")

    def test_inside_and_outside_of_a_user_namespace(self):
        one, other = self.start(), self.start(("unshare", "--user", "--map-root-user"))
        self.job(one, other, "shm")

    # 3
    def test_calls_refused(self):
        before = refusing(*OLD_PROFILE)
        self.job(self.start(before), self.start(before), "shm", [FORBIDDEN, SERVED])
        self.job(self.start(), self.start(before), "shm")

    def test_calls_refused_by_an_old_kernel(self):
        before = refusing(*OLD_PROFILE, "peer_handle")
        self.job(self.start(before), self.start(before), "shm", [FORBIDDEN, SERVED])

    # 4
    def test_small_shm(self):
        before = mounts("mount -t tmpfs -o size=64k none /dev/shm")
        self.job(self.start(before), self.start(before), "shm")

    def test_no_shm(self):
        before = mounts(DEVICES_WITHOUT_SHM)
        self.job(self.start(before), self.start(before), "shm")

    # 5
    def test_read_only(self):
        for user_words in ((), PLAIN):
            before = (*mounts(READ_ONLY), *user_words, "env", "HOME=/nowhere", "TMPDIR=/nowhere")
            self.job(self.start(before), self.start(before), "shm")

    # 6
    def test_no_ipv6(self):
        for node in (1, 2):
            self.cluster.run(node, "sh", "-c", "echo 1 > /proc/sys/net/ipv6/conf/all/disable_ipv6")
            self.addCleanup(self.cluster.run, node, "sh", "-c", "echo 0 > /proc/sys/net/ipv6/conf/all/disable_ipv6")
        self.job(self.start(), self.start(), "shm")
        self.job(self.start(), self.start(node=2), "packet")

    def test_loopback_only(self):
        holder = self.hold(("unshare", "--net", "sh", "-ec", "ip link set lo up; echo 1 > /proc/sys/net/ipv6/conf/all/disable_ipv6; "
                            'exec "$@"', "sh"))
        before = ("nsenter", "--net", "--target", str(holder))
        self.job(self.start(before), self.start(before), "shm")
        self.job(*(self.start(before, FI_CLUSTER_SHM="no") for _ in range(2)), "udp")

    # 7
    def test_pod(self):
        one, other = (self.start(CONTAINER, kind=Contained) for _ in range(2))
        self.job(one, other, "shm", [WITHOUT_NUMBER])

    def test_pod_and_its_host(self):
        one, other = self.start(), self.start(CONTAINER, kind=Contained)
        self.job(one, other, "shm")
        one, other = self.start(CONTAINER, kind=Contained), self.start()
        self.job(one, other, "shm")

    def test_pod_of_an_old_kernel(self):
        before = (*CONTAINER, *refusing("peer_handle"))
        one, other = (self.start(before, kind=Contained) for _ in range(2))
        self.job(one, other, "shm", [WITHOUT_NUMBER])

    def test_pod_of_plain_users_and_old_profile(self):
        before = (*CONTAINER, *PLAIN, *refusing(*OLD_PROFILE, "peer_handle"))
        one, other = (self.start(before, kind=Contained) for _ in range(2))
        self.job(one, other, "shm", [WITHOUT_NUMBER])

    # 8
    def test_no_locked_memory(self):
        before = (*PLAIN, "prlimit", "--memlock=0:0")
        self.job(self.start(before), self.start(before), "shm")
        self.job(self.start(before, FI_CLUSTER_KEY="ab" * 32), self.start(before, node=2, FI_CLUSTER_KEY="ab" * 32), "udp")

    def test_few_descriptors(self):
        before = ("prlimit", "--nofile=64:64")
        self.job(self.start(before), self.start(before), "shm")
        self.job(self.start(before), self.start(before, node=2), "packet")

    def test_no_proc(self):
        before = mounts("mount -t tmpfs none /proc")
        self.job(self.start(before), self.start(before), "shm", [UNMAPPED])
        unmapped = (*before, *user(65534))
        self.job(self.start(unmapped), self.start(unmapped), "udp", warns="refused shared memory for .* it runs as another user")
        self.job(self.start(before), self.start(before, node=2), "packet")


run_tests(__doc__, "setpriv", "prlimit", "unshare")
