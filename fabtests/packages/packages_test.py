#!/usr/bin/env python3
"""The packages in a new Debian: they install with nothing but what they ask for, work there, and leave nothing behind.

    packages_test.py [--packages DIRECTORY] [--transcript FILE]

Without --packages they are built first, twice, which must give the same bytes. What was said and answered in the new
system is in the transcript.
"""
import argparse
import glob
import os
import re
import shutil
import subprocess
import sys
import tempfile
import unittest

sys.path.insert(0, os.path.join(os.path.dirname(os.path.realpath(__file__)), ".."))
import clean_debian  # noqa: E402
import virtual_nodes  # noqa: E402

TOP = os.path.realpath(os.path.join(os.path.dirname(os.path.realpath(__file__)), "..", ".."))
BUILT = os.path.join(TOP, "build", "package")
NAMES = ("libfabric-cluster", "libfabric-cluster-dev", "libfabric-cluster-utils")
SUITE = "bookworm"
COMPILER = ("gcc", "libc6-dev", "make", "pkg-config")  # for the program below and the examples
OPTIONS = None
SYSTEM = None
PROGRAM = """\
#include <rdma/fi_ext_cluster.h>
#include <stdio.h>
int main(void)
{
    struct fi_info *info;
    if (fi_getinfo(FI_VERSION(1, 17), NULL, NULL, 0, NULL, &info)) return 1;
    puts(FI_CLUSTER_STATS);
    return 0;
}
"""
MPI = ("--mca pml cm --mca mtl ofi --mca mtl_ofi_provider_include cluster -x FI_PROVIDER=cluster "
       "/usr/libexec/libfabric-cluster/mpi_perf --milliseconds 20")


def packages(directory):
    return [path for name in NAMES for path in glob.glob(os.path.join(directory, f"{name}_*.deb"))]


def dependencies(files, *fields):
    """What the packages ask for, but each other: the first of alternatives, without versions."""
    said = "".join(subprocess.run(["dpkg-deb", "-f", path, *fields], capture_output=True, text=True, check=True).stdout + "\n"
                   for path in files)
    wanted = re.sub(r"^[\w-]+:", "", said, flags=re.MULTILINE).replace("\n", ",").split(",")
    found = {re.split(r"[ (|]", entry.strip())[0] for entry in wanted if entry.strip()}
    return sorted(found - set(NAMES))


class Packages(unittest.TestCase):
    """In the order of their names: the system passes from one to the next."""

    def test_0_what_they_ask_for(self):
        """The system below has more than each package asks for, such as fi_info, which would hide what is forgotten here."""
        plugin, header, tools = packages(OPTIONS.packages)
        self.assertEqual(dependencies([plugin], "Depends"), ["libc6", "libfabric1"])
        # with a key, or for RDMA devices; it runs without
        self.assertEqual(dependencies([plugin], "Recommends"), ["ibverbs-providers", "libipsec-mb1", "libssl3"])
        self.assertEqual(dependencies([header], "Depends", "Recommends"), ["libfabric-dev"])
        needed = dependencies([tools], "Depends")
        self.assertEqual([name for name in ("iproute2", "libc6", "libpcap0.8", "mount", "python3") if name not in needed], [])
        self.assertEqual([name for name in needed if "mpi" in name], [], "one program needs it: recommended, not asked for")

    def test_1_install(self):
        SYSTEM.run("apt-get -qq install --no-install-recommends /packages/*.deb", alone=True)  # nothing is fetched
        listed = SYSTEM.run(f"dpkg -L {' '.join(NAMES)}").split()
        for path in ("/usr/bin/vcluster", "/etc/pam.d/cluster-page", "/usr/include/rdma/fi_ext_cluster.h", "/usr/share/man/man7/fi_cluster.7.gz",
                     "/usr/share/man/man7/fi_cluster_messages.7.gz"):
            self.assertIn(path, listed)
        self.assertIn("/lib/systemd/system/clusterd.socket", listed)
        self.assertIn("_dh_action=restart", SYSTEM.run("cat /var/lib/dpkg/info/libfabric-cluster-utils.postinst"), "of services, by an upgrade")

    def test_2_a_node(self):
        said = SYSTEM.run("vcluster up -n 1\nvcluster exec node1 fi_info -p cluster\nvcluster exec node1 cluster-info --host\n"
                          f"vcluster exec node1 mpirun -np 2 --oversubscribe {MPI} latency:8\nvcluster down")
        self.assertIn("provider: cluster\n", said)
        self.assertRegex(said, r'"measure": *"latency"', "eight bytes went and came inside a node")

    def test_3_two_nodes(self):
        said = SYSTEM.run(f"vcluster up -n 2\nvcluster mpirun -np 2 {MPI} --peer 10.64.0.2 latency:8\nvcluster list\nvcluster down")
        self.assertRegex(said, r'"measure": *"latency"', "and between two")

    def test_4_cluster_perf(self):
        said = SYSTEM.run("cluster-perf --smoke --places inside --peers cluster,tcp --measures latency")
        self.assertIn("cluster", said)
        self.assertIn("revision 0.", said)

    def test_5_a_program(self):
        with open(os.path.join(SYSTEM.root, "packages", "program.c"), "w", encoding="ascii") as file:
            file.write(PROGRAM)
        said = SYSTEM.run("cd /packages\ncc -Wall -Werror program.c $(pkg-config --cflags --libs libfabric-cluster) -o program\n"
                          "FI_PROVIDER=cluster,tcp ./program\nls $(pkg-config --variable=providerdir libfabric-cluster)")
        self.assertIn("cluster stats\nlibcluster-fi.so\n", said)

    def test_6_examples(self):
        said = SYSTEM.run("cp -r /usr/share/doc/libfabric-cluster-dev/examples /packages\nmake -s -C /packages/examples\n"
                          "make -s -C /packages/examples/dsm\n"
                          "vcluster up -n 1\nexport FI_PROVIDER=cluster\ncd /packages/examples\n"
                          "vcluster exec node1 ./shared_page 0 2 127.0.0.1:20000 &\n"
                          "vcluster exec node1 ./shared_page 1 2 127.0.0.1:20000\nwait $!\nvcluster down\n"
                          "vcluster up -n 2\nvcluster exec node1 dsm/sor 0 2 10.64.0.1:20001 &\n"
                          "vcluster exec node2 dsm/sor 1 2 10.64.0.1:20001\nwait $!\nvcluster down")
        self.assertIn("shared_page", said)
        self.assertIn("sor: 2 processes", said)

    def test_7_removal(self):
        listed = SYSTEM.run(f"dpkg -L {' '.join(NAMES)}").split()
        SYSTEM.run(f"apt-get -qq purge {' '.join(NAMES)}")
        left = sorted(SYSTEM.files() ^ SYSTEM.before)
        self.assertEqual(left, [], "as it was before")
        self.assertTrue(any(not os.path.lexists(SYSTEM.root + path) for path in listed))
        self.assertNotIn("libfabric-cluster", SYSTEM.run("dpkg -l | grep '^ii' | cut -c 1-60"))


def prepare(directory, transcript):
    """The new system with what the packages ask for, and without them."""
    system = clean_debian.CleanDebian(directory, transcript)
    files = packages(OPTIONS.packages)
    if len(files) != len(NAMES):
        raise RuntimeError(f"{OPTIONS.packages} has {len(files)} of {len(NAMES)} packages")
    wanted = [*dependencies(files, "Depends", "Recommends"), "libfabric-bin", *COMPILER]
    print(f"making a new Debian {SUITE} with {', '.join(wanted)}", flush=True)
    made = system.make(SUITE, wanted)
    if made.returncode != 0:
        raise RuntimeError(f"mmdebstrap: {made.stderr[-2000:]}")
    place = os.path.join(system.root, "packages")
    os.makedirs(place)
    for path in files:
        shutil.copy(path, place)
    with open(os.path.join(system.root, "etc", "hosts"), "w", encoding="ascii") as file:
        file.write("127.0.0.1 localhost\n")  # as every machine has, but none that was only just made
    system.before = system.files()
    return system


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--packages", metavar="DIRECTORY", help="where the packages are (default: built, in build/package)")
    parser.add_argument("--transcript", metavar="FILE", default=os.path.join(BUILT, "transcript.txt"))
    OPTIONS = parser.parse_args()
    if os.geteuid() != 0:
        virtual_nodes.skip("without root no system can be made")
    if OPTIONS.packages is None:
        OPTIONS.packages = BUILT
        if subprocess.run([os.path.join(TOP, "util", "package"), "--twice"], check=False).returncode != 0:
            sys.exit(1)
    if shutil.which("mmdebstrap") is None:
        virtual_nodes.skip("mmdebstrap is not installed (util/setup --for package)")
    virtual_nodes.require("ip")
    with tempfile.TemporaryDirectory(prefix="packages-") as scratch, open(OPTIONS.transcript, "w", encoding="utf-8") as said:
        SYSTEM = prepare(scratch, said)
        unittest.main(argv=sys.argv[:1], verbosity=2, failfast=True)
