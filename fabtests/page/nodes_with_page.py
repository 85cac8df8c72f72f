"""Virtual nodes with agents and the page, for long tests: with them, what jobs of users run lies where users can read it."""
import os
import shutil
import sys
import tempfile

sys.path.insert(0, os.path.join(os.path.dirname(os.path.realpath(__file__)), ".."))
import virtual_nodes  # noqa: E402


def require(*programs):
    """Skips the test where it cannot be run."""
    virtual_nodes.require("ip", "mpirun", *programs)


class Nodes:
    """`place` has copies of the plugin and of a program."""

    def __init__(self, count, provider, program, *options):
        self.place = tempfile.mkdtemp(prefix="page-test-", dir="/run")
        os.chmod(self.place, 0o755)
        for path in (os.path.join(provider, "libcluster-fi.so"), program):
            shutil.copy(path, self.place)
            os.chmod(os.path.join(self.place, os.path.basename(path)), 0o755)
        self.program = os.path.join(self.place, os.path.basename(program))
        os.environ["FI_PROVIDER_PATH"] = self.place
        self.cluster = virtual_nodes.make(count, "--rails", "2", "--agents", *options)
        self.directory = virtual_nodes.state.directory(self.cluster.name)
        self.address = virtual_nodes.state.load(self.cluster.name)["page"]["address"]
        with open(os.path.join(self.directory, "accounts", "password"), encoding="ascii") as file:
            self.password = file.read().strip()

    def agents(self, *words):
        result = virtual_nodes.vcluster("agents", "--name", self.cluster.name, *words, capture_output=True)
        assert result.returncode == 0, result.stderr

    def close(self):
        shutil.rmtree(self.place, ignore_errors=True)
