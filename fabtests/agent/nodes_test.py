"""Real agents in four virtual nodes: what they detect when cables, processes and clocks fail, and how much they
cost."""
import json
import os
import signal
import subprocess
import sys
import time
import unittest

sys.path.insert(0, os.path.join(os.path.dirname(os.path.realpath(__file__)), ".."))
import virtual_nodes  # noqa: E402
from clusterd_lib import interpreter  # noqa: E402

interpreter.with_packages()
from clusterd_lib import survey  # noqa: E402
from clusterd_lib.measure import links  # noqa: E402
from clusterd_lib.protocol import traffic  # noqa: E402

NODES = 4
ETHERNET_HEADER = 14
STATUS = os.path.join(os.path.dirname(virtual_nodes.TOOL), "cluster-status")
PROCESSOR_SHARE_MAX, MEMORY_BYTES_MAX = 0.01, 60 << 20


class Agents(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.nodes = virtual_nodes.make(NODES, "--rails", "2", "--agents", "--no-page")

    def status(self, node=1, *options):
        return json.loads(self.nodes.run(node, sys.executable, "-B", STATUS, "--json", *options))

    def nodes_of(self, node=1):
        return {entry["name"]: entry for entry in self.status(node)["nodes"]}

    def states(self, node=1):
        return {name: entry["state"] for name, entry in self.nodes_of(node).items()}

    def until(self, seconds, condition):
        """Seconds until the condition holds, asked again and again."""
        started = time.monotonic()
        while time.monotonic() < started + seconds:
            if condition():
                return time.monotonic() - started
        self.fail(f"not within {seconds} s: {self.status()}")

    def agents(self, *words):
        result = virtual_nodes.vcluster("agents", "--name", self.nodes.name, *words, capture_output=True)
        self.assertEqual(result.returncode, 0, result.stderr)
        return result.stdout

    def history_at(self, word, node):
        return [event["at"] for event in self.status(1)["history"] if word in event["text"] and event["node"] == node]

    def test_1_all_know_all_and_every_link(self):
        self.until(30, lambda: all(len(self.states(node)) == NODES for node in range(1, NODES + 1)))
        self.until(30, lambda: len([link for link in self.status()["links"] if link["state"] == "up"]) == NODES * (NODES - 1) * 2)

        said = self.nodes.run(1, sys.executable, "-B", STATUS, "--rate", "node2")
        self.assertRegex(said, r"rail 0: \d+\.\d+ Gbit/s\nrail 1: ")
        rates = [link["rate_bits_per_second"] for link in self.status()["links"] if (link["from"], link["peer"]) == ("node1", "node2")]
        self.assertGreater(min(rates), 0)

    def test_2_a_cut_rail_is_seen_and_its_node_lives(self):
        self.addCleanup(self.nodes.run, "switch", "ip", "link", "set", "n2r0", "up")  # also for the following tests
        self.nodes.run("switch", "ip", "link", "set", "n2r0", "down")
        cut_at = time.time()
        self.until(10, lambda: self.history_at("rail 0 to node2 is down", "node2"))
        self.assertLess(self.history_at("rail 0 to node2 is down", "node2")[0] - cut_at, 3)
        self.until(10, lambda: any(entry["kind"] == "carrier" for entry in self.status()["findings"]))
        self.assertNotIn("down", self.states().values())
        # Its agent restarts while the address that it announces is unreachable.
        self.agents("--kill", "node2")
        self.until(10, lambda: self.states()["node2"] == "down")
        self.agents("--start", "node2")
        self.until(20, lambda: self.states()["node2"] == "returned" and self.nodes_of(1)["node2"]["rails"])
        self.nodes.run("switch", "ip", "link", "set", "n2r0", "up")
        self.until(20, lambda: all(link["state"] == "up" for link in self.status()["links"]))

    def test_3_a_killed_node_is_down_and_returns(self):
        self.agents("--kill", "node4")
        killed_at = time.time()
        self.until(10, lambda: self.states()["node4"] == "down")
        self.assertLess(self.history_at("down", "node4")[0] - killed_at, 5)
        self.agents("--start", "node4")
        self.until(10, lambda: self.states(3)["node4"] == "returned")

    def test_4_orders_reach_all_and_need_root(self):
        self.nodes.run(2, sys.executable, "-B", STATUS, "--drain", "node3", "--reason", "new disk")
        self.until(10, lambda: self.status(4)["nodes"][2]["order_reason"] == "drained by root: new disk")
        self.nodes.run(2, sys.executable, "-B", STATUS, "--isolate", "node3")
        self.until(10, lambda: self.states(1)["node3"] == "isolated")
        self.nodes.run(1, sys.executable, "-B", STATUS, "--resume", "node3")
        self.until(10, lambda: self.states(4)["node3"] == "up")
        words = self.nodes.command(1, "setpriv", "--reuid", "65534", "--clear-groups", sys.executable, "-B", STATUS, "--drain", "node3")
        refused = subprocess.run(words, capture_output=True, text=True, check=False)
        self.assertEqual(refused.returncode, 1)
        self.assertIn("may not operate: --operate", refused.stderr)

    def test_5_crossed_cables_and_another_mtu_are_noticed(self):
        for port, bridge in (("n3r0", "rail0"), ("n3r1", "rail1")):
            self.addCleanup(self.nodes.run, "switch", "ip", "link", "set", port, "master", bridge)
        self.addCleanup(self.nodes.run, 2, "ip", "link", "set", "eth1", "mtu", "1500")
        for port, bridge in (("n3r0", "rail1"), ("n3r1", "rail0")):
            self.nodes.run("switch", "ip", "link", "set", port, "master", bridge)
        self.nodes.run(2, "ip", "link", "set", "eth1", "mtu", "1400")
        self.until(40, lambda: {"cable", "mtu"} <= {entry["kind"] for entry in self.status()["findings"]})

    def endpoints_of(self, node):
        """Rows of a node that have peers."""
        return [row for row in self.status(3)["endpoints"] if row["node"] == node and row.get("peers")]

    def test_6_endpoints_are_seen_from_every_node_with_job_path_rates_and_what_is_stuck(self):
        words = ["fi_pingpong", "-p", "cluster", "-e", "rdm", "-I", "100000000", "-S", "1024"]
        plugins = os.path.dirname(virtual_nodes.build.path("cluster-fi"))
        environment = virtual_nodes.of_provider(plugins, CLUSTER_JOB="42")
        programs = []
        try:
            for node, more in ((1, []), (2, [self.nodes_of()["node1"]["rails"][0]["address"]])):
                programs.append(virtual_nodes.start(self.nodes.command(node, *words, *more), environment, stdout=subprocess.DEVNULL,
                                                    stderr=subprocess.DEVNULL))
                if node == 1:
                    self.until(20, lambda: ":47592" in self.nodes.run(1, "ss", "-ltn"))
            self.until(20, lambda: any(row.get("rates", {}).get("bytes_sent_per_second") for row in self.endpoints_of("node1")))
            row = self.endpoints_of("node1")[0]
            self.assertEqual((row["job"], row["command"]), ("42", "fi_pingpong"))
            self.assertEqual([(peer["node"], peer["path"] in ("packet", "udp")) for peer in row["peers"]], [("node2", True)])
            metrics = self.nodes.run(1, "curl", "-s", "http://127.0.0.1:7947/metrics")
            self.assertRegex(metrics, r'cluster_path_sent_frames_total\{job_id="42",path="(packet|udp)",peer="node2"\} [1-9]')
            # A stopped process does not answer, and its peer waits for it.
            os.kill(row["pid"], signal.SIGSTOP)
            self.until(20, lambda: any("stopped" in entry.get("trouble", "") for entry in self.status()["endpoints"]))
            os.kill(row["pid"], signal.SIGCONT)
            shown = self.nodes.run(4, sys.executable, "-B", STATUS)
            self.assertIn("fi_pingpong", shown)
        finally:
            for program in programs:
                program.kill()
                program.wait()

    def test_7_a_stopped_agent_says_so_at_once(self):
        self.agents("--stop", "node4")
        self.until(5, lambda: [node for node in self.status()["nodes"] if node["reason"] == "its agent was stopped"])

    def sent(self, node):
        """The bytes that left a node, from the IP header on, without others' broadcasts; nothing else runs there."""
        counted = [entry["stats64"]["tx"] for name, entry in self.nodes.links(node).items() if name != "lo"]
        return sum(entry["bytes"] - ETHERNET_HEADER * entry["packets"] for entry in counted)

    def test_8_what_an_agent_costs(self):
        record = virtual_nodes.state.load(self.nodes.name)
        pid = record["agents"]["node1"]["pid"]

        def ticks():
            with open(f"/proc/{pid}/stat", encoding="ascii") as file:
                return sum(map(int, file.read().rpartition(")")[2].split()[11:13]))

        self.until(60, lambda: time.sleep(20) or True)  # nobody looks any more, so this measures the agent alone
        before, sent_before, started = ticks(), self.sent(1), time.monotonic()
        time.sleep(30)
        passed = time.monotonic() - started
        share = (ticks() - before) / os.sysconf("SC_CLK_TCK") / (time.monotonic() - started)
        with open(f"/proc/{pid}/status", encoding="ascii") as file:
            memory = next(int(line.split()[1]) for line in file if line.startswith("VmRSS:")) << 10
        print(f"an agent of {NODES} nodes: {share * 100:.2f} % of a processor, {memory / 1e6:.0f} MB")
        sent = (self.sent(1) - sent_before) / passed
        bound = traffic.at_rest(NODES) + links.bytes_per_second(1500) + survey.card_bytes_per_second(NODES)
        print(f"it sends {sent:.0f} B/s, at most {bound:.0f}")
        self.assertLess(sent, bound)
        self.assertLess(share, PROCESSOR_SHARE_MAX)
        self.assertLess(memory, MEMORY_BYTES_MAX)


if __name__ == "__main__":
    virtual_nodes.require("ip", "fi_pingpong", "curl")
    unittest.main()
