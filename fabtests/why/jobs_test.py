"""Which processes cluster-why counts as a job, which one a user means, and what it takes from other nodes and processes."""
import json
import os
import socket
import subprocess
import sys
import unittest
from unittest import mock

from reports import Launcher, Operation, Peer, address, process, receive
from cluster_lib import ranks
from cluster_why_lib import collect, here, jobs, report
from cluster_why_lib.report import Node, Process


class Jobs(unittest.TestCase):
    def test_processes_of_one_launcher_and_those_that_communicate(self):
        first = [process(0, receive(1, 2.0), job="a"), process(1, job="a")]
        spawned = process(2, job="b", peers=[Peer(address(0))])
        alone = [process(8, receive(9, 2.0), job=""), process(9, job="")]
        foreign = process(3, job="a", uid=7)
        found = jobs.group([*first, spawned, *alone, foreign])
        self.assertEqual([(job.names, [each.rank for each in job.processes]) for job in found],
                         [(["a", "b"], [0, 1, 2]), ([], [8, 9]), (["a"], [3])])

    def test_what_a_rank_has_started_is_no_rank(self):
        """It carries the rank in its environment, as a daemon of the launcher on another node can."""
        shell = process(1, addresses=[])._replace(node="node9", pid=5)
        self.assertEqual(len(jobs.group([process(0), process(1), shell])[0].processes), 2)
        self.assertEqual(len(jobs.group([process(0), shell])[0].processes), 2, "rank 1 has no endpoint")

    def test_a_job_by_name_process_launcher_or_as_the_only_one(self):
        one = [process(0, job="a", ancestors=[77, 1])]
        other = [process(8, job="b")]
        both = jobs.group(one + other)

        def names(wanted, found=both):
            return jobs.find(found, wanted, one).names

        self.assertEqual((names("b"), names("a"), names("1000"), names("77")), (["b"], ["a"], ["a"], ["a"]))
        self.assertEqual(names(None, jobs.group(other)), ["b"])
        daemons = [process(rank, command="cluster-ip", job=str(rank)) for rank in (20, 21)]
        self.assertEqual(names(None, jobs.group(other + daemons)), ["b"], "daemons are no jobs")
        for wanted in ("1008", "c", None):  # 1008 is a process of another node
            with self.assertRaises(jobs.NoJob) as refused:
                names(wanted)
            self.assertIn("a: 1 process of solver on node1", str(refused.exception))

    def test_a_launcher_that_has_no_rank_here(self):
        """Its helpers on other nodes have its port in their command lines."""
        with socket.create_server(("127.0.0.1", 0)) as server:
            port = server.getsockname()[1]
            far = process(8, job="a", launcher=Launcher(900, "orted", "S", [port]))
            found = jobs.group([far, process(4, job="b", launcher=Launcher(901, "orted", "S", [1]))])
            self.assertEqual(jobs.find(found, str(os.getpid()), []).names, ["a"])
        with self.assertRaises(jobs.NoJob):
            jobs.find(found, str(os.getpid()), [])


class Reports(unittest.TestCase):
    def test_a_report_survives_the_way(self):
        node = Node("node1", ["10.0.0.1"], processes=[process(0, receive(1, 2.5), launcher=Launcher(1, "mpirun", "S", [4000]), peers=[Peer(address(1))])])
        self.assertEqual(report.read(Node, json.loads(json.dumps(report.write(node)))), node)

    def test_what_no_node_can_say_is_refused(self):
        good = report.write(process(0, receive(1, 2.0)))
        for name, value in (("node", 5), ("node", "\x1b[2J"), ("pid", "1"), ("pid", True), ("pid", 2**64), ("command", "x" * 2000),
                            ("operations", {}), ("operations", [5]), ("operations", [{"kind": "send"}]), ("launcher", []), ("no_call_s", "long"),
                            ("no_call_s", float("nan")), ("addresses", [[]])):
            with self.subTest(f"{name} {value!r:.30}"), self.assertRaises(report.Malformed):
                report.read(Process, {**good, name: value})
        self.assertEqual(report.read(Process, {**good, "of a later version": 1}).rank, 0)

    def test_a_process_that_reports_nonsense_hides_no_other(self):
        own = {"pid": os.getpid(), "command": "x", "endpoints": [{"endpoint": {"endpoint": "a", "no_call_ns": 3_000_000_000}}]}
        without, text = ({**own, "endpoints": [{"endpoint": {"endpoint": "b"}, "operations": [operation]}]} for operation in (
            {"operation": "send", "peer": 5}, {"operation": "send", "peer": "a", "waits_for": "x", "bytes": "8", "done_bytes": 0}))
        found = here.describe(json.dumps({"processes": [own, without, text]}))[:3]
        self.assertEqual([(each.addresses, each.trouble, each.no_call_s) for each in found],
                         [(["a"], "", 3.0), *[([], "its report is malformed", 0.0)] * 2])
        for text in ("", "[]", "{}", '{"processes": [{}]}'):
            with self.assertRaises(here.NoReport):
                here.describe(text)

    def test_operations_that_differ_only_in_their_age_are_one(self):
        operation = {"operation": "receive", "peer": "any", "bytes": 8, "done_bytes": 0, "tag": 5, "waits_for": "x"}
        ages = [{**operation, "age_ns": 10**9}, {**operation, "age_ns": 3 * 10**9}, {**operation, "operation": "buffer"}, operation]
        endpoint = {"endpoint": {"endpoint": "a"}, "operations": ages, "peers": []}
        found = here.describe(json.dumps({"processes": [{"pid": os.getpid(), "command": "x", "endpoints": [endpoint]}]}))[0]
        self.assertEqual(found.operations, [Operation("receive", "any", "x", 8, 0, 5, 3.0, 3)])

    def test_how_long_a_process_with_several_endpoints_has_made_no_call(self):
        """An endpoint says nothing of it while calls are made, and if there was never one."""
        def of(*endpoints):
            return here.describe(json.dumps({"processes": [{"pid": os.getpid(), "command": "x", "endpoints": [
                {"endpoint": {"endpoint": "a", **({"no_call_ns": seconds * 10**9} if seconds else {})}, "peers": [
                    {"peer": "b:1", "path": "shm"}] * peers} for seconds, peers in endpoints]}]}))[0].no_call_s

        self.assertEqual((of((5, 1)), of((5, 1), (0, 1)), of((5, 1), (0, 0)), of((5, 1), (4, 1)), of((5, 0)), of((0, 0))), (5, 0, 5, 4, 5, 0))

    def test_a_rank_without_endpoint_is_found(self):
        environment = {"PMIX_NAMESPACE": "lonely", "OMPI_COMM_WORLD_RANK": "3", "OMPI_COMM_WORLD_SIZE": "4"}
        with subprocess.Popen(["/bin/sh", "-c", "echo; read line"], stdin=subprocess.PIPE, stdout=subprocess.PIPE, env=environment) as child:
            try:
                child.stdout.readline()
                found = [each for each in here.describe('{"processes": []}') if each.job == "lonely"]
            finally:
                child.kill()
        self.assertEqual([(each.pid, each.rank, each.size, each.uid) for each in found], [(child.pid, 3, 4, os.getuid())])
        self.assertIn(found[0].state, ("S", "R"))  # it may still be on its way to sleep

    def test_the_kernel_tells_who_has_stopped_a_process(self):
        with subprocess.Popen(["/bin/sh", "-c", "kill -STOP $$"], stdin=subprocess.DEVNULL) as child:
            try:
                os.waitid(os.P_PID, child.pid, os.WSTOPPED | os.WNOWAIT)
                self.assertEqual(ranks.seen(child.pid)[:2], ("sh", "T"))
                self.assertIn(ranks.seen(child.pid).stop_signal, (0, 19))  # older kernels do not tell
            finally:
                child.kill()


class Asking(unittest.TestCase):
    def collected(self, peers_of, fail=(), names=()):
        """Asks nodes 10.0.0.1..., of which each process has the given peers; the first one is this node."""
        def processes(host):
            return [Process(f"node{host[-1]}", int(host[-1]), addresses=[f"{host}:5"], hosts=peers_of[host])]

        def ask(words, **_):
            host = words[1] if words[1] in peers_of else f"10.0.0.{words[1][-1]}"
            self.asked.append(words[1])
            text = json.dumps(report.write(Node(f"node{host[-1]}", [host], processes=processes(host))))
            return subprocess.CompletedProcess(words, 255 if host in fail else 0, "" if host in fail else text, "No route to host\n")

        self.asked = []
        with mock.patch.object(here, "look", lambda program: processes("10.0.0.1")), mock.patch.object(subprocess, "run", ask), \
                mock.patch.object(socket, "gethostbyaddr", side_effect=OSError), \
                mock.patch.object(socket, "getaddrinfo", lambda name, port: [(0, 0, 0, "", (f"10.0.0.{name[-1]}", 0))]):
            return collect.ByShell("ssh", ["why"], "info").collect(names)

    PEERS = {"10.0.0.1": ["10.0.0.1", "10.0.0.2"], "10.0.0.2": ["10.0.0.1", "10.0.0.3"], "10.0.0.3": []}

    def test_the_peers_of_peers_are_asked_once_each(self):
        found = self.collected(self.PEERS)
        self.assertEqual(sorted(self.asked), ["10.0.0.2", "10.0.0.3"])
        self.assertEqual([process.pid for node in found.nodes for process in node.processes], [1, 2, 3])
        self.assertEqual([each.pid for each in found.local], [1])

    def test_a_node_that_is_not_reached_is_named_with_its_reason(self):
        found = self.collected(self.PEERS, fail=("10.0.0.2",))
        self.assertEqual([(node.addresses, node.trouble) for node in found.nodes[1:]], [(["10.0.0.2"], "No route to host")])

    def test_named_nodes_only(self):
        found = self.collected(self.PEERS, names=["node3"])
        self.assertEqual((self.asked, len(found.nodes)), (["node3"], 2))


if __name__ == "__main__":
    sys.exit(unittest.main(verbosity=1))
