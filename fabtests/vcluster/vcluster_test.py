"""util/vcluster: separate nodes that reach each other, clear errors, and nothing left behind."""
import contextlib
import io
import json
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import time
import unittest
import unittest.mock

sys.path.insert(0, os.path.join(os.path.dirname(os.path.realpath(__file__)), ".."))
import virtual_nodes  # noqa: E402
from vcluster_lib import cli, launchers  # noqa: E402

PREFIX = f"ctest-{os.getpid()}"


def run(*arguments, **options):
    return virtual_nodes.vcluster(*arguments, capture_output=True, timeout=60, **options)


def processes_with(word):
    """Command lines of processes of this machine that contain the word."""
    found = []
    for pid in filter(str.isdigit, os.listdir("/proc")):
        try:
            with open(f"/proc/{pid}/cmdline", "rb") as file:
                line = file.read().replace(b"\0", b" ").decode(errors="replace")
        except OSError:
            continue
        if word in line and int(pid) != os.getpid():
            found.append(line)
    return found


def eventually(condition, seconds=15, pause=0.05):
    deadline = time.monotonic() + seconds
    while not condition():
        if time.monotonic() > deadline:
            return False
        time.sleep(pause)
    return True


class Errors(unittest.TestCase):
    """Every refusal is one line that says what is wrong."""

    def refused(self, text, *arguments):
        result = run(*arguments)
        self.assertNotEqual(result.returncode, 0)
        self.assertEqual(len(result.stderr.strip().splitlines()), 1, result.stderr)
        self.assertIn(text, result.stderr)

    def test_refusals(self):
        self.refused("does not exist", "exec", "--name", PREFIX + "-none", "node1", "true")
        self.refused("does not exist", "down", "--name", PREFIX + "-none")
        self.refused("not a valid name", "up", "--name", "../etc")
        self.refused("allowed are", "up", "--name", PREFIX + "-x", "-n", "0")
        self.refused("allowed are", "up", "--name", PREFIX + "-x", "--rails", "99")
        self.refused("allowed are", "up", "--name", PREFIX + "-x", "--mtu", "10")
        self.refused("--rate fast", "up", "--name", PREFIX + "-x", "--rate", "fast")
        self.refused("invalid choice", "fly")

    def test_without_root(self):
        result = subprocess.run(
            ["setpriv", "--reuid", "65534", "--clear-groups", sys.executable, "-B", virtual_nodes.TOOL, "up"],
            capture_output=True, text=True, check=False)
        self.assertIn("needs root", result.stderr)
        self.assertEqual(result.returncode, 1)

    def test_help_names_every_option(self):
        text = run("up", "--help").stdout
        for option in ("--nodes", "--rails", "--mtu", "--rate", "--name"):
            self.assertIn(option, text)

    def test_an_error_of_the_system_names_call_and_file(self):
        for cause, said in ((lambda: os.pidfd_open(-1), r"^vcluster: state\.names: Invalid argument \(vcluster_lib/cli\.py, line \d+\)\n$"),
                            (lambda: os.readlink("/etc"), r"^vcluster: state\.names /etc: Invalid argument\n$")):
            with unittest.mock.patch("vcluster_lib.state.names", side_effect=lambda cause=cause: cause()), \
                    contextlib.redirect_stderr(io.StringIO()) as output:
                self.assertEqual(cli.main(["list"]), 1)
            self.assertRegex(output.getvalue(), said)


    def test_a_reader_that_has_seen_enough_is_no_error(self):
        done = subprocess.run(["/bin/sh", "-c", f"{sys.executable} -B {virtual_nodes.TOOL} list; echo $? >&2"], stdout=self.closed_pipe(), stderr=subprocess.PIPE,
                              text=True, check=False, timeout=60)
        self.assertEqual(done.stderr, "0\n")

    def closed_pipe(self):
        reading, writing = os.pipe()
        os.close(reading)
        self.addCleanup(os.close, writing)
        return writing


class OpenMpi(unittest.TestCase):
    """What `vcluster mpirun` decides for Open MPI, and what it leaves to the user."""

    RECORD = {"name": "x", "nodes": [{"label": "node1"}, {"label": "node2"}]}

    def parameters(self, words, kind="orte", **environment):
        values = {"PATH": os.environ["PATH"], "HOME": "/nowhere", "FI_PROVIDER": "cluster", **environment}
        with unittest.mock.patch.dict(os.environ, values, clear=True):
            return launchers.Launcher(kind, "mpirun", {}).parameters(words).get("OMPI_MCA_mca_base_param_files")

    def test_the_file_of_parameters(self):
        for kind, name in (("orte", "openmpi4.conf"), ("prrte", "openmpi5.conf")):
            own, ours = self.parameters(["-np", "4", "./program"], kind).split(",")
            self.assertEqual((own, os.path.basename(ours)), ("/nowhere/.openmpi/mca-params.conf", name))
            with open(ours, encoding="utf-8") as file:
                self.assertIn("\npml = cm\n", file.read())

    def test_a_user_who_chooses_is_left_alone(self):
        for words in (["--mca", "pml", "ob1", "./program"], ["--mca", "osc", "rdma", "./program"]):
            self.assertIsNone(self.parameters(words))
        for environment in ({"FI_PROVIDER": "tcp"}, {"FI_PROVIDER": ""}, {"OMPI_MCA_pml": "ob1"}, {"OMPI_MCA_mca_base_param_files": "x"}):
            self.assertIsNone(self.parameters(["./program"], **environment))
        self.assertIsNone(self.parameters(["./program"], "mpich"))

    def test_spawned_processes_share_slots_that_nobody_chose(self):
        def line(slots, *words, kind="orte"):
            return " ".join(launchers.Launcher(kind, "mpirun", {}).command(self.RECORD, [*words, "-np", "4", "./program"], slots, None))

        self.assertIn("--mca rmaps_base_oversubscribe 1 ", line(None))
        self.assertIn("--prtemca rmaps_default_mapping_policy :OVERSUBSCRIBE ", line(None, kind="prrte"))
        self.assertNotIn("versubscribe", line(3).lower())
        self.assertNotIn("versubscribe 1", line(None, "--nooversubscribe").lower())
        self.assertNotIn("versubscribe", line(None, kind="mpich").lower())


class Installation(unittest.TestCase):
    """Packages that a command needs, on a machine that has none of them and an apt that fails."""

    def setUp(self):
        directory = tempfile.TemporaryDirectory(prefix="installation-")
        self.addCleanup(directory.cleanup)
        self.asked = os.path.join(directory.name, "asked")
        self.programs = os.path.join(directory.name, "programs")
        os.mkdir(self.programs)
        for name in ("sh", "id", "mktemp", "tail", "rm", "dirname", "sed", "uname", "env", "unshare"):
            os.symlink(shutil.which(name), os.path.join(self.programs, name))
        self.program("dpkg-query", "exit 1")
        self.program("apt-get", f'echo "$*" >>{self.asked}\necho "E: Unable to locate package of this test"\nexit 100')

    def program(self, name, script):
        with open(os.open(os.path.join(self.programs, name), os.O_WRONLY | os.O_CREAT, 0o755), "w", encoding="ascii") as file:
            file.write(f"#!/bin/sh\n{script}\n")

    def run_command(self, *arguments):
        """The command's output, and the packages that it asked for."""
        result = run(*arguments, env={**os.environ, "PATH": self.programs})
        self.assertEqual(result.returncode, 1)
        with open(self.asked, encoding="ascii") as file:
            return result.stderr, file.read()

    def test_up_says_why_an_installation_failed_and_wants_no_compiler(self):
        said, asked = self.run_command("up", "--name", PREFIX + "-x")
        self.assertIn("E: Unable to locate package of this test\n", said)
        self.assertRegex(said.splitlines()[-1], r"^vcluster: could not install: .*\biproute2\b")
        self.assertIn("iproute2", asked)
        self.assertNotIn("clang", asked)

    def test_faults_want_the_compiler(self):
        for name in ("ip", "tc"):
            self.program(name, "exit 1")
        name = virtual_nodes.make(1, suffix="-faults").name
        self.addCleanup(run, "down", "--name", name)
        said, asked = self.run_command("faults", "--name", name, "--loss", "1%")
        self.assertRegex(said.splitlines()[-1], r"^vcluster: could not install: .*\bclang\b")
        self.assertIn("clang", asked)
        os.remove(self.asked)
        without = run("faults", "--name", name, "--list", env={**os.environ, "PATH": self.programs})
        self.assertEqual((without.returncode, without.stdout), (0, "no faults\n"), without.stderr)


class Nodes(unittest.TestCase):
    """One cluster of three nodes with two rails."""

    @classmethod
    def setUpClass(cls):
        cls.name = virtual_nodes.make(3, "--rails", "2", "--mtu", "9000", "--rate", "1gbit", suffix="-nodes").name

    def inside(self, node, script):
        result = run("exec", "--name", self.name, node, "sh", "-c", script)
        self.assertEqual(result.returncode, 0, result.stderr)
        return result.stdout.strip()

    def test_everything_is_separate(self):
        for kind in ("net", "uts", "ipc", "mnt"):
            seen = {self.inside(str(n), f"readlink /proc/self/ns/{kind}") for n in (1, 2, 3)}
            self.assertEqual(len(seen | {os.readlink(f"/proc/self/ns/{kind}")}), 4, kind)
        self.assertEqual(self.inside("node2", "hostname"), "node2")

    def test_shared_memory_and_temporary_files_do_not_meet(self):
        for place in ("/dev/shm", "$TMPDIR"):
            self.inside("1", f"echo one > {place}/x")
            self.assertEqual(self.inside("2", f"ls {place}"), "")
            self.assertEqual(self.inside("1", f"cat {place}/x; rm {place}/x"), "one")
        self.assertEqual(os.listdir(f"/run/vcluster/{self.name}/tmp"), [])

    def test_interfaces(self):
        links = json.loads(self.inside("3", "ip -json addr"))
        by_name = {link["ifname"]: link for link in links}
        self.assertEqual(set(by_name), {"lo", "eth0", "eth1"})
        self.assertIn("UP", by_name["lo"]["flags"])
        for rail in ("eth0", "eth1"):
            self.assertEqual(by_name[rail]["mtu"], 9000)
        self.assertIn("tbf", self.inside("3", "tc qdisc show dev eth1"))
        self.assertEqual(self.inside("3", "ls /sys/class/net"), "eth0\neth1\nlo")

    def test_the_switch_has_a_port_per_node_and_rail(self):
        ports = {link["ifname"] for link in json.loads(self.inside("switch", "ip -json link"))}
        wanted = {f"n{node}r{rail}" for node in (1, 2, 3) for rail in (0, 1)} | {"rail0", "rail1", "lo"}
        self.assertEqual(ports, wanted)

    def test_nodes_reach_each_other_by_name_on_every_rail(self):
        server = "import socket; s=socket.create_server(('', 0)); print(s.getsockname()[1], flush=True);" \
                 "c=s.accept()[0]; c.sendall(socket.gethostname().encode()); c.close()"
        for name in ("node2", "node2-rail0", "node2-rail1"):
            process = subprocess.Popen(
                [sys.executable, virtual_nodes.TOOL, "exec", "--name", self.name, "node2", sys.executable, "-c", server],
                stdout=subprocess.PIPE, text=True)
            port = process.stdout.readline().strip()
            client = f"import socket; print(socket.create_connection(('{name}', {port}), 10).recv(99).decode())"
            self.assertEqual(self.inside("1", f"{sys.executable} -c \"{client}\""), "node2")
            process.wait(10)
            process.stdout.close()

    def test_exec_gives_the_exit_status_and_keeps_the_directory(self):
        self.assertEqual(run("exec", "--name", self.name, "1", "sh", "-c", "exit 41").returncode, 41)
        self.assertEqual(self.inside("1", "pwd"), os.getcwd())
        result = run("exec", "--name", self.name, "1", "no-such-command-here")
        self.assertEqual((result.returncode, result.stderr.count("\n")), (127, 1))

    def test_unknown_node(self):
        for word in ("node4", "0", "nodeX"):
            result = run("exec", "--name", self.name, word, "true")
            self.assertIn(f"unknown node '{word}'", result.stderr)

    def test_name_taken_and_list(self):
        self.assertIn("exists already", run("up", "--name", self.name).stderr)
        listed = {entry["name"]: entry for entry in json.loads(run("list", "--json").stdout)}
        entry = listed[self.name]
        self.assertEqual((entry["state"], entry["rails"], entry["mtu"]), ("up", 2, 9000))
        self.assertEqual([node["name"] for node in entry["nodes"]], ["node1", "node2", "node3"])
        self.assertIn(self.name, run("list").stdout)

    def test_the_machine_itself_gets_no_link(self):
        links = {link["ifname"] for link in json.loads(subprocess.check_output(["ip", "-json", "link"]))}
        self.assertFalse({name for name in links if name.startswith(("rail", "n1r", "n2r", "n3r"))})


class Life(unittest.TestCase):
    """Creation and removal, also after kills."""

    def test_down_ends_what_runs_and_leaves_nothing(self):
        name = virtual_nodes.make(2, suffix="-life").name
        word = f"86{os.getpid()}"
        runs = [subprocess.Popen([sys.executable, virtual_nodes.TOOL, "exec", "--name", name, node, *words])
                for node, words in (("1", ["sleep", word]), ("2", ["setsid", "sh", "-c", f"trap '' TERM; sleep {word}; :"]))]
        self.assertTrue(eventually(lambda: len(processes_with(f"sleep {word}")) >= 3))
        self.assertEqual(run("down", "--name", name).returncode, 0)
        self.assertEqual(processes_with(f"sleep {word}"), [])
        self.assertFalse(os.path.exists(f"/run/vcluster/{name}"))
        for process in runs:
            process.wait(5)

    def test_clusters_side_by_side(self):
        one, two = (virtual_nodes.make(1, suffix=suffix).name for suffix in ("-one", "-two"))
        self.assertEqual(run("down", "--name", one).returncode, 0)
        self.assertEqual(run("exec", "--name", two, "1", "true").returncode, 0)
        self.assertEqual(run("down", "--name", two).returncode, 0)

    def test_up_again_after_a_lost_node(self):
        name = virtual_nodes.make(2, suffix="-lost").name
        listed = {entry["name"]: entry for entry in json.loads(run("list", "--json").stdout)}
        os.kill(listed[name]["nodes"][1]["pid"], signal.SIGKILL)
        self.assertTrue(eventually(lambda: "broken" in run("exec", "--name", name, "1", "true").stderr))
        self.assertEqual(run("up", "--name", name, "-n", "2").returncode, 0)
        self.assertEqual(run("exec", "--name", name, "2", "true").returncode, 0)
        self.assertEqual(run("down", "--name", name).returncode, 0)

    @staticmethod
    def nodes_made(name):
        """How many nodes a cluster has so far; -1 before there is anything of it."""
        try:
            with open(f"/run/vcluster/{name}/state.json", encoding="utf-8") as file:
                return len(json.load(file)["nodes"])
        except FileNotFoundError:
            return -1

    def test_up_again_after_an_interrupted_up(self):
        name = f"{PREFIX}-cut"
        for made in (0, 1, 4):  # cut with no node yet, with one, with half of them
            process = subprocess.Popen([sys.executable, virtual_nodes.TOOL, "up", "--name", name, "-n", "8"],
                                       stdout=subprocess.DEVNULL)
            self.assertTrue(eventually(lambda made=made: self.nodes_made(name) >= made, pause=0.002))
            process.kill()
            process.wait()
            self.assertIn("broken or incomplete", run("exec", "--name", name, "1", "true").stderr)
        self.assertEqual(run("up", "--name", name, "-n", "2").returncode, 0)
        self.assertEqual(run("exec", "--name", name, "2", "hostname").stdout, "node2\n")
        self.assertEqual(run("down", "--name", name).returncode, 0)
        self.assertFalse(os.path.exists(f"/run/vcluster/{name}"))


if __name__ == "__main__":
    virtual_nodes.require()
    unittest.main(verbosity=2)
