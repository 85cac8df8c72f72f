#!/usr/bin/env python3
"""Commands that the text of the README mentions, run as they stand there, and what it says about them.

    readme_words_test.py --build DIRECTORY        where plugin and cluster-info are built
"""
import argparse
import os
import re
import shutil
import subprocess
import sys
import tempfile
import unittest

sys.path.insert(0, os.path.join(os.path.dirname(os.path.realpath(__file__)), ".."))
import log_lines  # noqa: E402
import readme  # noqa: E402
import virtual_nodes  # noqa: E402

COMMANDS = ("fi_info -g FI_CLUSTER", "fi_info -p cluster", "FI_LOG_LEVEL=info fi_info -p cluster", "util/cluster-info",
            "util/cluster-info --ports", "setcap cap_net_raw+ep ./program", "util/cluster-why", "fi_getinfo: -61", "util/vcluster down")
TROUBLE = "When it does not work"
WITHOUT_RAW = ("setpriv", "--bounding-set", "-net_raw", "--inh-caps", "-net_raw")
OPTIONS = None


def run(line, before=(), **settings):
    """A line in bash, at the top of the tree; what it says and its exit status."""
    values = {**virtual_nodes.without_settings(), "FI_PROVIDER_PATH": os.path.join(OPTIONS.build, "prov", "cluster"), "MANPAGER": "cat", **settings}
    result = subprocess.run([*before, "bash", "-c", line], cwd=readme.TOP, env=values, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                            stderr=subprocess.STDOUT, text=True, errors="replace", check=False, timeout=60)
    return result.stdout, result.returncode


def symptoms():
    """The first column of the table about trouble."""
    section = readme.text().partition(f"\n## {TROUBLE}\n")[2].partition("\n## ")[0]
    return re.findall(r"^\| `([^`]+)`", section, re.MULTILINE)


class Words(unittest.TestCase):
    def says(self, line, pattern, status=0, **more):
        said, ended = run(line, **more)
        self.assertRegex(said, pattern, line)
        self.assertEqual(ended == 0, status == 0, said)

    def symptom(self, start, said):
        """The README has the words that a command says; `...` stands for any."""
        line, = (words for words in symptoms() if words.startswith(start))
        self.assertRegex(" ".join(said.split()), ".*".join(map(re.escape, line.split("..."))))

    def test_options_are_listed_with_defaults_and_limits(self):
        said, _ = run("fi_info -g FI_CLUSTER")
        self.assertGreater(said.count("# FI_CLUSTER_"), 10, said)
        self.assertRegex(said, r"default")

    def test_each_cause_of_61(self):
        self.assertIn("fi_getinfo: -61", symptoms())
        for line, settings in (("fi_info -p clster", {}), ("fi_info -p cluster", {"FI_PROVIDER_PATH": "/nowhere"}),
                               ("fi_info -p cluster", {"FI_PROVIDER": "tcp"}), ("fi_info -p cluster", {"FI_CLUSTER_PEER_TIMEOUT": "7"})):
            self.says(line, "fi_getinfo: -61", 1, **settings)
        self.says("fi_info -p cluster", "provider: cluster")
        self.says("FI_LOG_LEVEL=info fi_info -p cluster", "FI_CLUSTER_PEER_TIMEOUT=7", 1, FI_CLUSTER_PEER_TIMEOUT="7")
        plugin = os.path.join(OPTIONS.build, "prov", "cluster", "libcluster-fi.so")
        self.says("FI_LOG_LEVEL=debug fi_info -p cluster", "/nowhere", 1, FI_PROVIDER_PATH="/nowhere")
        self.says("fi_info -p cluster", "fi_getinfo: -61", 1, FI_PROVIDER_PATH=plugin)

    def test_cluster_info_says_why_nothing_is_offered(self):
        said, _ = run("util/cluster-info", FI_CLUSTER_IFACE="eth77")
        self.symptom("this provider offers nothing: FI_CLUSTER_IFACE", said)
        if os.geteuid() == 0:
            said, _ = run("util/cluster-info", before=("unshare", "--net"))
            self.symptom("this provider offers nothing: no network interface", said)
            said, _ = run("util/cluster-info", before=WITHOUT_RAW, FI_CLUSTER_LINK="packet")
            self.assertRegex(said, r"refused +packet .*CAP_NET_RAW")
        self.says("util/cluster-info", "FI_CLUSTER_LINKS", FI_CLUSTER_LINKS="udp")

    def test_the_rules_of_a_firewall_name_the_ports(self):
        self.says("util/cluster-info --ports", "udp dport 40000-40063 accept", FI_CLUSTER_PORTS="40000-40063")
        self.says("util/cluster-info --ports", "9228 } accept")  # that of groups

    def test_lines_of_the_log_are_those_of_the_manual(self):
        """fi_cluster_messages(7) has every line of the log; life.warnings makes the provider say them."""
        for start in ("FI_CLUSTER_LINK=packet is not possible: ", "peer ... is lost: "):
            self.assertTrue([words for words in symptoms() if words.startswith(start)], start)
            words = re.compile(".*".join(map(re.escape, start.split("..."))))
            self.assertTrue([heading for heading in log_lines.headings() if words.match(heading)], start)

    @unittest.skipUnless(os.geteuid() == 0 and shutil.which("setcap"), "needs root and setcap")
    def test_a_program_with_the_capability(self):
        """A user without it gets UDP; with it, raw frames."""
        with tempfile.TemporaryDirectory(prefix="readme-words-", dir="/var/tmp") as directory:
            os.chmod(directory, 0o755)
            shutil.copy(os.path.join(OPTIONS.build, "util", "info", "cluster-info"), os.path.join(directory, "program"))
            links = {}
            for command in ("true", "setcap cap_net_raw+ep ./program"):
                self.assertEqual(run(f"cd {directory} && {command}")[1], 0)
                said, _ = run(f"cd {directory} && ./program --host --json", before=("setpriv", "--reuid", "65534", "--regid", "65534", "--clear-groups"))
                links[command] = re.search(r'"link": ?"packet", ?"use": ?"(\w+)"', said)
                self.assertIsNotNone(links[command], said)
            self.assertEqual([found.group(1) for found in links.values()], ["refused", "chosen"])

    @unittest.skipUnless(shutil.which("man"), "no man")
    def test_manuals_are_shown(self):
        pages = [code for code in readme.said() if code.startswith("man -l ")]
        self.assertGreater(len(pages), 8)
        said, status = run(" && ".join(pages))
        self.assertEqual(status, 0, said[-500:])
        for name in (re.search(r"/([\w-]+)\.\d$", page).group(1) for page in pages):
            self.assertIn(name.upper() + "(", said)

    def test_cluster_why_answers_with_a_sentence(self):
        self.assertRegex(run("util/cluster-why")[0], r"(?i)process|rank|wait")


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--build", required=True, type=os.path.realpath)
    OPTIONS = parser.parse_args()
    unittest.main(argv=["readme_words_test"], verbosity=2)
