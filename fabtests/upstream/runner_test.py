#!/usr/bin/env python3
"""The runner judges rightly, and its lists hold together; no program of libfabric's is needed."""
import contextlib
import errno
import io
import os
import re
import stat
import sys
import tempfile
import unittest

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, HERE)
import verdicts  # noqa: E402
import test_list  # noqa: E402
import run_upstream  # noqa: E402

EVERYTHING = ",".join(test_list.SETS)


class Lists(unittest.TestCase):
    def test_every_set_is_started_in_a_way_that_exists(self):
        self.assertTrue(all(kind in test_list.KINDS for _, kind, _ in test_list.wanted(EVERYTHING)))

    def test_no_line_stands_twice_in_a_set(self):
        for name, (_, lines) in test_list.SETS.items():
            self.assertEqual(len(lines), len(set(lines)), name)

    def test_what_cannot_count_is_still_there(self):
        lines = [line for _, _, line in test_list.wanted(EVERYTHING)]
        for pattern in test_list.NOT_COUNTING:
            self.assertTrue(any(re.match(pattern, line) for line in lines), pattern)

    def test_endpoints_without_connections_are_layered_on_connections(self):
        self.assertTrue(test_list.layers("pair", "fi_rdm -U"))
        self.assertFalse(test_list.layers("alone", "fi_eq_test"))
        for line in ("fi_msg", "fi_msg_bw -I 5", "fi_rma_bw -e msg -o write", "fi_dgram", "fi_cq_data -e dgram"):
            self.assertFalse(test_list.layers("pair", line), line)

    def test_all_is_more_than_quick(self):
        self.assertGreater(set(test_list.ALL), set(test_list.QUICK) - {"short"})

    def test_programs_of_the_unit_folder_that_have_no_line_are_run(self):
        paths = ["/b/unit/fi_eq_test", "/b/unit/fi_new_test", "/b/functional/fi_rdm", "/b/unit/.libs/fi_old_test"]
        self.assertEqual(test_list.unit_programs(paths), ["fi_new_test"])
        self.assertTrue(test_list.has_unit("quick") and test_list.has_unit("all") and test_list.has_unit("negative,unit"))
        self.assertFalse(test_list.has_unit("negative"))

    def test_every_exclusion_still_excludes_something_and_has_a_reason(self):
        path = os.path.join(HERE, "..", "cluster.exclude")
        lines = [line for _, _, line in test_list.wanted(EVERYTHING)]
        for pattern in verdicts.Excludes(path).patterns:
            self.assertTrue(any(pattern.search(line) for line in lines), pattern.pattern)
        with open(path, encoding="utf-8") as file:
            blocks = file.read().strip().split("\n\n")
        for block in blocks:
            self.assertTrue(block.startswith("#"), f"no reason before: {block}")

    def test_the_list_is_no_longer_than_any_other_providers(self):
        shortest_elsewhere = 4  # sockets, at libfabric 2.6
        self.assertLessEqual(len(verdicts.Excludes(os.path.join(HERE, "..", "cluster.exclude")).patterns),
                             shortest_elsewhere)


class Verdicts(unittest.TestCase):
    def judge(self, kind, statuses, *outputs):
        return verdicts.verdict(kind, list(statuses), list(outputs) or [""] * len(statuses))[0]

    def test_both_must_succeed(self):
        self.assertEqual(self.judge("pair", (0, 0)), verdicts.PASSED)
        self.assertEqual(self.judge("pair", (0, 1)), verdicts.FAILED)
        self.assertEqual(self.judge("pair", (-11, 0)), verdicts.FAILED)
        self.assertEqual(self.judge("pair", (0, None)), verdicts.FAILED)

    def test_not_offered_only_if_all_say_so(self):
        self.assertEqual(self.judge("pair", (errno.ENODATA, errno.ENODATA)), verdicts.NOT_OFFERED)
        self.assertEqual(self.judge("pair", (256 - errno.ENODATA, errno.ENODATA)), verdicts.NOT_OFFERED)
        self.assertEqual(self.judge("pair", (errno.ENODATA, errno.ENOSYS)), verdicts.FAILED)
        self.assertEqual(self.judge("pair", (errno.ENODATA, 0)), verdicts.FAILED)

    def test_one_side_says_so_and_the_other_loses_its_connection(self):
        self.assertEqual(self.judge("pair", (errno.ENODATA, errno.ENOTCONN)), verdicts.NOT_OFFERED)
        self.assertEqual(self.judge("pair", (errno.ENOTCONN, 256 - errno.ENOSYS)), verdicts.NOT_OFFERED)
        self.assertEqual(self.judge("pair", (errno.ENOTCONN, errno.ENOTCONN)), verdicts.FAILED)

    def test_a_refusal_is_expected(self):
        self.assertEqual(self.judge("refused", (errno.ENODATA,)), verdicts.PASSED)
        self.assertEqual(self.judge("refused", (0,)), verdicts.FAILED)

    def test_ubertest_is_judged_by_its_cases(self):
        good = "Success: 12\nENODATA: 3\nENOSYS: 0\nERROR: 0\n"
        self.assertEqual(self.judge("uber", (0, 0), "", good), verdicts.PASSED)
        self.assertEqual(self.judge("uber", (0, 0), "", good.replace("ERROR: 0", "ERROR: 1")), verdicts.FAILED)
        self.assertEqual(self.judge("uber", (0, 0), "", "ENODATA: 3\n"), verdicts.FAILED)


class Runs(unittest.TestCase):
    """Programs that stand for libfabric's, on loopback."""

    def run_script(self, text, *arguments, program="fi_rdm", only="^fi_rdm$"):
        with tempfile.TemporaryDirectory() as directory:
            path = os.path.join(directory, program)
            with open(path, "w", encoding="ascii") as script:
                script.write("#!/bin/sh\n" + text)
            os.chmod(path, stat.S_IRWXU)
            sys.stdout.flush()
            return run_upstream.main(["--fabtests", directory, "--on", "loopback", "--sets", "functional",
                                      "--only", only, *arguments])

    def test_success_and_failure_are_distinguished(self):
        self.assertEqual(self.run_script("exit 0"), 0)
        self.assertEqual(self.run_script("exit 1"), 1)

    def test_what_never_ends_is_ended(self):
        self.assertEqual(self.run_script("exec sleep 60", "--timeout", "0.2"), 1)

    def test_server_and_client_get_their_addresses(self):
        words = 'case "$*" in "-p cluster -s 127.0.0.1"|"-p cluster -s 127.0.0.1 127.0.0.1") exit 0;; esac; exit 1'
        self.assertEqual(self.run_script(words), 0)

    def test_lines_that_a_version_does_not_know_are_told_from_what_is_not_offered(self):
        for text, count in (("echo \"fi_rdm: invalid option -- 'x'\"; exit 1", "unknown: 1"), (f"exit {errno.ENODATA}", "not offered: 1")):
            with contextlib.redirect_stdout(io.StringIO()) as said:
                self.assertEqual(self.run_script(text), 0)
            self.assertEqual(said.getvalue().splitlines()[-1], count)

    def test_an_earlier_version_is_asked_in_its_own_words(self):
        refuse = "echo \"invalid option -- 'o'\"; exit 1"
        for program, only, text in (
                ("fi_bw", "^fi_flood -e msg", "exit 0"),
                ("fi_cq_data", "^fi_cq_data -e msg -o senddata", f'case "$*" in *" -o "*) {refuse};; esac; exit 0'),
                ("fi_multi_ep", "^fi_multi_ep -e msg -v -A -Q$", f'case "$*" in *" --shared-av --shared-cq"*) exit 0;; esac; {refuse}')):
            with contextlib.redirect_stdout(io.StringIO()) as said:
                self.assertEqual(self.run_script(text, program=program, only=only), 0)
            self.assertEqual(said.getvalue().splitlines()[-1], "pass: 1", program)


if __name__ == "__main__":
    unittest.main()
