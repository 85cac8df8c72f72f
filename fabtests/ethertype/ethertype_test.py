#!/usr/bin/env python3
"""Small frames go past the other node's IP stack where the network lets them through, and no message minds where it does
not, or does no more. What is said of the way is judged, and that everything arrives; times are not."""
import os
import sys
import unittest

sys.path.insert(0, os.path.join(os.path.dirname(os.path.realpath(__file__)), "..", "info"))
import program  # noqa: E402
from program import introduce, talk  # noqa: E402
from two_nodes import POLLS_MAX, Network  # noqa: E402

import nodes  # noqa: E402


class Shortcut(Network):
    def shut(self, *where):
        """The switch swallows what takes the shortcut, there or everywhere; says so until the test is over."""
        self.faults("--loss", "100%", "--only", "shortcut", *where)
        self.addCleanup(self.open)

    def open(self):
        self.faults("--clear")

    def faults(self, *words):
        nodes.vcluster("faults", "--name", self.name, *words).check_returncode()

    def taken(self, scripted):
        """Whether its frames take the shortcut now, and how many have."""
        seen = self.seen(scripted)
        return seen["peers"][0]["rails"][0]["ethertype"], seen["counters"]["link_ethertype_sent"]

    def await_taken(self, one, other, wanted):
        """Both talk until each says so."""
        for _ in range(POLLS_MAX):
            for sender, receiver in ((one, other), (other, one)):
                talk(sender, receiver, 50)
            if (self.taken(one)[0], self.taken(other)[0]) == (wanted, wanted):
                return
        self.fail(f"still {self.taken(one)}, {self.taken(other)}")

    def pair(self, *settings):
        one, other = (self.start_endpoint(node, **(settings[node - 1] if settings else {})) for node in (1, 2))
        introduce(one, other)
        return one, other

    def test_is_taken_by_itself(self):
        one, other = self.pair()
        self.await_taken(one, other, True)
        before = self.taken(one)[1]
        talk(one, other, 100)
        self.assertGreater(self.taken(one)[1], before)
        self.talk_both_ways(one, other)

    def test_is_left_where_one_side_has_none(self):
        for settings in ({"FI_CLUSTER_ETHERTYPE": "no"}, {"link": "udp"}):
            with self.subTest(settings=settings):
                one, other = self.pair({}, settings)
                for _ in range(3):
                    self.talk_both_ways(one, other)
                self.assertEqual((self.taken(one), self.taken(other)), ((False, 0), (False, 0)))

    def test_a_network_that_swallows_it(self):
        self.shut("--nodes", "2", "--direction", "to")
        one, other = self.pair()
        for _ in range(3):
            self.talk_both_ways(one, other)
        self.assertEqual((self.taken(one)[0], self.taken(other)[0]), (False, False))
        self.assertGreater(self.taken(one)[1], 0)  # it has asked
        self.open()
        self.await_taken(one, other, True)

    def test_a_network_that_begins_to_swallow_it(self):
        one, other = self.pair()
        self.await_taken(one, other, True)
        self.shut()
        self.await_taken(one, other, False)
        for _ in range(3):
            self.talk_both_ways(one, other)
        self.open()
        self.await_taken(one, other, True)


if __name__ == "__main__":
    program.prepare(__doc__)
    nodes.prepare()
    unittest.main(argv=sys.argv[:1], verbosity=2)
