#!/usr/bin/env python3
"""GlusterFS over cluster-ip, beside the plain network: four servers with replicas, and a client.

A volume of two pairs of bricks in memory, mounted by FUSE on a fifth node. Files are compared with what was
written, also on the bricks, after a server was killed, came back and was healed. A rail is cut in mid-load over
cluster-ip: the plain network of the servers is one rail only. The networks take turns, and figures are medians.

In short, for the check: two servers, one of which is the client, and a few files over cluster-ip.
"""
import glob
import json
import os
import re
import statistics
import subprocess
import sys
import time
import unittest

import overlay
from overlay import Overlay, ipv4, virtual_nodes

SERVERS, CLIENT = (1, 2, 3, 4), 5
VICTIM, PARTNER = 4, 3  # the second pair; the client has got the volume's description from server 1
FILES, FILE_BYTES = 40, 1 << 20
METADATA_FILES = 1000
TURNS = 3  # of each network
WAIT_SECONDS = 60
SILENCE_SECONDS_MAX = 5.0  # of the load while a server dies, or a rail
PROGRAM = os.path.join(os.path.dirname(os.path.realpath(__file__)), "files.py")
ROWS = ("write, MB/s", "read, MB/s", "random 4 KB write, 1/s", "create, 1/s", "stat, 1/s", "unlink, 1/s",
        "server killed: longest, s", "healed after, s", "rail cut: longest, s")

# glusterd and its children use fixed places; each node has its own behind them. At its first start glusterd
# calls gsyncd some thirty times. That copies volumes to other sites, which nobody does here.
PLACES = r"""
mkdir -p "$1/lib" "$1/log" "$1/run" "$1/brick" "$1/mnt"
mount --bind "$1/lib" /var/lib/glusterd
mount --bind "$1/log" /var/log/glusterfs
mount --bind "$1/run" /run/gluster
printf '#!/bin/sh\n[ "$1" != --version ] || echo gsyncd\n' > "$1/gsyncd"
chmod +x "$1/gsyncd"
for gsyncd in /usr/lib/*/glusterfs/gsyncd; do [ ! -e "$gsyncd" ] || mount --bind "$1/gsyncd" "$gsyncd"; done
sed "s,end-volume,    option glusterd-sockfile $1/socket\nend-volume," /etc/glusterfs/glusterd.vol > "$1/vol"
"""


class Volume:
    def __init__(self, test, cluster, address, servers=SERVERS, client=CLIENT):
        self._test, self._cluster, self._daemons, self._servers, self._client = test, cluster, {}, servers, client
        self._own = cluster.run(1, "printenv", "TMPDIR").strip()  # each node mounts its own there
        self.mount, self.brick = f"{self._own}/mnt", f"{self._own}/brick/b"
        for node in dict.fromkeys((*servers, client)):
            cluster.run(node, "sh", "-ec", PLACES, "places", self._own)
        for node in servers:
            self._start(node)
        for node in servers:
            self._answers(node)
        for node in servers[1:]:
            self._gluster("peer", "probe", address(node))
        self._wait("all peers", lambda: all(self._knows_all(node) for node in servers))
        self._gluster("volume", "create", "v", "replica", "2", *(f"{address(node)}:{self.brick}" for node in servers), "force")
        self._gluster("volume", "start", "v")
        cluster.run(client, "mount", "-t", "glusterfs", f"{address(1)}:/v", self.mount)
        test.addCleanup(cluster.run, client, "umount", "-l", self.mount)

    def _start(self, node):
        self._daemons[node] = overlay.start(self._test, self._cluster.command(node, "glusterd", "-N", "-f", f"{self._own}/vol"))

    def _answers(self, node):
        """A daemon listens before it can answer, and a probe that comes in between is lost."""
        command = self._cluster.command(node, "gluster", f"--glusterd-sock={self._own}/socket", "peer", "status")
        self._wait(f"glusterd of node{node}", lambda: subprocess.run(command, capture_output=True, check=False).returncode == 0)

    def restart(self, node):
        self._start(node)
        self._answers(node)

    def kill(self, node):
        self._daemons[node].kill()
        self._daemons[node].wait()
        self._cluster.run(node, "sh", "-c", "kill -9 $(cat /run/gluster/vols/v/*.pid /run/gluster/shd/v/*.pid)")

    def _knows_all(self, node):
        return self._gluster("peer", "status", node=node).count("Peer in Cluster (Connected)") == len(self._servers) - 1

    def _gluster(self, *words, node=1):
        return self._cluster.run(node, "gluster", f"--glusterd-sock={self._own}/socket", "--mode=script", *words)

    def _wait(self, what, done):
        end = time.monotonic() + WAIT_SECONDS
        while not done():
            self._test.assertLess(time.monotonic(), end, what)
            time.sleep(0.1)

    def files(self, node, *words):
        return self._cluster.run(node, sys.executable, "-B", PROGRAM, *map(str, words)).split()

    def writing(self, directory):
        """A load that is under way: its first files are there."""
        self._cluster.run(self._client, "mkdir", f"{self.mount}/{directory}")
        words = (sys.executable, "-B", PROGRAM, "write", f"{self.mount}/{directory}", str(FILES), str(FILE_BYTES))
        started = overlay.start(self._test, self._cluster.command(self._client, *words), stdout=subprocess.PIPE, text=True)
        self._wait("first files", lambda: len(self._cluster.run(self._client, "ls", f"{self.mount}/{directory}").split()) > FILES // 10)
        self._test.assertIsNone(started.poll())
        return started

    def written(self, started):
        said = started.communicate(timeout=WAIT_SECONDS)[0]
        self._test.assertEqual(started.returncode, 0, said)
        self._test.assertLess(float(said), SILENCE_SECONDS_MAX)
        return float(said)

    def entries_to_heal(self):
        """None while a brick is away."""
        # `gluster volume heal v info` runs this, and forgets the socket.
        said = self._cluster.run(1, glob.glob("/usr/lib/*/glusterfs/glfsheal")[0], "v", "glusterd-sock", f"{self._own}/socket")
        counts = re.findall(r"Number of entries: (\S+)", said)
        return sum(map(int, counts)) if len(counts) == len(self._servers) and "-" not in counts else None

    def healed(self):
        """The healing daemon of the partner begins when the brick is back."""
        self._wait("healing", lambda: self.entries_to_heal() == 0)


class Short(unittest.TestCase):
    FILES, FILE_BYTES = 5, 1 << 18

    def test_files_over_cluster_ip(self):
        cluster = virtual_nodes.make(2, suffix="-ip-gluster-short")
        self.addCleanup(cluster.down)
        over = Overlay(self, cluster, 2)
        volume = Volume(self, cluster, ipv4, servers=(1, 2), client=1)
        volume.files(1, "write", volume.mount, self.FILES, self.FILE_BYTES)
        for place, node in ((volume.mount, 1), (volume.brick, 1), (volume.brick, 2)):
            self.assertEqual(volume.files(node, "check", place), [str(self.FILES)], f"{place} of node{node}")
        self.assertGreater(over.daemons[1].stop()["sent_bytes"], self.FILES * self.FILE_BYTES, "the other server has a replica")


class Gluster(unittest.TestCase):
    def _fio(self, volume, pattern, *more):
        said = self.cluster.run(CLIENT, "fio", "--output-format=json", "--name=load", "--thread", f"--filename={volume.mount}/load",
                                f"--rw={pattern}", "--verify=sha256", "--verify_fatal=1",
                                "--verify_state_save=0", *more)
        return json.loads(said[said.index("{"):])["jobs"][0]

    def _throughput(self, volume):
        sequential = ("--bs=1M", "--size=64M")
        written = self._fio(volume, "write", "--do_verify=0", "--end_fsync=1", *sequential)["write"]
        read = self._fio(volume, "read", *sequential)["read"]
        scattered = self._fio(volume, "randwrite", "--bs=4k", "--size=4M")["write"]
        self.cluster.run(CLIENT, "rm", f"{volume.mount}/load")
        return [written["bw_bytes"] / 1e6, read["bw_bytes"] / 1e6, scattered["iops"]]

    def _server_killed(self, volume):
        """While the server is away, its partner gets what is written."""
        load = volume.writing("killed")
        volume.kill(VICTIM)
        longest = volume.written(load)
        self.assertNotEqual(volume.entries_to_heal(), 0)
        begun = time.monotonic()
        volume.restart(VICTIM)
        volume.healed()
        seconds = time.monotonic() - begun
        self.assertEqual(volume.files(CLIENT, "check", f"{volume.mount}/killed"), [str(FILES)])
        on_bricks = [int(volume.files(node, "check", f"{volume.brick}/killed")[0]) for node in SERVERS]
        self.assertEqual(on_bricks[0::2], on_bricks[1::2])
        self.assertEqual(sum(on_bricks), 2 * FILES)
        self.assertGreater(on_bricks[VICTIM - 1], 0)
        return [longest, seconds]

    def _rail_cut(self, volume):
        load = volume.writing("cut")
        self.cluster.run("switch", "ip", "link", "set", f"n{PARTNER}r0", "down")
        longest = volume.written(load)
        self.assertEqual(volume.files(CLIENT, "check", f"{volume.mount}/cut"), [str(FILES)])
        return [longest]

    def _measure(self, network):
        self.cluster = virtual_nodes.make(CLIENT, "--rails", "2", suffix=f"-ip-gluster-{network}")
        self.addCleanup(self.cluster.down)
        over = Overlay(self, self.cluster, CLIENT) if network == "over" else None
        volume = Volume(self, self.cluster, ipv4 if over else self.cluster.address)
        found = self._throughput(volume)
        self.cluster.run(CLIENT, "mkdir", f"{volume.mount}/empty")
        found += map(float, volume.files(CLIENT, "metadata", f"{volume.mount}/empty", METADATA_FILES))
        found += self._server_killed(volume)
        if over:
            found += self._rail_cut(volume)
            sent = over.daemons[CLIENT].stop()["sent_bytes"]
            self.assertGreater(sent, 2 * 2 * FILES * FILE_BYTES, "the client sends each file to two servers")
        self.doCleanups()
        return found

    def test_beside_the_plain_network(self):
        found = {"plain": [], "over": []}
        for network in list(found) * TURNS:
            found[network].append(self._measure(network))
        plain, over = ([statistics.median(column) for column in zip(*runs)] for runs in found.values())
        print(f"\n{f'medians of {TURNS} turns':28}{'plain':>12}{'cluster-ip':>12}")
        for name, *figures in zip(ROWS, [*plain, None], over):
            print(f"{name:28}" + "".join(f"{'-' if figure is None else f'{figure:.1f}':>12}" for figure in figures))


if __name__ == "__main__":
    words = overlay.parse(__doc__, "glusterd", "mount.glusterfs")
    if "Short" not in words:
        virtual_nodes.require("fio")
    if not os.path.exists("/dev/fuse"):
        virtual_nodes.skip("there is no FUSE here (modprobe fuse)")
    unittest.main(argv=words, verbosity=2)
