"""What both tests of cluster-info need: the program, and endpoints that do what they are told."""
import argparse
import json
import os
import subprocess
import sys
import tempfile

_HERE = os.path.dirname(os.path.realpath(__file__))
sys.path.insert(0, os.path.join(_HERE, ".."))
sys.path.insert(0, os.path.join(_HERE, "..", "vcluster"))

SECONDS_MAX = 120
SKIPPED = 77


class Options:
    """Of this run: set by prepare()."""

    build = endpoint_program = link = None


def prepare(text):
    parser = argparse.ArgumentParser(description=text)
    parser.add_argument("--build", required=True, help="the build tree")
    parser.add_argument("--endpoint-program", required=True, help="the program scripted_ep")
    parser.add_argument("--link", choices=("packet", "udp"), default="udp", help="of tests that try one (default: %(default)s)")
    options = parser.parse_args()
    Options.link = options.link
    Options.build, Options.endpoint_program = os.path.abspath(options.build), os.path.abspath(options.endpoint_program)
    if not os.path.exists(os.path.join(Options.build, "util", "info", "cluster-info")):
        print("skipped: cluster-info is not built (it needs CLI11)")
        sys.exit(SKIPPED)


def environment(**settings):
    """Ours, with this provider and no other settings of libfabric."""
    values = {name: value for name, value in os.environ.items() if not name.startswith("FI_")}
    return {**values, "FI_PROVIDER_PATH": os.path.join(Options.build, "prov", "cluster"), "FI_PROVIDER": "cluster",
            **settings}


def run(*words, before=(), **settings):
    """cluster-info by the command of the tree, perhaps behind another command that takes it to a node."""
    tool = os.path.join(_HERE, "..", "..", "util", "cluster-info")
    return subprocess.run([*before, tool, "--build", Options.build, *words], env=environment(**settings),
                          capture_output=True, text=True, timeout=SECONDS_MAX, check=False)


def ask(*words, **options):
    result = run("--json", *words, **options)
    if result.returncode != 0:
        raise RuntimeError(f"cluster-info: {result.returncode}: {result.stderr}")
    return json.loads(result.stdout)


class ScriptedEndpoint:
    """An endpoint, perhaps on another node."""

    def __init__(self, before=(), **settings):
        self.said = tempfile.TemporaryFile("w+")  # its log
        self.process = subprocess.Popen([*before, Options.endpoint_program], env=environment(**settings), text=True,
                                        stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=self.said)

    def begin(self, order):
        self.process.stdin.write(order + "\n")
        self.process.stdin.flush()

    def end(self):
        answer = self.process.stdout.readline().strip()
        if not answer:
            raise RuntimeError(f"the scripted ended with status {self.process.wait(SECONDS_MAX)}")
        return answer

    def log(self):
        self.said.seek(0)
        return self.said.read()

    def do(self, order):
        self.begin(order)
        return self.end()

    def close(self):
        self.process.stdin.close()
        self.process.stdout.close()
        self.said.close()
        return self.process.wait(SECONDS_MAX)


def introduce(one, other):
    one.do("peer " + other.do("name"))
    other.do("peer " + one.do("name"))


def talk(sender, receiver, count, size=8):
    receiver.begin(f"receive {count}")
    sender.do(f"send {count} {size}")
    receiver.end()
