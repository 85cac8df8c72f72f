"""The metrics of an agent: names, units and bounds, who may read them, and that dashboard and alerts match them.

promtool (Debian: prometheus) checks names and rules; without it those tests are skipped. The rest needs
python3-prometheus-client, as the agent does.
"""
import asyncio
import collections
import json
import os
import re
import shutil
import subprocess
import sys
import types
import unittest

HERE = os.path.dirname(os.path.realpath(__file__))
TOP = os.path.join(HERE, "..", "..")
sys.path.insert(0, os.path.join(TOP, "util"))
from cluster_lib import ranks  # noqa: E402
from clusterd_lib import history, interpreter, query  # noqa: E402

try:
    interpreter.with_packages(install=False)
except interpreter.AgentError as error:
    print(f"skipped: {error}")
    sys.exit(77)

from prometheus_client.parser import text_string_to_metric_families  # noqa: E402

from clusterd_lib.measure import accounting  # noqa: E402
from clusterd_lib.metrics import families, scrape  # noqa: E402
from clusterd_lib.protocol.membership import Member  # noqa: E402

SHARE = os.path.join(TOP, "packaging", "prometheus")
PROMTOOL = shutil.which("promtool")
RAIL = {"device": "lo", "address": "10.0.0.1", "network": "10.0.0.0/24", "mtu": 9000, "speed": 1000, "duplex": "full", "up": True}
COUNTERS = {"frames_sent": 10, "bytes_sent": 4096, "bytes_received": 0, "refused_forged": 0, "timeouts": 0}


def endpoint(name="10.0.0.1:1", peers=(), **counters):
    return {"endpoint": {"endpoint": name, "unexpected_messages": 2}, "counters": {**COUNTERS, **counters}, "peers": list(peers)}


def peer(name="10.0.0.2:7", silent_ns=0, in_flight=0, sent=100):
    return {"peer": name, "path": "packet", "queued_frames": 0, "sent_frames": sent, "lost_frames": 1,
            "retransmitted_frames": 1, "silent_ns": silent_ns, "rails": [{"in_flight_frames": in_flight, "rtt_ns": 25_000}]}


def process(pid, *endpoints):
    return {"pid": pid, "command": "a.out", "endpoints": list(endpoints)}


def node_at(address):
    return {"10.0.0.2": "node2"}.get(address, "")


def accounting_of(jobs):
    return accounting.Accounting(lambda pid: jobs.get(pid, ""), node_at)


class Totals(unittest.TestCase):
    def setUp(self):
        self.accounting = accounting_of({1: "7", 2: "7"})

    def sent(self, job="7"):
        return self.accounting.jobs[job].counted["bytes_sent"]

    def test_a_total_never_drops_when_endpoints_end_or_begin_anew(self):
        self.accounting.look([process(1, endpoint()), process(2, endpoint())], 0)
        self.assertEqual(self.sent(), 8192)
        self.accounting.look([process(2, endpoint(bytes_sent=5000))], 2)
        self.assertEqual(self.sent(), 8192 + 904)
        self.accounting.look([process(2, endpoint(bytes_sent=100))], 4)
        self.assertEqual(self.sent(), 8192 + 904 + 100)

    def test_rates_are_of_the_time_between_two_looks(self):
        first, second = endpoint(), endpoint(bytes_sent=4096 + 3000)
        self.accounting.look([process(1, first)], 10)
        self.assertNotIn("rates", first)
        self.accounting.look([process(1, second)], 12)
        self.assertEqual(second["rates"]["bytes_sent_per_second"], 1500)

    def test_a_peer_that_owes_an_answer_is_stuck_after_a_second(self):
        silent = endpoint(peers=[peer(silent_ns=3 * 10**9, in_flight=4), peer(silent_ns=3 * 10**9), peer(in_flight=4)])
        self.accounting.look([process(1, silent)], 0)
        self.assertEqual(silent["stuck"], ["10.0.0.2:7 (node2) silent for 3 s, owes 4 frames"])
        self.assertEqual(self.accounting.jobs["7"].gauges["stuck"], 1)

    def test_jobs_are_bounded_and_forgotten(self):
        many = accounting_of({pid: f"job{pid}" for pid in range(100)})
        many.look([process(pid, endpoint(peers=[peer()])) for pid in range(100)], 0)
        self.assertEqual(len(many.jobs), accounting.JOBS_MAX + 1)
        self.assertEqual(sum(totals.counted["bytes_sent"] for totals in many.jobs.values()), 100 * 4096)
        many.look([], accounting.KEEP_SECONDS + 1)
        self.assertEqual((many.jobs, many.paths), ({}, {}))

    def test_the_job_of_a_process_is_in_its_environment(self):
        environment = {"SLURM_JOB_ID": "42", "PMIX_NAMESPACE": "x"}
        with subprocess.Popen(["/bin/sh", "-c", "echo; read line"], stdin=subprocess.PIPE, stdout=subprocess.PIPE, env=environment) as child:
            try:
                child.stdout.readline()
                self.assertEqual(ranks.job_of(child.pid), "42")
            finally:
                child.kill()
        self.assertEqual(ranks.job_of(0), "")


def link(name, state="up", loss=0.0):
    return {"peer": name, "rail": 0, "state": state, "loss": loss, "rtt_us": 51.2, "path_mtu": 1500, "mtu": 9000}


def daemon(nodes=3, links=None):
    """The part of a daemon that the metrics read."""
    seen = accounting_of({1: "7"})
    seen.look([process(1, endpoint(peers=[peer()]))], 0)
    links = [link(f"node{number}") for number in range(2, nodes + 1)] if links is None else links
    events = history.History()
    events.add("state", "node2", "up")
    members = {f"node{number}": Member(f"node{number}", 1, 0, ("", 0), order=1 if number == 2 else 0) for number in range(1, nodes + 1)}
    return types.SimpleNamespace(
        settings=types.SimpleNamespace(name="node1", cluster="c", metrics=["10.9.0.0/16"]),
        survey=types.SimpleNamespace(findings=lambda: [{"kind": "mtu"}, {"kind": "mtu"}], rails=[RAIL], links=lambda: links,
                                     load=types.SimpleNamespace(latest={"cpu": 25.0, "memory": 50.0})),
        transport=types.SimpleNamespace(sent_bytes=1000, sent_messages=10, refused=collections.Counter({"cut short": 2})),
        history=events, agent=types.SimpleNamespace(membership=types.SimpleNamespace(members=members)),
        endpoints=types.SimpleNamespace(accounting=seen))


async def nothing():
    pass


def metrics_of(found):
    return scrape.Metrics(found, nothing, lambda address: address == "10.0.0.2")


def answer(found, address="127.0.0.1", line="GET /metrics HTTP/1.1", accept="*/*"):
    head = f"{line}\r\nAccept: {accept}\r\n\r\n".encode()
    return asyncio.run(metrics_of(found)._answer(address, head))  # pylint: disable=protected-access


def text_of(found):
    return answer(found)[2].decode()


def samples_of(found):
    return [sample for family in text_string_to_metric_families(text_of(found)) for sample in family.samples]


class Text(unittest.TestCase):
    def value(self, name, **labels):
        found = [sample.value for sample in samples_of(daemon()) if sample.name == name and labels.items() <= sample.labels.items()]
        self.assertEqual(len(found), 1, (name, labels))
        return found[0]

    def test_units_are_seconds_bytes_and_ratios(self):
        self.assertAlmostEqual(self.value("clusterd_link_round_trip_seconds", peer="node2"), 51.2e-6)
        self.assertAlmostEqual(self.value("cluster_path_round_trip_seconds", peer="node2", job_id="7"), 25e-6)
        self.assertEqual(self.value("clusterd_processor_used_ratio"), 0.25)
        self.assertEqual(self.value("clusterd_memory_used_ratio"), 0.5)
        self.assertEqual(self.value("clusterd_rail_speed_bytes"), 1.25e8)
        self.assertEqual(self.value("clusterd_rail_mtu_bytes"), 9000)

    def test_what_is_counted(self):
        self.assertEqual(self.value("cluster_sent_bytes_total", job_id="7"), 4096)
        self.assertEqual(self.value("cluster_sent_frames_total", job_id="7"), 10)
        self.assertEqual(self.value("cluster_path_sent_frames_total", job_id="7", peer="node2", path="packet"), 100)
        self.assertEqual(self.value("cluster_refused_arrivals_total", reason="forged"), 0)
        self.assertEqual(self.value("clusterd_findings", kind="mtu"), 2)
        self.assertEqual(self.value("clusterd_events_total", kind="state"), 1)
        self.assertEqual(self.value("clusterd_nodes", state="up"), 3)
        self.assertEqual(self.value("clusterd_nodes_drained"), 1)
        self.assertEqual(self.value("clusterd_node_state", node="node3", state="up"), 1)
        self.assertEqual(self.value("clusterd_node_info", node="node1", cluster="c"), 1)

    def test_a_thousand_nodes_do_not_make_it_endless_and_the_worst_is_shown(self):
        links = [link(f"node{number}") for number in range(2, 1001)] + [link("node900", state="down")]
        found = daemon(1000, links)
        found.agent.membership.members["node999"].state = "down"
        samples = samples_of(found)
        self.assertLess(len(samples), 2000)
        down = {(sample.name, *sorted(sample.labels.values())) for sample in samples if sample.value == 0}
        self.assertIn(("clusterd_link_up", "0", "node900"), down)
        self.assertIn(("clusterd_node_state", "node999", "up"), down)
        cut = {sample.labels["of"]: sample.value for sample in samples if sample.name == "clusterd_series_left_out"}
        self.assertEqual(cut, {"nodes": 1000 - families.NODES_MAX, "links": 1000 - families.LINKS_MAX})

    @unittest.skipUnless(PROMTOOL, "promtool is not installed: util/setup, or Debian's prometheus")
    def test_promtool_finds_nothing(self):
        result = subprocess.run([PROMTOOL, "check", "metrics"], input=text_of(daemon()), capture_output=True, text=True, check=False)
        self.assertEqual((result.returncode, result.stdout, result.stderr), (0, "", ""))


class Access(unittest.TestCase):
    def test_nodes_and_permitted_networks_may_read(self):
        for address, status in (("127.0.0.1", 200), ("10.0.0.2", 200), ("10.9.3.4", 200), ("10.0.0.3", 403)):
            self.assertEqual(answer(daemon(), address)[0], status, address)
        self.assertIn(b"--metrics", answer(daemon(), "10.0.0.3")[2])
        self.assertEqual(answer(daemon(), line="GET / HTTP/1.1")[0], 404)
        self.assertEqual(answer(daemon(), line="GET")[0], 400)

    def test_a_scraper_chooses_the_format(self):
        self.assertIn("openmetrics", answer(daemon(), accept="application/openmetrics-text; version=1.0.0")[1])
        self.assertIn("text/plain", answer(daemon())[1])

    def test_one_port_serves_agents_and_scrapers(self):
        async def run():
            async def echo(_caller, operation, arguments):
                return [operation, arguments]

            server = query.Server("node1", b"k" * 16, echo, metrics_of(daemon()))
            await server.listen("127.0.0.1", 0)
            port = server.ports()[0]
            self.assertEqual(await query.ask("node1", "127.0.0.1", port, b"k" * 16, "card", {"a": 1}, 10), ["card", {"a": 1}])
            replies = []
            for request in (b"GET /metrics HTTP/1.1\r\nHost: a\r\n\r\n", b"GET /" + b"a" * 100_000 + b"\r\n\r\n", b"POST / HTTP/1.1\r\n\r\n"):
                reader, writer = await asyncio.open_connection("127.0.0.1", port)
                writer.write(request)
                try:
                    replies.append(await asyncio.wait_for(reader.read(-1), 10))
                except ConnectionError:
                    replies.append(b"")
                writer.close()
            server.close()
            return replies

        good, long, post = asyncio.run(run())
        self.assertTrue(good.startswith(b"HTTP/1.1 200 OK\r\n"))
        self.assertIn(b"clusterd_nodes{", good)
        self.assertEqual(long, b"")
        self.assertNotIn(b"HTTP", post)


class Shipped(unittest.TestCase):
    def used_but_missing(self, expressions):
        exported = {sample.name for sample in samples_of(daemon())}
        return {name for text in expressions for name in re.findall(r"\bclusterd?_[a-z_]+", text)} - exported

    def test_the_dashboard_shows_what_there_is(self):
        with open(os.path.join(SHARE, "cluster.dashboard.json"), encoding="utf-8") as file:
            dashboard = json.load(file)
        targets = [target["expr"] for panel in dashboard["panels"] for target in panel["targets"]]
        queries = [entry["query"]["query"] for entry in dashboard["templating"]["list"] if isinstance(entry["query"], dict)]
        self.assertGreater(len(targets), 10)
        self.assertEqual(self.used_but_missing(targets + queries), set())
        self.assertEqual(len({panel["id"] for panel in dashboard["panels"]}), len(dashboard["panels"]))

    def test_alerts_ask_for_what_there_is(self):
        with open(os.path.join(SHARE, "cluster.rules.yml"), encoding="utf-8") as file:
            expressions = re.findall(r"^ +expr: (.*)$", file.read(), re.MULTILINE)
        self.assertEqual(len(expressions), 7)
        self.assertEqual(self.used_but_missing(expressions), set())

    @unittest.skipUnless(PROMTOOL, "promtool is not installed: util/setup, or Debian's prometheus")
    def test_promtool_takes_the_alerts_and_they_fire_when_they_should(self):
        for words in (["check", "rules", os.path.join(SHARE, "cluster.rules.yml")], ["test", "rules", os.path.join(HERE, "alerts_test.yml")]):
            result = subprocess.run([PROMTOOL, *words], capture_output=True, text=True, check=False)
            self.assertEqual(result.returncode, 0, result.stdout + result.stderr)

    @unittest.skipUnless(PROMTOOL, "promtool is not installed: util/setup, or Debian's prometheus")
    def test_promtool_takes_the_expressions_of_the_dashboard(self):
        with open(os.path.join(SHARE, "cluster.dashboard.json"), encoding="utf-8") as file:
            panels = json.load(file)["panels"]
        rules = [{"record": "a:b", "expr": target["expr"].replace("$__rate_interval", "1m"), "labels": {"n": f"{panel['id']}{target['refId']}"}}
                 for panel in panels for target in panel["targets"]]
        with subprocess.Popen(
                [PROMTOOL, "check", "rules", "/dev/stdin"], stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                stderr=subprocess.STDOUT, text=True) as promtool:
            said, _ = promtool.communicate(json.dumps({"groups": [{"name": "dashboard", "rules": rules}]}))
        self.assertEqual(promtool.returncode, 0, said)


if __name__ == "__main__":
    unittest.main()
