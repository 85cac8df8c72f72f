#!/usr/bin/env python3
"""Virtual machines on the command line: what cluster-machine saves, what cluster-run starts, what cluster-map shows."""
import contextlib
import io
import json
import os
import subprocess
import sys
import tempfile
import unittest
from unittest import mock

import doubles

from cluster_machine_lib import cli, launch, run_cli, store
from clusterd_lib import query
from clusterd_lib.errors import AgentError
from clusterd_lib.status import map_cli

UTIL = os.path.join(os.path.dirname(os.path.realpath(__file__)), "..", "..", "util")


class Case(unittest.TestCase):
    def setUp(self):
        home = tempfile.TemporaryDirectory()
        self.addCleanup(home.cleanup)
        self.agent = doubles.Agent(4)
        for patch in (mock.patch.dict(os.environ, {"XDG_CONFIG_HOME": home.name, "FI_PROVIDER_PATH": "/nowhere"}),
                      mock.patch.object(query, "ask_locally", self.agent.ask)):
            patch.start()
            self.addCleanup(patch.stop)
        for name in ("CLUSTER_MACHINE", "CLUSTER_JOB", "FI_PROVIDER"):
            os.environ.pop(name, None)

    @staticmethod
    def said(main, *words):
        """(status, output, errors)"""
        output, errors = io.StringIO(), io.StringIO()
        with contextlib.redirect_stdout(output), contextlib.redirect_stderr(errors):
            try:
                status = main(list(words))
            except SystemExit as end:
                status = end.code
        return status, output.getvalue(), errors.getvalue()


class Machines(Case):
    def test_saved_shown_removed(self):
        self.assertEqual(self.said(cli.main, "lab", "node1", "node3", "node1"), (0, "lab: node1, node3\n", ""))
        self.agent.nodes[2]["order"] = "drained"
        self.assertEqual(self.said(cli.main)[1], "lab: 1 of 2 nodes can run jobs\n  node1        up\n  node3        drained\n")
        self.assertEqual(self.said(cli.main, "lab", "--hostfile")[1], "node1\nnode3\n")
        self.assertEqual(json.loads(self.said(cli.main, "--json")[1]), {"lab": ["node1", "node3"]})
        self.assertEqual(os.stat(os.path.dirname(store.path())).st_mode & 0o777, 0o700)
        self.assertEqual(self.said(cli.main, "lab", "--remove")[0], 0)
        self.assertEqual(store.load(), {})

    def test_nodes_with_the_least_load(self):
        for node, load in zip(self.agent.nodes, (3.0, 0.5, 1.0, 0.1)):
            node["load"] = load
        self.agent.nodes[3]["state"] = "down"
        self.assertEqual(self.said(cli.main, "lab", "--any", "2")[1], "lab: node2, node3\n")
        self.assertIn("3 nodes can run jobs", self.said(cli.main, "lab", "--any", "4")[2])

    def test_what_is_refused(self):
        for words, reason in ((("lab", "node9"), "node9: unknown"), (("-x", "node1"), "-x"), (("a b", "node1"), "no name of a machine"),
                              (("../x", "node1"), "no name of a machine"), (("lab",), "you have saved none"),
                              (("lab", "node1", "--any", "1"), "not both"), (("--remove",), "which machine")):
            status, _, errors = self.said(cli.main, *words)
            self.assertTrue(status and reason in errors, (words, errors))
        os.makedirs(os.path.dirname(store.path()), exist_ok=True)
        for text in ("[]", "{", '{"lab": ["-x"]}', '{"lab": []}', '{"lab": [1]}'):
            with open(store.path(), "w", encoding="utf-8") as file:
                file.write(text)
            with self.assertRaises(AgentError, msg=text):
                store.load()


class Run(Case):
    def test_each_launcher_starts_the_same_ranks(self):
        values = launch.environment(["node1", "node3"], 4, {"node1": "10.0.0.1"}, "7")
        self.assertEqual((values["SIZE"], values["ADDRESSES"], values["CLUSTER_JOB"]), ("4", "10.0.0.1,10.0.0.1,node3,node3", "7"))
        self.assertRegex(values["FIRST"], r"^10\.0\.0\.1:2\d{4}$")
        for kind, wanted in (("orte", "--host node1:2,node3:2 "), ("prrte", "--host node1:2,node3:2 "), ("mpich", "-hosts node1,node3 -ppn 2 -n 4 "),
                             ("srun", "--nodelist=node1,node3 --nodes=2 --ntasks=4 --ntasks-per-node=2 ")):
            with mock.patch.object(launch, "_kind", lambda _wish, kind=kind: (kind, "/bin/launcher")):
                line, _ = launch.command("", ["node1", "node3"], 4, values, ["/bin/a", "b c"])
            self.assertIn(wanted, " ".join(line) + " ", kind)
            self.assertEqual(line[-2:], ["/bin/a", "b c"])

    def test_settings_of_the_user_take_precedence(self):
        with mock.patch.dict(os.environ, {"FI_PROVIDER": "tcp"}):
            self.assertEqual(launch.environment(["node1"], 1, {}, "")["FI_PROVIDER"], "tcp")
        self.assertEqual(launch.environment(["node1"], 1, {}, "")["FI_PROVIDER"], "cluster")

    def test_the_rank_has_one_name(self):
        script = os.path.join(UTIL, "cluster_machine_lib", "as_rank.sh")
        for given in ({"OMPI_COMM_WORLD_RANK": "3", "OMPI_COMM_WORLD_LOCAL_RANK": "1"}, {"PMI_RANK": "3", "MPI_LOCALRANKID": "1"},
                      {"SLURM_PROCID": "3", "SLURM_LOCALID": "1"}):
            said = subprocess.run([script, "sh", "-c", "echo $RANK $LOCAL_RANK"], env={"PATH": os.environ["PATH"], **given}, text=True,
                                  capture_output=True, check=True).stdout
            self.assertEqual(said, "3 1\n", given)

    def test_a_program_without_its_path_is_explained(self):
        script = os.path.join(UTIL, "cluster_machine_lib", "as_rank.sh")
        ended = subprocess.run([script, "nosuch"], text=True, capture_output=True, check=False)
        self.assertEqual((ended.returncode, ended.stderr),
                         (127, f"cluster-run: {os.uname().nodename} has no program nosuch; name one of the current directory ./nosuch\n"))

    def test_where_it_runs(self):
        for words, reason in (((), "which program"), (("./a",), "on which nodes"), (("-m", "lab", "./a"), "no machine 'lab'"),
                              (("--nodes", "a,-b", "./a"), "names of nodes"), (("--nodes", "node1", "-n", "0", "./a"), "--ranks 0")):
            status, _, errors = self.said(run_cli.main, *words)
            self.assertTrue(status and reason in errors, (words, errors))


class Map(Case):
    def test_a_cut_cable_is_in_the_map(self):
        for link in self.agent.links:
            if "node2" in (link["from"], link["peer"]):
                link["state"] = "down"
        text = self.said(map_cli.main)[1]
        self.assertRegex(text, r"node1 +eth0 .* reaches node3 node4; DOES NOT REACH node2\n")
        self.assertRegex(text, r"node2 +eth0 .*mtu 1500 +DOES NOT REACH node1 node3 node4\n")
        self.assertEqual(self.said(map_cli.main, "node2")[1].count("eth0"), 1)
        cut = [entry["node"] for entry in json.loads(self.said(map_cli.main, "--json")[1]) if len(entry["cut"]) == 3]
        self.assertEqual(cut, ["node2"])
        self.assertIn("node9: unknown", self.said(map_cli.main, "node9")[2])


if __name__ == "__main__":
    unittest.main(argv=[sys.argv[0]])
