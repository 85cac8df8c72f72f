#!/usr/bin/env python3
"""The rules of dynamic_processes.py, applied to outputs of jobs."""
import unittest

from dynamic_processes import is_launcher_failure, passed

_ERROR = "[node1:7] PMIX ERROR: UNREACH in file ../src/prted/pmix/pmix_server_dyn.c at line 1\n"


class Rules(unittest.TestCase):
    def judge(self, output, fails_over_tcp=True):
        return is_launcher_failure(output, lambda: fails_over_tcp)

    def test_without_the_launchers_error_a_failure_is_the_providers(self):
        for output in ("", "connected\ntalked\n", "PRTE has lost communication with a remote daemon\n",
                       "PMIX ERROR: UNREACH in file other.c at line 1\n"):
            self.assertIs(self.judge(output), False, output)

    def test_a_rank_that_was_connected_but_did_not_finish(self):
        self.assertIs(self.judge(_ERROR + "connected\nconnected\ntalked\n"), False)
        self.assertIs(self.judge(_ERROR + "connected\ntalked\n"), True)
        self.assertIs(self.judge(_ERROR + "connected\nPRTE has lost communication with a remote daemon\n"), True)

    def test_without_any_connection_tcp_decides(self):
        self.assertIs(self.judge(_ERROR, fails_over_tcp=True), True)
        self.assertIs(self.judge(_ERROR, fails_over_tcp=False), None)

    def test_wrong_data_is_never_the_launchers(self):
        self.assertIs(self.judge(_ERROR + "connected\ntalked\nFAIL dynamic: byte 7\n"), False)

    def test_a_run_passes_only_with_its_last_line(self):
        self.assertTrue(passed(0, "PASS mpi_dynamic spawn: 9 bytes compared"))
        self.assertFalse(passed(0, ""))
        self.assertFalse(passed(1, "PASS mpi_dynamic spawn: 9 bytes compared"))


if __name__ == "__main__":
    unittest.main()
