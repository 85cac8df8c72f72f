"""A WireGuard tunnel between two virtual nodes, for the table: by the kernel, or by wireguard-go in user space."""
import shutil
import subprocess
import time

import overlay

INTERFACE, PORT = "wg0", 51820
UP_SECONDS = 10
# wireguard-go and wg meet at a socket in a fixed place; each node has its own there.
PLACE = "/var/run/wireguard"


class NotHere(Exception):
    """WireGuard cannot run; the text says what is missing."""


def address(node):
    return f"10.8.0.{node}"


def implementation(cluster, asked=None):
    """The program of the tunnel, or None for the kernel's module, which is chosen where it is there."""
    if shutil.which("wg") is None:
        raise NotHere("wg is not installed (Debian: wireguard-tools)")
    if asked:
        return asked
    made = subprocess.run(cluster.command(1, "ip", "link", "add", INTERFACE, "type", "wireguard"), capture_output=True, check=False)
    if made.returncode == 0:
        cluster.run(1, "ip", "link", "del", INTERFACE)
        return None
    found = shutil.which("wireguard-go")
    if found is None:
        raise NotHere("this kernel has no WireGuard, and wireguard-go is not installed")
    return found


class Tunnel:
    """The ends in node 1 and node 2. The daemons, if there are any, end with the test."""

    def __init__(self, test, cluster, program):
        self.daemons, self._cluster = [], cluster
        private = {node: subprocess.check_output(["wg", "genkey"], text=True) for node in (1, 2)}
        public = {node: subprocess.check_output(["wg", "pubkey"], input=key, text=True).strip() for node, key in private.items()}
        for node, other in ((1, 2), (2, 1)):
            if program is None:
                cluster.run(node, "ip", "link", "add", INTERFACE, "type", "wireguard")
                test.addCleanup(cluster.run, node, "ip", "link", "del", INTERFACE)
            else:
                self._start(test, node, program)
            cluster.run(node, "wg", "set", INTERFACE, "listen-port", str(PORT), "private-key", "/dev/stdin", "peer", public[other],
                        "allowed-ips", f"{address(other)}/32", "endpoint", f"{cluster.address(other)}:{PORT}", input=private[node])
            cluster.run(node, "ip", "address", "add", f"{address(node)}/24", "dev", INTERFACE)
            cluster.run(node, "ip", "link", "set", INTERFACE, "up")

    def _start(self, test, node, program):
        self._cluster.run(node, "sh", "-ec", f"mkdir -p {PLACE}; mount -t tmpfs wireguard {PLACE}")
        test.addCleanup(self._cluster.run, node, "umount", "-l", PLACE)
        self.daemons.append(overlay.start(test, self._cluster.command(node, program, "-f", INTERFACE), stdout=subprocess.DEVNULL,
                                          stderr=subprocess.DEVNULL))
        end = time.monotonic() + UP_SECONDS
        while subprocess.run(self._cluster.command(node, "wg", "show", INTERFACE), capture_output=True, check=False).returncode != 0:
            if time.monotonic() > end:
                raise NotHere(f"{program} does not make an interface")
            time.sleep(0.05)

    def processor_seconds(self):
        return sum(overlay.processor_seconds(daemon.pid) for daemon in self.daemons)
