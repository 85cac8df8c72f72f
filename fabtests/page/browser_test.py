"""The page in a real browser: Debian's Chromium, four virtual nodes with agents, an MPI job over the provider.

    browser_test.py --provider DIRECTORY --program FILE [--pictures DIRECTORY]

With --pictures, screenshots at three widths are left there.
"""
import argparse
import contextlib
import os
import sys
import time
import unittest

import doubles

if not doubles.with_packages("starlette", "uvicorn", "jinja2", "pam", "psutil", "selenium", "PIL"):
    print("skipped: Python packages are missing (util/setup --for page, --for browser)")
    sys.exit(77)

import chromium  # noqa: E402
import nodes_with_page  # noqa: E402
from selenium.webdriver.common.keys import Keys  # noqa: E402

NODES = 4
CUT_SECONDS, DOWN_SECONDS = 3, 5
OPTIONS = argparse.Namespace(provider="", program="", pictures="")


class Page(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.nodes = nodes_with_page.Nodes(NODES, OPTIONS.provider, OPTIONS.program)
        cls.addClassCleanup(cls.nodes.close)
        cls.browser = chromium.Chromium(cls.nodes.address)
        cls.addClassCleanup(cls.browser.close)

    def log_in(self, user):
        self.browser.log_in(user, self.nodes.password)
        self.assertIn(f"may {user}", self.browser.text("header"))

    def state_of(self, number):
        return self.browser.text(f"[data-node=node{number}] .state")

    def all_well(self):
        """Every node and link is up; on a busy machine one may be late now and then."""
        return {self.state_of(number) for number in range(1, NODES + 1)} <= {"up", "returned"} and \
            self.browser.count(".matrix td.good, .matrix td.lossy") == 2 * NODES * (NODES - 1)

    def picture(self, name):
        for width in chromium.WIDTHS if OPTIONS.pictures else ():
            self.browser.picture(OPTIONS.pictures, name, width)

    @contextlib.contextmanager
    def timed(self, what, at_most):
        """A function that notes when it happened; more than `at_most` seconds after the beginning are too many."""
        busy = min(4.0, max(1.0, os.getloadavg()[0] / os.cpu_count()))  # so much longer may it take if others are at work
        started = time.monotonic()
        yield
        passed = time.monotonic() - started
        print(f"{what}: {passed:.1f} s of {at_most} s, with {busy:.1f} times as much to do as there are processors")
        self.assertLess(passed, at_most * busy, what)

    def submit(self, **fields):
        self.browser.go("/jobs/new")
        for name, text in fields.items():
            self.browser.fill(name, text)
        self.browser.submit("form.panel button")

    def test_1_logins(self):
        self.browser.log_in("look", "wrong")
        self.assertIn("Wrong user name or password", self.browser.text("#trouble"))
        self.picture("login")
        self.log_in("look")

    def test_2_four_nodes_and_every_link(self):
        self.log_in("look")
        self.browser.until(40, self.all_well, "four nodes that are up, and good links")
        self.assertEqual(self.browser.count("[data-node]"), NODES)
        self.assertEqual(self.browser.count(".picture svg"), 1)
        self.picture("overview")
        for width in chromium.WIDTHS:
            with self.browser.at(width):
                self.assertFalse(self.browser.overflows(), width)

    def test_3_a_cut_rail_is_in_the_matrix(self):
        self.log_in("look")
        self.browser.until(40, self.all_well, "all is well")
        with self.timed("a cut rail is in the matrix", CUT_SECONDS):
            self.addCleanup(self.nodes.cluster.run, "switch", "ip", "link", "set", "n2r0", "up")
            self.nodes.cluster.run("switch", "ip", "link", "set", "n2r0", "down")
            self.browser.until(20, lambda: self.browser.count(".matrix[data-rail='0'] td.down") > 0, "a link that is down")
        self.assertEqual(self.browser.count(".matrix[data-rail='1'] td.down"), 0)
        self.browser.until(20, lambda: self.browser.count(".matrix[data-rail='0'] td.down") >= 3, "all links of the rail to node2")
        self.browser.until(20, lambda: "eth0 has no carrier" in self.browser.text("#events"), "the finding")
        self.assertEqual(self.browser.count(".picture line[stroke-dasharray='2 4']"), 1, "only the cut cable is drawn as cut")
        self.picture("cut")
        self.nodes.cluster.run("switch", "ip", "link", "set", "n2r0", "up")
        self.browser.until(40, self.all_well, "all is well again")

    def test_4_a_job_over_the_provider(self):
        self.log_in("submit")
        self.submit(name="token ring", nodes="2", ranks="4", program=self.nodes.program,
                    arguments="100 200")
        self.browser.until(30, lambda: "round 3 of 100" in self.browser.text("#output"), "output as it comes")
        self.assertEqual(self.browser.text("#job-state"), "running")
        self.browser.until(20, lambda: "shm" in self.browser.text("#paths"), "the paths of its ranks")
        self.assertRegex(self.browser.text("#paths"), r"packet|udp")
        self.assertIn(f"{self.nodes.program} 100 200", self.browser.text("#command"))
        self.picture("job")
        page = self.browser.driver.current_url
        self.browser.go("/node/node1")
        self.browser.until(20, lambda: "rounds" in self.browser.text("#node"), "the endpoints of the job: it runs over the provider")
        self.browser.until(20, lambda: "When this page was loaded" in self.browser.text("#graphs-words"), "the graphs")
        self.picture("node")
        self.browser.submit_without_leaving("[hx-get$='/why']")
        self.browser.until(20, lambda: self.browser.text("#why"), "an answer why operations wait")
        self.browser.go("/traffic")
        self.browser.until(20, lambda: "When this page was loaded" in self.browser.text("#graphs-words"), "the traffic of all nodes")
        self.assertIn("token ring of submit", self.browser.text())
        self.assertEqual(self.browser.count("#graph-cluster canvas"), 1)
        self.picture("traffic")
        self.browser.driver.get(page)
        self.browser.until(60, lambda: self.browser.text("#job-state") == "ended", "the end")
        self.browser.until(10, lambda: "done: 4 ranks, from node1" in self.browser.text("#output"), "its last line")
        self.assertIn("round 100 of 100: the token is 1000", self.browser.text("#output"))
        self.assertEqual(self.browser.text("#status"), "0")
        self.browser.submit("#again")
        self.assertEqual(self.browser.one("[name=arguments]").get_attribute("value"), "100 200")
        self.browser.go("/accounts")
        self.assertRegex(self.browser.text("#users"), r"submit\s+1\s")
        self.browser.go("/jobs")
        self.picture("jobs")

    def test_5_a_job_can_be_cancelled(self):
        self.log_in("submit")
        self.submit(name="long one", nodes="4", ranks="4", program=self.nodes.program,
                    arguments="100000 100")
        self.browser.until(30, lambda: "round 2 of" in self.browser.text("#output"), "output")
        self.assertRegex(self.browser.answer("#cancel", False), r"^Cancel job \d+, long one, of submit\?")
        time.sleep(2)
        self.assertEqual(self.browser.text("#job-state"), "running")
        self.browser.answer("#cancel", True)
        self.browser.until(20, lambda: self.browser.text("#job-state") == "cancelled", "cancelled")
        self.browser.go("/")
        self.browser.until(20, lambda: "Endpoints\n4" not in self.browser.text("#nodes"), "no endpoint is left")

    def test_6_a_killed_node_a_drained_node(self):
        self.log_in("operate")
        self.browser.until(40, self.all_well, "all is well")
        with self.timed("a killed node is down", DOWN_SECONDS):
            self.nodes.agents("--kill", "node4")
            self.browser.until(20, lambda: self.state_of(4) == "down", "node4 is down")
        self.picture("down")
        self.nodes.agents("--start", "node4")
        self.browser.until(20, lambda: self.state_of(4) in ("returned", "up"), "node4 is back")
        self.browser.go("/node/node4")
        self.browser.fill("reason", "<script>window.hit=1</script>")
        self.browser.submit("button[value=drain]")
        self.browser.until(10, lambda: self.browser.text("#state") == "drained", "node4 is drained")
        self.assertIn("<script>window.hit=1</script>", self.browser.text("#node"))
        self.assertIsNone(self.browser.driver.execute_script("return window.hit;"))
        self.submit_four_and_wait()
        self.browser.go("/node/node4")
        self.assertRegex(self.browser.answer("button[value=isolate]", False), r"^Isolate node4\?")
        self.assertEqual(self.browser.text("#state"), "drained")
        self.browser.submit("button[value=resume]")
        self.browser.until(10, lambda: self.browser.text("#state") in ("up", "returned"), "node4 is taken back")

    def submit_four_and_wait(self):
        """A job for four nodes waits while one is drained."""
        self.log_in("submit")
        self.submit(name="wide", nodes="4", ranks="4", program="/bin/hostname")
        self.browser.until(10, lambda: "3 of 3 are" in self.browser.text("#job"), "a job that waits for its nodes")
        self.browser.answer("#cancel", True)
        self.log_in("operate")

    def test_7_what_is_refused(self):
        self.log_in("look")
        self.browser.go("/jobs")
        self.assertEqual(self.browser.count("a[href='/jobs/new']"), 0)
        for path in ("/jobs/new",):
            self.browser.go(path)
            self.assertIn("needs the role 'submit'", self.browser.text())
        self.log_in("submit")
        self.submit(name="<script>alert(1)</script>", nodes="1", ranks="1", program="/bin/hostname")
        self.assertIn("name: up to 64", self.browser.text("#trouble"))
        self.assertEqual((self.browser.attribute_of_focused("id"), self.browser.driver.title), ("trouble", "Refused: New job · cluster"))
        self.browser.go("/node/node1")
        self.assertEqual(self.browser.count("button[value=drain]"), 0)
        self.log_in("operate")
        self.browser.forge("/node/node1/order", {"order": "isolate"})
        self.assertIn("does not come from this page", self.browser.text())
        self.browser.go("/")
        status = self.browser.driver.execute_async_script(
            "const done = arguments[0]; fetch('/node/node1/order', {method: 'POST', body: new URLSearchParams({order: 'isolate', "
            "token: 'guessed'})}).then(a => done(a.status));")
        self.assertEqual(status, 403)
        self.browser.until(10, lambda: self.state_of(1) == "up", "node1 was not isolated")

    def test_8_nodes_are_chosen_saved_and_used_by_keyboard(self):
        self.log_in("submit")
        self.browser.go("/")
        for node in ("node2", "node4"):
            self.browser.focus(f".choose[value={node}]")
            self.browser.type(Keys.SPACE)
            self.browser.until(10, lambda node=node: node in self.browser.text("#choice"), f"{node} is chosen")
            self.assertEqual(self.browser.attribute_of_focused("value"), node)
        self.picture("choice")
        self.browser.focus("#choice [name=name]")
        self.browser.type("lab", Keys.ENTER)
        self.browser.until(10, lambda: self.browser.count("[data-machine=lab]") == 1, "the machine is saved")
        self.picture("machines")
        self.browser.focus("[data-machine=lab] a[href^='/terminal']")
        self.browser.type(Keys.ENTER)
        self.browser.until(20, lambda: self.browser.text("#terminal-words") == "Connected.", "a terminal")
        self.browser.until(20, lambda: "$" in self.browser.text(".xterm-rows"), "the prompt of the shell")
        self.browser.type("id -un", Keys.ENTER)
        self.browser.until(20, lambda: "submit" in self.browser.text(".xterm-rows").split("id -un")[-1], "the user of the shell")
        self.browser.type(f"cluster-run {self.nodes.program} 2 10", Keys.ENTER)
        self.browser.until(60, lambda: self.browser.text(".xterm-rows").split("done: 2 ranks, from node2")[1:2] and "$" in self.browser.text(
            ".xterm-rows").split("done: 2 ranks, from node2")[1], "a program on the nodes of the machine")
        self.picture("terminal")
        self.assertEqual(self.browser.violations(), [])
        self.browser.type(Keys.F6)
        self.assertEqual(self.browser.focused(), "End")
        self.browser.type(Keys.ENTER)
        self.browser.until(10, lambda: "has ended" in self.browser.text("#terminal-words"), "the end of the terminal")
        self.browser.go("/files")
        self.browser.focus("a[href^='/files/edit?new']")
        self.browser.type(Keys.ENTER)
        self.browser.fill("name", "hello.sh")
        self.browser.fill("text", "#!/bin/sh\necho hello")
        self.browser.submit("form.panel button")
        self.picture("files")
        self.assertTrue(self.browser.answer("[data-file='hello.sh'] button", True).startswith("Remove hello.sh?"))
        self.assertEqual(self.browser.count("[data-file='hello.sh']"), 0)
        self.assertEqual(self.browser.browser_errors(), [])

    def test_9_pages_at_two_widths(self):
        """What axe-core finds, words for a screen reader, nothing from other hosts, no sideways scroll."""
        self.log_in("submit")
        for path in ("/", "/node/node1", "/jobs", "/jobs/1", "/jobs/new", "/machines", "/files", "/files/edit?new=yes", "/traffic", "/history",
                     "/accounts", "/terminal"):
            for width in ("wide", "phone"):
                with self.subTest(f"{path} {width}"), self.browser.at(width):
                    self.browser.go(path)
                    self.assertEqual(self.browser.violations(), [])
                    self.assertFalse(self.browser.overflows())
                    self.assertEqual((self.browser.without_words(), self.browser.foreign_requests()), ([], []))
        self.assertEqual(self.browser.browser_errors(), [])

    def test_9_a_refresh_takes_nothing_from_the_user(self):
        """A button that is held while its part refreshes is pressed; a focus without a name stays; all of it can be paused."""
        self.log_in("submit")
        self.browser.go("/")
        script = self.browser.driver.execute_script
        script("window.parts = 0; document.addEventListener('htmx:afterOnLoad', e => { window.parts += e.detail.xhr.status === 200; });")

        def refreshed(times):
            before = script("return window.parts;")
            self.browser.until(60, lambda: script("return window.parts;") >= before + times, "parts that are new")

        self.browser.hold(".choose[value=node3]", lambda: refreshed(10))
        self.browser.until(10, lambda: "node3" in self.browser.text("#choice"), "node3 is chosen")
        script("window.kept = document.querySelector('.wide'); window.kept.focus();")
        refreshed(10)
        self.assertEqual(script("return [window.kept.isConnected, document.activeElement === window.kept];"), [True, True])
        self.browser.submit_without_leaving("#pause")
        time.sleep(2)
        asked = script("return performance.getEntriesByType('resource').length;")
        time.sleep(4)
        self.assertEqual(script("return performance.getEntriesByType('resource').length;"), asked)
        self.browser.go("/jobs")
        self.assertEqual(self.browser.one("#pause").get_attribute("aria-pressed"), "true")
        self.browser.submit_without_leaving("#pause")
        self.browser.go("/")
        self.browser.submit("#choose-none")

    def test_9_tab_and_refresh(self):
        self.log_in("operate")
        self.browser.go("/")
        self.browser.type(Keys.TAB)
        self.assertEqual(self.browser.focused(), "Skip to content")
        self.browser.focus("[data-node=node3] a")
        before = self.browser.text("#nodes")
        self.browser.until(30, lambda: self.browser.text("#nodes") != before, "the nodes were shown anew")
        self.assertEqual(self.browser.focused(), "node3")
        self.browser.go("/node/node1")
        self.assertEqual(self.browser.violations(), [])
        self.assertEqual(self.browser.browser_errors(), [])


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--provider", required=True)
    parser.add_argument("--program", required=True)
    parser.add_argument("--pictures", default="")
    _, rest = parser.parse_known_args(namespace=OPTIONS)
    nodes_with_page.require("chromium", "chromedriver")
    unittest.main(argv=[sys.argv[0], *rest])


if __name__ == "__main__":
    main()
