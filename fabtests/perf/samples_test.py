#!/usr/bin/env python3
"""The arithmetic of cluster-perf, without measuring: which runs meet, medians, ratios, what a sound report is."""
import copy
import os
import sys
import tempfile
import types
import unittest

sys.path.insert(0, os.path.join(os.path.dirname(os.path.realpath(__file__)), "..", "..", "util"))
from cluster_perf_lib import (choices, errors, limits, markdown, overview, paper_figures, paper_programs, papers, placement, plan,  # noqa: E402
                              report, schedule, table, thresholds, transports, ucx, verdict)
from cluster_perf_lib.rows import rows  # noqa: E402
from cluster_perf_lib.samples import Samples, ratios  # noqa: E402


def sample(value, unit, line_ns, measure="latency", size=8, window=1):
    return {"measure": measure, "bytes": size, "window": window, "value": value, "unit": unit, "messages": 10, "volume": 80,
            "seconds": 0.1, "cpu_seconds": 0.2, "line_ns": line_ns}


def transport(name, place=transports.INSIDE, kind=None):
    return next(entry for entry in transports.choose(place, [name], []) if kind in (None, entry.kind))


class Arithmetic(unittest.TestCase):
    def setUp(self):
        self.collected = Samples()
        self.group = plan.Group("latency", [plan.Item("latency", 8)])

    def add(self, name, *samples):
        for run, entry in enumerate(samples):
            self.collected.add("inside", transport(name), self.group, run, [entry])

    def result(self, name):
        return next(result for result in self.collected.results() if result["transport"] == name)

    def test_only_runs_of_the_near_phase_enter_a_median(self):
        self.add("cluster", sample(1, "us", [50, 50]), sample(3, "us", [50, 60]), sample(90, "us", [50, 170]),
                 sample(99, "us", [170, 50]))
        result = self.result("cluster")
        self.assertEqual((result["median"], result["smallest"], result["largest"]), (2, 1, 3))
        self.assertEqual((result["runs"], result["runs_left_out"], result["phase"]), (2, 2, "near"))

    def test_what_never_was_near_is_marked_and_wants_another_run(self):
        self.add("cluster", sample(1, "us", [50, 50]))
        self.add("shm", sample(4, "us", [170, 170]))
        self.assertEqual(self.result("shm")["phase"], "far")
        self.assertTrue(self.collected.lacks_near_run("inside", transport("shm"), self.group))
        self.assertFalse(self.collected.lacks_near_run("inside", transport("cluster"), self.group))
        self.assertFalse(ratios(self.collected.results())[0]["same_phase"])

    def test_an_unknown_distance_excludes_nothing_and_asks_for_nothing(self):
        self.add("cluster", sample(1, "us", [0, 0]))
        self.assertEqual(self.result("cluster")["phase"], "unknown")
        self.assertFalse(self.collected.lacks_near_run("inside", transport("cluster"), self.group))

    def test_a_ratio_above_one_is_better_whatever_the_unit(self):
        self.add("cluster", sample(1, "us", [50, 50]), sample(8e9, "B/s", [50, 50], "bandwidth"))
        self.add("shm", sample(2, "us", [50, 50]), sample(4e9, "B/s", [50, 50], "bandwidth"))
        self.assertEqual([ratio["times"] for ratio in ratios(self.collected.results())], [2, 2])

    def test_the_table_compares_with_the_best_peer(self):
        self.add("cluster", sample(1, "us", [50, 50]))
        self.add("shm", sample(3, "us", [50, 50]))
        self.add("tcp", sample(4, "us", [170, 170]))
        text = table.render(report.make({}, {}, self.collected))
        self.assertIn("x 3.00 shm\n", text)
        self.assertNotIn("~", text)

    def test_a_report_that_lacks_something_is_not_sound(self):
        self.add("cluster", sample(1, "us", [50, 50]))
        whole = report.make({}, {}, self.collected)
        self.assertEqual(report.faults(whole), [])
        for kind, field in (("samples", "line_ns"), ("results", "median"), ("results", "phase")):
            broken = copy.deepcopy(whole)
            del broken[kind][0][field]
            self.assertEqual(len(report.faults(broken)), 1, field)
        for field, value in (("median", float("inf")), ("median", -1.0), ("unit", "furlongs")):
            broken = copy.deepcopy(whole)
            broken["results"][0][field] = value
            self.assertTrue(report.faults(broken), value)


class Limits(unittest.TestCase):
    """Figures beside the bare limit of the same run, and peers that are ahead."""

    def setUp(self):
        self.collected = Samples()
        self.group = plan.Group("some", [])

    def add(self, place, name, *samples, kind=None):
        for run, entry in enumerate(samples):
            self.collected.add(place, transport(name, place, kind), self.group, run, [entry])

    def text(self):
        return table.render(report.make({}, {}, self.collected))

    def test_a_time_is_so_many_times_the_limit_and_a_rate_a_share_of_it(self):
        near = [50, 50]
        self.add("inside", "cluster", sample(0.2, "us", near), sample(6e9, "B/s", near, "put", 1 << 20, 16),
                 sample(10, "us", near, size=1 << 20))
        self.add("inside", "bare", sample(0.1, "us", near, "ring"), sample(1.2e10, "B/s", near, "copy", 1 << 20))
        text = self.text()
        self.assertIn("2.0 of 0.10 us", text)
        self.assertIn("0.50 of 12.00 GB/s", text)
        self.assertIn("0.11 of 87.38 us", text)  # the time of one copy
        self.assertEqual([(entry["bare"], round(entry["times"], 3)) for entry in limits.beside(self.collected.results())],
                         [("ring", 0.5), ("copy", 0.5), ("copy", 8.738)])

    def test_a_limit_of_another_phase_or_size_is_none(self):
        self.add("between", "cluster/udp", sample(4, "us", [50, 50]), sample(1e9, "B/s", [50, 50], "bandwidth", 4096, 64))
        self.add("between", "bare", sample(2, "us", [170, 170], "frame", 64), sample(2e9, "B/s", [50, 50], "stream", 65536, 16))
        results = self.collected.results()
        self.assertEqual([limits.of(result, results) for result in results], [None] * 4)
        self.assertNotIn(" of ", self.text().partition("Medians")[0])

    def test_of_several_transports_the_nearest_to_the_limit_is_shown(self):
        near = [50, 50]
        self.add("between", "cluster/packet", sample(3e9, "B/s", near, "bandwidth", 1 << 20, 16))
        self.add("between", "cluster/udp", sample(4e9, "B/s", near, "bandwidth", 1 << 20, 16))
        self.add("between", "bare", sample(5e9, "B/s", near, "stream", 1 << 20, 16))
        self.assertIn("0.80 of 5.00 GB/s", self.text())

    def test_every_limit_is_measured_where_its_figure_is(self):
        for mode in (plan.full(), plan.readme()):
            for place, items in (("inside", mode.bare_inside), ("between", mode.bare_between)):
                bare = [{"place": place, "level": "bare", "transport": "bare", "measure": item.measure, "bytes": item.bytes,
                         "median": 1, "unit": "us", "phase": "near"} for item in items]
                found = {}
                for group in [group for group in mode.groups if place in group.places]:
                    for item in group.items:
                        limit = limits.of({"place": place, "level": "fabric", "measure": item.measure, "bytes": item.bytes,
                                           "wait": group.wait, "median": 1, "unit": "us", "phase": "near"}, bare)
                        if limit:
                            found[item.measure, item.bytes, group.wait] = limit["measure"]
                spinning = {(measure, size) for measure, size, wait in found if wait == "spin"}
                size = 8 if place == "inside" else 64
                self.assertLessEqual({("latency", size), ("rate", 8), ("bandwidth", 65536), ("bandwidth", 1 << 20),
                                      ("put", 1 << 20), ("put_latency", 8)}, spinning)
                self.assertEqual(found["latency", size, "spin"], "ring" if place == "inside" else "frame")
                self.assertEqual(found["wake", 8, "block"], "futex" if place == "inside" else "asleep")
                if place == "inside":
                    self.assertLessEqual({("put_shared", 1 << 20), ("put_shared_latency", 8), ("put_shared_rate", 8),
                                          ("get_shared", 1 << 20)}, spinning)

    def test_a_peer_ahead_by_more_than_the_spread_is_named(self):
        near, line = [50, 50], "shm is ahead: inside, put latency 8 B, private memory: 0.13 us, cluster 0.33 us"
        self.add("inside", "cluster", sample(0.33, "us", near, "put_latency"))
        self.add("inside", "shm", sample(0.13, "us", near, "put_latency"))
        self.add("inside", "tcp", sample(0.5, "us", [170, 170], "put_latency"))
        self.assertEqual(table.warnings(self.collected.results()), [line])
        self.assertIn(line, self.text())

    def test_puts_into_shared_mappings_are_a_row_of_their_own_and_the_one_with_ucx(self):
        near = [50, 50]
        for name in ("put_latency", "put_shared_latency"):
            self.add("inside", "cluster", sample(0.33, "us", near, name))
        self.assertIn("put latency 8 B, private memory", self.text())
        self.assertIn("put latency 8 B, shared mapping", self.text())
        inside = {item.measure: ucx.knows(item, "inside") for item in (plan.Item("put", 8), plan.Item("put_shared", 8))}
        self.assertEqual(inside, {"put": False, "put_shared": True})
        self.assertTrue(ucx.knows(plan.Item("put", 8), "between"))

    def test_a_peer_ahead_within_the_spread_or_of_one_transport_only_is_not_named(self):
        near = [50, 50]
        self.add("inside", "cluster", sample(1.0, "us", near), sample(1.4, "us", near))
        self.add("inside", "shm", sample(1.0, "us", near))
        self.add("between", "cluster/packet", sample(1.0, "us", near))
        self.add("between", "cluster/udp", sample(3.0, "us", near))
        self.add("between", "tcp", sample(2.0, "us", near))
        self.assertEqual(table.warnings(self.collected.results()), [])

    def test_the_crowd_has_a_block_of_its_own(self):
        near = [50, 50]
        self.add("inside", "mpi:cluster", sample(30, "us", near, "barrier", 0), kind="crowd")
        self.add("inside", "mpi:vader", sample(20, "us", near, "barrier", 0), kind="crowd")
        self.assertEqual([row.name for row in rows(self.collected.results(), "inside", "crowd")], ["barrier"])
        self.assertEqual(rows(self.collected.results(), "inside", "mpi"), [])
        self.assertIn("vader is ahead: inside, more ranks than processors, barrier: 20.00 us, cluster 30.00 us", self.text())

    def test_the_markdown_names_the_run_and_has_every_row(self):
        near = [50, 50]
        self.add("inside", "cluster", sample(0.2, "us", near))
        self.add("inside", "shm", sample(0.4, "us", near))
        self.add("inside", "bare", sample(0.1, "us", near, "ring"))
        self.add("inside", "mpi:cluster", sample(0.3, "us", near), kind="mpi")
        machine = {"virtual": False, "processors": 2, "processor": "P", "memory_gb": 1, "kernel": "6.1", "libfabric": "1.17",
                   "ucx": "", "open_mpi": "", "date": "2026-01-01", "revision": "abc"}
        text = markdown.render(report.make(machine, {"mode": "readme", "repetitions": 6, "milliseconds": 60}, self.collected))
        for part in ("cluster-perf --readme", "2026-01-01", "revision abc", "Linux 6.1",
                     "| latency 8 B | 0.20 us | shm 0.40 us | 2.00 | 2.0 of 0.10 us |", "| MPI, latency 8 B | 0.30 us | - | - |"):
            self.assertIn(part, text)

    def test_the_markdown_has_the_processor_time_of_those_that_wait_asleep(self):
        group = plan.Group("cpu", [], wait="block")
        for name, seconds in (("cluster/udp", 0.2), ("tcp", 0.4)):
            entry = {**sample(1e9, "B/s", [50, 50], "bandwidth", 1 << 20, 16), "cpu_seconds": seconds, "volume": 1e9}
            self.collected.add("between", transport(name, "between"), group, 0, [entry])
        machine = {"virtual": False, "processors": 2, "processor": "P", "memory_gb": 1, "kernel": "6.1", "libfabric": "",
                   "ucx": "", "open_mpi": "", "date": "", "revision": ""}
        text = markdown.render(report.make(machine, {"mode": "full", "repetitions": 1, "milliseconds": 60}, self.collected))
        self.assertIn("waiting asleep | 0.200 s/GB | tcp 0.400 s/GB | 2.00 | - |", text)


class Phases(unittest.TestCase):
    """The demo where the distance of the processors changes from run to run, and where they never share a cache."""
    NEAR, FAR = [50, 60], [50, 170]

    def setUp(self):
        self.collected = Samples()
        self.group = plan.Group("demo", [])

    def add(self, place, name, *samples):
        for run, entry in enumerate(samples):
            self.collected.add(place, transport(f"mpi:{name}", place, "mpi"), self.group, run, [entry])

    def figures(self):
        return report.make({}, {}, self.collected)

    def ratio(self):
        """What the only line of the table compares."""
        line = next(line for line in table.render(self.figures()).splitlines() if line.startswith("latency 8 B"))
        return " ".join(line.partition(" %")[2].split())

    def test_a_better_peer_of_another_phase_is_not_passed_over(self):
        self.add("inside", "cluster", sample(0.37, "us", self.FAR), sample(0.37, "us", self.FAR))
        self.add("inside", "vader", sample(0.26, "us", self.NEAR))
        self.add("inside", "tcp", sample(5.9, "us", self.FAR))
        self.assertEqual(self.ratio(), "x 0.70~ vader")
        self.assertIn("~: one of the two", table.render(self.figures()))
        self.assertIn("vader is ahead: inside, MPI latency 8 B: 0.26 us, cluster 0.37 us far", table.warnings(self.figures()["results"]))

    def test_a_phase_that_both_have_is_compared(self):
        self.add("inside", "cluster", sample(0.37, "us", self.FAR))
        self.add("inside", "vader", sample(0.26, "us", self.NEAR), sample(0.4, "us", self.FAR), sample(0.48, "us", self.FAR))
        self.assertEqual(self.ratio(), "x 1.19 vader far")
        self.assertEqual([(ratio["times"], ratio["same_phase"]) for ratio in self.figures()["ratios"]], [(0.44 / 0.37, True)])

    def test_the_near_phase_is_compared_where_both_have_it(self):
        for name, near in (("cluster", 0.2), ("vader", 0.3)):
            self.add("inside", name, sample(near, "us", self.NEAR), sample(9, "us", self.FAR))
        self.assertEqual(self.ratio(), "x 1.50 vader")

    def test_no_line_with_figures_lacks_a_ratio(self):
        self.add("between", "cluster/packet", sample(4, "us", self.FAR))
        self.add("between", "cluster/udp", sample(7, "us", self.NEAR))
        self.add("between", "tcp", sample(6, "us", self.NEAR))
        self.assertEqual(self.ratio(), "x 1.50~ tcp x 0.86 tcp")

    def test_the_markdown_and_its_picture_mark_it_too(self):
        self.add("inside", "cluster", sample(0.4, "us", self.FAR))
        self.add("inside", "vader", sample(0.2, "us", self.NEAR))
        machine = {"virtual": False, "processors": 2, "processor": "P", "memory_gb": 1, "kernel": "6.1", "libfabric": "1.17",
                   "ucx": "", "open_mpi": "", "date": "", "revision": ""}
        text = markdown.render(report.make(machine, {"mode": "readme", "repetitions": 1, "milliseconds": 60}, self.collected))
        self.assertIn("| MPI, latency 8 B | 0.40 us far | vader 0.20 us | 0.50~ | - |", text)
        self.assertEqual(overview.Line("inside a node", "MPI, latency 8 B", "", "", "0.50~").ratio(), 0.5)

    def test_the_markdown_has_the_runs_apart_in_a_table_of_their_own(self):
        machine = {"virtual": False, "processors": 2, "processor": "P", "memory_gb": 1, "kernel": "6.1", "libfabric": "", "ucx": "",
                   "open_mpi": "", "date": "", "revision": ""}
        def text():
            return markdown.render(report.make(machine, {"mode": "full", "repetitions": 1, "milliseconds": 60}, self.collected))

        self.add("inside", "cluster", sample(0.4, "us", self.NEAR), sample(0.9, "us", self.FAR))
        self.add("inside", "vader", sample(0.2, "us", self.NEAR))
        self.assertNotIn("processors apart", text(), "no peer was measured so")
        self.add("inside", "vader", sample(0.6, "us", self.FAR))
        self.assertIn("| inside a node, processors apart | cluster | best peer | times as good | bare limit |\n|---|---:|---:|---:|---:|\n"
                      "| MPI, latency 8 B | 0.90 us | vader 0.60 us | 0.67 | - |\n", text())
        self.assertIn("| MPI, latency 8 B | 0.40 us | vader 0.20 us | 0.50 | - |\n", text())
        self.assertIn("a machine whose processors share a cache (50 ns for a cache line).", text())

    def test_what_was_measured_with_something_beside_it_is_not_passed_over(self):
        common = {"place": "between", "level": "fabric", "measure": "latency", "bytes": 8, "window": 1, "wait": "spin", "unit": "us",
                  "smallest": 10.0, "largest": 10.0}
        lines = table._beside([{**common, "transport": "cluster/udp", "median": 10.0, "phase": "near"},  # pylint: disable=protected-access
                               {**common, "transport": "cluster/udp/auth", "median": 12.5, "phase": "far"}], "/auth", "key")
        self.assertIn("x 0.800~", lines[-1])

    def verdict(self):
        """Each sentence in one line."""
        return " ".join(verdict.render(self.figures()).split())

    def test_words_say_what_won_what_lost_and_why(self):
        self.add("inside", "cluster", sample(0.4, "us", self.NEAR), sample(2e10, "B/s", self.NEAR, "bandwidth", 1 << 20, 16))
        self.add("inside", "vader", sample(0.2, "us", self.NEAR), sample(1e10, "B/s", self.NEAR, "bandwidth", 1 << 20, 16))
        self.add("between", "cluster/packet", sample(4, "us", self.NEAR))
        self.add("between", "cluster/udp", sample(7, "us", self.NEAR))
        self.add("between", "tcp", sample(6, "us", self.NEAR))
        for line in ("Inside a node, cluster wins bandwidth 1 MB x 16 (x 2.00 vader), because both processes share the work of a large "
                     "copy; it loses latency 8 B (x 0.50 vader), because Open MPI calls its own shared memory directly",
                     "Between nodes, cluster/packet wins latency 8 B (x 1.50 tcp), because a raw frame passes no TCP/IP",
                     "Between nodes, cluster/udp loses latency 8 B (x 0.86 tcp), because a datagram passes",
                     "This is a machine whose processors share a cache (50 ns for a cache line)."):
            self.assertIn(line, self.verdict())
        self.assertEqual(self.verdict().count(". "), 3, "a sentence for each of ours in each place, and one about the machine")
        self.assertNotIn("share no cache", self.verdict())

    def test_what_scatters_more_than_it_differs_is_neither_won_nor_lost(self):
        self.add("inside", "cluster", sample(1, "us", self.NEAR), sample(1.2, "us", self.NEAR))
        self.add("inside", "vader", sample(1, "us", self.NEAR))
        self.add("inside", "tcp", sample(5, "us", self.NEAR), sample(90, "us", self.NEAR))
        self.assertIn("cluster neither wins nor loses latency 8 B (x 0.91 vader).", self.verdict())

    def test_words_for_processors_that_never_share_a_cache_and_for_mixed_phases(self):
        self.add("inside", "cluster", sample(0.4, "us", [240, 240]))
        self.add("inside", "vader", sample(0.3, "us", [110, 112]))
        self.assertIn("loses latency 8 B (x 0.75~ vader), because Open MPI", self.verdict())
        self.assertIn("This is a machine whose processors share no cache (110 ns for a cache line).", self.verdict())

    def test_words_where_nothing_was_there_to_compare_with(self):
        self.add("inside", "cluster", sample(0.4, "us", self.NEAR))
        self.assertIn("cluster stands alone: no other transport was measured.", self.verdict())


class Plans(unittest.TestCase):
    def test_no_item_needs_more_memory_than_the_programs_allow(self):
        for item in (item for mode in (plan.full(), plan.readme()) for group in mode.groups for item in group.items):
            places = item.window if item.measure in ("put", "get") else 1
            self.assertLessEqual(item.bytes * places, 256 << 20, item)

    def test_groups_are_measured_in_their_places_only(self):
        class Where:
            devices = False

            def __init__(self, name):
                self.name = name

        turns = schedule.make_turns(plan.readme(), [Where("inside"), Where("between")], ["cluster", "bare", "mpi:cluster"], [])
        measured = {(place.name, item.measure, item.bytes) for place, _, group in turns for item in group.items}
        self.assertIn(("inside", "get", 1 << 20), measured)
        self.assertNotIn(("between", "get", 1 << 20), measured)
        self.assertNotIn(("inside", "latency", 64), measured)
        self.assertEqual([group.name for _, kind, group in turns if kind.name == "bare"], ["bare", "bare", "stream"])

    def test_ours_is_measured_beside_running_agents_turn_by_turn_and_compared(self):
        turns = [(types.SimpleNamespace(name="between", cluster=True), kind, None)
                 for kind in transports.choose(transports.BETWEEN, ["cluster/packet", "tcp"], [])]
        found = [(kind.name, kind.agents) for _, kind, _ in schedule.beside_agents(turns)]
        self.assertEqual(found, [("cluster/packet", False), ("cluster/packet/agents", True), ("tcp", False)])
        common = {"place": "between", "level": "fabric", "measure": "latency", "bytes": 8, "window": 1, "wait": "spin", "unit": "us",
                  "smallest": 9.0, "largest": 11.0, "phase": "near"}
        lines = table._beside([{**common, "transport": "cluster/packet", "median": 10.0},  # pylint: disable=protected-access
                               {**common, "transport": "cluster/packet/agents", "median": 12.5},
                               {**common, "transport": "tcp/agents", "median": 1.0}], transports.AGENTS, "agents")
        self.assertEqual(lines[2].split(), "between cluster/packet latency 8 B 10.00 us -> 12.50 us x 0.800 (20 %)".split())
        self.assertEqual(len(lines), 3)

    def test_ours_is_measured_with_a_key_turn_by_turn(self):
        turns = [(types.SimpleNamespace(name="between", cluster=True), kind, None)
                 for kind in transports.choose(transports.BETWEEN, ["cluster/packet", "tcp"], [])]
        found = [kind for _, kind, _ in schedule.beside_keys(turns)]
        self.assertEqual([kind.name for kind in found],
                         ["cluster/packet", "cluster/packet/auth", "cluster/packet/encrypt", "tcp"])
        self.assertEqual([kind.environment.get("FI_CLUSTER_SECURITY") for kind in found], [None, "auth", "encrypt", None])
        self.assertTrue(all(kind.environment["FI_CLUSTER_LINK"] == "packet" for kind in found[:3]))
        self.assertEqual(len(found[1].environment["FI_CLUSTER_KEY"]), 64)
        self.assertNotIn("FI_CLUSTER_KEY", found[0].environment)

    def test_names_choose_every_kind_but_the_special_ones(self):
        chosen = [entry.name for entry in transports.choose(transports.BETWEEN, ["cluster"], []) if entry.kind == "fabric"]
        self.assertEqual(chosen, ["cluster/packet", "cluster/udp"])
        self.assertEqual([entry.name for entry in transports.choose(transports.INSIDE, ["cluster/safe"], [])], ["cluster/safe"])

    def test_transports_over_devices_are_measured_there_and_nowhere_else(self):
        between = {devices: [entry.name for entry in transports.choose(transports.BETWEEN, None, [], devices)] for devices in (False, True)}
        self.assertEqual(between[True], ["cluster/verbs", "verbs", "ucx/rc", "ucx/ud"])
        self.assertFalse(set(between[True]) & set(between[False]))

    def test_the_device_of_an_interface(self):
        with tempfile.TemporaryDirectory() as root:
            for device, interface in (("mlx5_0", "eth0"), ("rxe_verbs1", "verbs1")):
                places = os.path.join(root, device, "ports", "1", "gid_attrs", "ndevs")
                os.makedirs(places)
                for number in range(2):
                    with open(os.path.join(places, str(number)), "w", encoding="ascii") as file:
                        file.write(interface + "\n")
            self.assertEqual(placement._device_of("verbs1", root), "rxe_verbs1:1")
            with self.assertRaisesRegex(errors.PerfError, "eth1 has no RDMA device"):
                placement._device_of("eth1", root)

    def test_another_libfabric_brings_its_providers_but_not_ours(self):
        names = [entry.name for entry in transports.choose(transports.INSIDE, ["tcp"], [("2.3", "/somewhere")])]
        self.assertEqual(names, ["tcp", "tcp@2.3"])

    def test_figures_of_ucx(self):
        line = "20000,0.305,0.4,0.5,0.01,0.02,1810,2116"
        self.assertEqual(ucx._figures(plan.Item("latency", 8), line, 20000, 1)["value"], 0.305)
        self.assertEqual(ucx._figures(plan.Item("rate", 8, 64), line, 20000, 1)["value"], 2116)
        self.assertEqual(ucx._figures(plan.Item("bandwidth", 1 << 20, 16), line, 20000, 1)["value"], 2116 * (1 << 20))

    def test_choices_are_known_by_name_and_one_way_of_each_is_ours(self):
        self.assertEqual([question.name for question in choices.chosen(["look", "send"])], ["send", "look"])
        with self.assertRaises(errors.PerfError):
            choices.chosen(["nonsense"])
        for question in choices.QUESTIONS:
            labels = [way.label for way in question.ways]
            self.assertEqual(len(set(labels)), len(labels), question.name)
            if question.name != "poll":
                self.assertEqual(sum(not way.differs for way in question.ways), 1, question.name)

    def test_a_cell_tells_the_best_run_and_the_median(self):
        runs = [sample(value, unit, [80, 80], measure, 64) for measure, unit, values in
                (("frame", "us", (3, 1, 2)), ("frame_rate", "1/s", (1e6, 2e6, 5e5))) for value in values]
        self.assertEqual(choices._cell(plan.Item("frame", 64), runs), "1.00 us (2.00)")
        self.assertEqual(choices._cell(plan.Item("frame_rate", 64, 64), runs), "500 ns (1,000)")
        self.assertEqual(choices._cell(plan.Item("super", 44, 16), runs), "-")

    def test_ways_are_compared_in_the_phase_that_most_runs_met(self):
        met = [sample(1, "us", [80, 85]), sample(2, "us", [75, 80]), sample(9, "us", [28, 28]), sample(9, "us", [80, 180])]
        self.assertEqual([entry["value"] for entry in choices.in_phase(met)], [1, 2])


class Thresholds(unittest.TestCase):
    def test_one_disturbed_run_does_not_move_the_answer(self):
        self.assertEqual(thresholds.best([(1, 0.2), (2, 0.2), (4, -0.1), (8, 0.2), (16, -0.3), (32, -0.3)]), 8)
        self.assertEqual(thresholds.best([(1, -0.2), (2, 0.1), (4, -0.5)]), 0, "eager never gains")
        self.assertEqual(thresholds.best([(1, 0.1), (2, 0.1)]), 2)

    @staticmethod
    def report(crossing):
        collected = Samples()
        place = types.SimpleNamespace(name=transports.BETWEEN, devices=False)
        for _, kind, group in thresholds.turns([place]):
            for item in group.items:
                better = kind.name.endswith("eager") == (item.bytes <= crossing)
                latency = item.measure == "latency"
                figure = sample(1 if better == latency else 2, "us" if latency else "B/s", [30, 30], item.measure, item.bytes, item.window)
                collected.add(place.name, kind, group, 1, [figure])
        return report.make({}, {}, collected)

    def test_the_setting_is_the_last_size_that_is_better_eagerly(self):
        for crossing in (0, 4096, 65536, thresholds.SIZES[-1]):
            figures = self.report(crossing)
            for way in ("cluster/packet", "cluster/udp"):
                self.assertEqual(thresholds.threshold(figures, transports.BETWEEN, way), crossing)
            self.assertIsNone(thresholds.threshold(figures, transports.INSIDE, "cluster"))
            self.assertIn(f"FI_CLUSTER_NET_EAGER={crossing}", thresholds.render(figures))
            self.assertNotIn("SHM_EAGER", thresholds.render(figures))

    def test_a_run_that_takes_a_thousand_times_as_long_counts_as_twice(self):
        figures = self.report(65536)
        slow = [entry for entry in figures["samples"] if (entry["measure"], entry["bytes"]) == ("latency", 4096) and entry["transport"].endswith("eager")]
        self.assertEqual(len(slow), 2)
        for entry in slow:
            entry["value"] = 1e6
        self.assertEqual(thresholds.threshold(figures, transports.BETWEEN, "cluster/udp"), 65536)

    def test_each_size_is_measured_both_ways_everywhere(self):
        places = [types.SimpleNamespace(name=name, devices=False) for name in (transports.INSIDE, transports.BETWEEN)]
        runs = [(place.name, kind.name, item.measure, item.bytes) for place, kind, group in thresholds.turns(places) for item in group.items]
        self.assertEqual(len(runs), len(set(runs)))
        self.assertEqual(len(runs), 3 * 2 * 2 * len(thresholds.SIZES))
        options = {(kind.name, kind.environment[thresholds.OPTIONS[place.name]]) for place, kind, _ in thresholds.turns(places)}
        self.assertEqual({value for name, value in options if name.endswith("announced")}, {"0"})
        self.assertEqual({value for name, value in options if name.endswith("eager")}, {"1m"})


class Papers(unittest.TestCase):
    def test_every_column_of_the_page_is_measured(self):
        places = [types.SimpleNamespace(name=name, devices=False) for name in (transports.INSIDE, transports.BETWEEN)]
        turns = [(place.name, kind.level, kind.name, group.wait) for place, kind, group in
                 schedule.make_turns(plan.papers(), places, transports.names(), []) if paper_figures.is_asked(place.name, kind, group.wait)]
        for column in paper_figures.COLUMNS:
            self.assertIn((column.place, column.level, column.transport, column.wait), turns)
        self.assertFalse([turn for turn in turns if "ucx" in turn or "shm" in turn], "nobody asks for these")

    def test_half_of_the_highest_bandwidth(self):
        for medians, half in (((1, 5, 9, 10, 10), 2), ((1, 6, 4, 10, 1), 8), ((10, 1, 1, 1, 1), 1), ((5, 5, 5, 5, 10), 1)):
            self.assertEqual(paper_figures.half_size([(1 << at, median) for at, median in enumerate(medians)]), half, medians)

    def test_sentences_are_right_on_either_side_of_one(self):
        self.assertEqual([paper_figures.more_or_less(ratio) for ratio in (0.69, 1.001, 1.31)],
                         ["31 % less time than", "as much time as", "31 % more time than"])
        self.assertEqual([paper_figures.span_of(ratios) for ratios in ((0.91, 0.85), (1.2, 1.5), (0.9, 1.05, 1.0), (1.2, 1.2))],
                         ["9 to 15 % less time than", "20 to 50 % more time than", "10 % less to 5 % more time than", "20 % more time than"])

    @staticmethod
    def _matrix(*nodes, processors=2, nanoseconds=0):
        rows = [{"way": way, "nodes": each, "order": 9, "nanoseconds": nanoseconds, "seconds": seconds / each, "talking": 0.1 * seconds} for each in nodes
                for way, seconds in (("mpi", 1.0), ("mpi_tcp", 2.0))]
        return "\n".join(paper_programs.matrix(paper_figures.Figures({
            "results": [], "machine": {"processors": processors}, "papers": {"matrix": {"rows": rows, "reason": ""}}})))

    def test_a_product_on_one_node_gives_the_speed_up(self):
        shown = self._matrix(1, 4)
        self.assertIn("MPI, tcp (communication; speed-up)", shown)
        self.assertIn("0.250 s (40 %; x 4.00) | 0.500 s (40 %; x 4.00)", shown)
        self.assertIn("takes 100 % more time than over raw frames. The best speed-up over raw frames is 4.00, on 4 nodes.", shown)
        self.assertIn("share 2 processors", shown)
        self.assertIn("have 8 processors", self._matrix(1, 4, processors=8))
        self.assertIn("no row for one node", self._matrix(4))
        self.assertNotIn("sleeps", shown)
        self.assertIn("a process sleeps 5.00 us in place of computing", self._matrix(1, 4, nanoseconds=5000))

    @staticmethod
    def _result(column, measure, size, median):
        return {"place": column.place, "level": column.level, "transport": column.transport, "wait": column.wait, "measure": measure, "bytes": size,
                "median": median, "unit": {"latency": "us", "bandwidth": "B/s"}[measure]}

    def test_the_sizes_at_which_tcp_is_better_are_named(self):
        def said(measure, ours, tcp):
            of = paper_figures.Figures({"papers": {}, "results": [self._result(column, measure, size, median) for column, medians in (
                (paper_figures.OURS, ours), (paper_figures.TCP, tcp), (paper_figures.OURS_MPI, ours), (paper_figures.TCP_MPI, ours))
                for size, median in medians.items()]})
            return papers._tcp_is_better(of, measure)  # pylint: disable=protected-access

        self.assertEqual(said("latency", {64: 2, 1024: 3, 4096: 4}, {64: 3, 1024: 2, 4096: 3}), "TCP takes less time without MPI at 1 KB, 4 KB.")
        self.assertEqual(said("latency", {64: 2}, {64: 2}), "TCP takes less time at no size.")
        self.assertEqual(said("bandwidth", {64: 2, 1 << 18: 3}, {64: 1, 1 << 18: 4}), "TCP has a higher bandwidth without MPI at 256 KB.")

    @classmethod
    def _stages(cls, one_way):
        latency = cls._result(paper_figures.OURS, "latency", 64, one_way)
        rows = [{"link": "packet", "bytes": 64, "send": 2.0, "send_kernel": 1.5, "arrive": 0.5, "arrive_kernel": 0.25}]
        return "\n".join(paper_programs.stages(paper_figures.Figures({"results": [latency], "papers": {"stages": {"rows": rows, "reason": ""}}})))

    def test_the_stages_beside_the_time_of_a_ping_pong(self):
        self.assertIn("| raw frames, 64 B | 0.50 us | 1.50 us | 0.25 us | 0.25 us |", self._stages(3.5))
        self.assertIn("The stages of 64 B add up to 2.50 us, and one way takes 3.50 us above: there each end has a processor of its own. Here one cache has all "
                      "that both ends use.", self._stages(3.5))
        self.assertIn("add up to 2.50 us, and one way takes 2.40 us above, about the same.", self._stages(2.4))
        self.assertIn("2.50 us, and one way takes 2.00 us above: there each end has a processor of its own. Here the two ends never work at the same time.",
                      self._stages(2.0))

    @staticmethod
    def _gauss(**talking):
        rows = [{"way": way, "order": 9, "seconds": 2 + seconds, "seconds_talking": seconds, "digits": 10, "least_digits": 8, "overclaimed": 0.01}
                for way, seconds in talking.items()]
        return "\n".join(paper_programs.gauss(paper_figures.Figures({"results": [], "papers": {"gauss": {"rows": rows, "reason": ""}}})))

    def test_what_the_elimination_shows_is_said_of_polling_only_if_that_is_true(self):
        shown = self._gauss(asleep=2, polling=1, mpi_udp=0.9, mpi=1)
        self.assertIn("takes 100 % more time than at user level with polling. With MPI, polling over UDP takes 10 % less time than over raw frames; so "
                      "polling makes the difference. With calls and interrupts, the whole elimination takes 33 % more time than with polling.", shown)
        self.assertIn("takes 80 % more time than over raw frames; so the difference is not due to polling alone.",
                      self._gauss(asleep=2, polling=1, mpi_udp=1.8, mpi=1))
        self.assertNotIn("With MPI", self._gauss(asleep=2, polling=1))

    @staticmethod
    def _control(spread, **seconds):
        rows = [{"at_once": size.strip("_"), "order": 9, "seconds": each, "seconds_talking": 0.1, "spread": spread} for size, each in seconds.items()]
        return "\n".join(paper_programs.control(paper_figures.Figures({"results": [], "papers": {"control": {"rows": rows, "reason": ""}}})))

    def test_the_best_size_of_control_messages_beside_the_default(self):
        self.assertIn("fastest with 1k (the default is 64k). It takes 10 % less time than with the default. The runs of one size differ by up to 20 %, so this "
                      "says little. MPI-MPC", self._control(0.2, _1k=0.9, _64k=1.0))
        self.assertIn("differ by up to 5 %, so this is no chance.", self._control(0.05, _1k=0.9, _64k=1.0))
        self.assertIn("fastest with 64k (the default is 64k). MPI-MPC", self._control(0.2, _1k=1.1, _64k=1.0))
        self.assertIn("with the default. MPI-MPC", self._control(0, _1k=0.9, _64k=1.0))

    def test_a_barrier_beside_tcp(self):
        rows = [{"form": "2x1", "way": way, "ended": True, "start_s": 1, "barrier_us": barrier, "allreduce_us": 1, "kilobytes": 1}
                for way, barrier in (("cluster", 150), ("tcp", 100))]

        def said(some):
            return "\n".join(paper_programs.jobs(paper_figures.Figures({"results": [], "papers": {"jobs": {"rows": some, "reason": ""}}})))

        self.assertIn("A barrier over the provider takes 50 % more time than over tcp.", said(rows))
        self.assertNotIn("A barrier", said(rows[:1]))

    def test_several_pairs_beside_one(self):
        rows = [{"way": way, "pairs": many, "rate": rate, "bandwidth": 1e9} for way, many, rate in
                (("cluster", 1, 2e6), ("tcp", 1, 1e6), ("cluster", 4, 3e6), ("tcp", 4, 1e6))]
        shown = "\n".join(paper_programs.pairs(paper_figures.Figures({"results": [], "papers": {"pairs": {"rows": rows, "reason": ""}}})))
        self.assertIn("| 4 | 3.00 M/s | 1.00 GB/s | 1.00 M/s | 1.00 GB/s |", shown)
        self.assertIn("4 pairs together send 1.50 times the messages of one pair, and 1.00 times its bytes.", shown)

    def test_each_table_says_what_the_paper_has(self):
        self.assertEqual(paper_figures.table(["", "8 B"], [["own", "1 us"], ["MPI", "2 us"]], {"MPI": "26 us"}),
                         ["", "|  | 8 B | in the paper |", "|---|---:|---:|", "| own | 1 us | not at hand |", "| MPI | 2 us | 26 us |", ""])

    def test_the_page_is_what_its_figures_give(self):
        page = os.path.join(os.path.dirname(os.path.realpath(__file__)), "..", "..", "docs", "papers.md")
        with open(page, encoding="utf-8") as file:
            self.assertEqual(file.read(), papers.render(papers.read(page)) + "\n")


if __name__ == "__main__":
    unittest.main()
