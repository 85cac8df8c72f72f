"""Whom cluster-why names, from reports made by hand: no process is started and no node is asked."""
import unittest

from reports import ANY, Launcher, Operation, Peer, address, explained, lines, nodes, process, receive, send
from cluster_why_lib.report import Connection, Message

RANKS = 16


def ring(culprit, *, away=None):
    """Each rank waits for the next one, but for the culprit."""
    return [process(rank, receive((rank + 1) % RANKS, 41.0)) if rank != culprit else away for rank in range(RANKS)]


class Culprits(unittest.TestCase):
    def kinds(self, processes, **more):
        return [cause.kind for cause in explained(processes, **more)[1]]

    def test_a_stopped_rank_among_sixteen(self):
        stopped = process(7, state="T", stop_signal=19, trouble="it does not answer: the process is stopped")
        said = lines(ring(7, away=stopped))
        self.assertEqual(said[0], "Rank 7 on node2 has made no call for 41 s: stopped by SIGSTOP; 15 ranks wait for it.")
        self.assertEqual(said[1], "To continue: on node2: kill -CONT 1007")
        self.assertIn("rank 6 on node2 has waited 41 s for rank 7 on node2 to send a message that matches it (receive of 8 bytes, tag 5)", said[2])
        self.assertEqual(len(said), 3, said)

    def test_a_rank_that_was_stopped_lately(self):
        """What its peers have heard says more than how long they have waited."""
        stopped = process(7, state="T", stop_signal=20)
        ranks = ring(7, away=stopped)
        ranks[6] = ranks[6]._replace(peers=[Peer(address(7), "packet", silent_s=12.0)])
        self.assertTrue(lines(ranks)[0].startswith("Rank 7 on node2 has made no call for 12 s: stopped by SIGTSTP; 15 ranks"))
        ranks[6] = ranks[6]._replace(peers=[Peer(address(7), "packet")])
        self.assertIn("for 41 s: stopped by SIGTSTP", lines(ranks)[0], "a peer that has never heard of it knows nothing")

    def test_a_rank_under_a_debugger(self):
        said = lines(ring(7, away=process(7, state="t", tracer=99)))
        self.assertEqual(said[0], "Rank 7 on node2 has made no call for 41 s: stopped by the debugger 99; 15 ranks wait for it.")
        self.assertNotIn("kill", said[1])

    def test_a_rank_that_computes_or_sleeps(self):
        computing = process(7, no_call_s=41.0)
        self.assertEqual(lines(ring(7, away=computing))[0],
                         "Rank 7 on node2 has made no call for 41 s: it computes; 15 ranks wait for it, the longest for 41 s.")
        sleeping = process(7, receive(8, 50.0), no_call_s=41.0, state="S", sleeps_in="hrtimer_nanosleep")
        said = lines(ring(7, away=sleeping))
        self.assertIn("41 s: it sleeps in the kernel (hrtimer_nanosleep); 15 ranks", said[0])
        self.assertNotIn("deadlock", " ".join(said).lower(), "a rank that makes no call waits for nobody")

    def test_a_rank_that_waits_for_any_other_waits_for_the_one_that_sleeps(self):
        said = lines([process(0, receive(None, 9.0), size=3), process(1, receive(0, 8.0), size=3), process(2, size=3, no_call_s=9.0)])
        self.assertIn("Rank 2 on node1 has made no call for 9.0 s: it computes; 2 ranks wait for it, the longest for 9.0 s.", said[0])

    def test_a_missing_receive(self):
        """Rank 3 goes to a barrier without the receive; the others are in the barrier, or wait for it."""
        ranks = [process(0, send(3, 12.0), size=4), *(process(rank, receive(0, 11.0, tag=9, bytes=0), size=4) for rank in (1, 2, 3))]
        ranks[3] = ranks[3]._replace(messages=[Message(address(0), 1 << 20, 5)])
        self.assertEqual(self.kinds(ranks), ["receive"])
        said = lines(ranks)
        self.assertTrue(said[0].startswith("Rank 3 on node1 has posted no receive that matches a message of rank 0 on node1 "
                                           "(send of 1048576 bytes, tag 5), but waits for rank 0 on node1"), said[0])
        self.assertIn("; 3 ranks wait for it, the longest for 12 s.", said[0])

    def test_a_missing_receive_of_a_rank_that_does_something_else(self):
        ranks = [process(0, send(1, 12.0), size=2), process(1, size=2)]
        self.assertEqual(self.kinds(ranks), ["idle"])
        self.assertTrue(lines(ranks)[0].startswith("Rank 1 on node1 makes calls, but has posted no receive that matches a message of rank 0"))
        self.assertEqual(self.kinds([ranks[0], ranks[1]._replace(no_call_s=5.0)]), ["away"])

    def test_another_tag(self):
        ranks = [process(0, receive(None, 12.0, tag=9), size=2),
                 process(1, receive(0, 12.0, tag=7), size=2, messages=[Message(address(0), 8, 5)])]
        self.assertEqual(self.kinds(ranks), ["message"])
        self.assertIn("waits for rank 0 on node1 to send a message (receive of 8 bytes, tag 7), but a message that has come (8 bytes, tag 5) "
                      "matches no receive", lines(ranks)[0])

    def test_a_lost_node(self):
        """The four ranks of node3; the others wait for them and for each other."""
        there = [rank for rank in range(RANKS) if rank // 4 != 2]
        ranks = [process(rank, receive((rank + 1) % RANKS, 12.0)) for rank in there]
        ranks[0] = ranks[0]._replace(peers=[Peer(address(8), "none", lost="peer unreachable", lost_s=7.0)])
        said = lines(ranks, nodes(node3={"down": True, "trouble": "no answer", "since_s": 12.0}))
        self.assertEqual(said[0], "Node3 has been down for 12 s (no answer): ranks 8-11 ran there; 12 ranks wait for them, the longest for 12 s.")
        self.assertIn("rank 7 on node2 has waited 12 s for the process at 10.0.0.3:5008 on node3", said[1])

    def test_a_node_that_is_lost_while_nobody_mentions_its_ranks(self):
        ranks = [process(rank, receive(None, 12.0)) for rank in range(RANKS) if rank // 4 != 2]
        said = lines(ranks, nodes(node3={"down": True, "since_s": 12.0}))
        self.assertEqual(said[0], "Node3 has been down for 12 s: ranks 8-11 ran there; 12 ranks wait for them, the longest for 12 s.")

    def test_an_agent_that_is_down_while_the_ranks_of_its_node_live(self):
        ranks = [process(rank, receive((rank + 1) % RANKS, 12.0)) for rank in range(RANKS) if rank // 4 != 2]
        ranks[7] = ranks[7]._replace(peers=[Peer(address(8), "packet", silent_s=0.4)])
        down = nodes(node3={"down": True, "since_s": 12.0, "trouble": "no answer"})
        self.assertEqual(self.kinds(ranks, of_nodes=down), ["unseen"])
        self.assertIn("5008 on node3: peers hear from there, but node3 gives no report (no answer); 12 ranks wait", lines(ranks, down)[0])

    def test_a_process_that_has_ended(self):
        ranks = ring(7, away=None)
        del ranks[7]
        ranks[6] = ranks[6]._replace(peers=[Peer(address(7), "none", lost="peer's process has ended", lost_s=3.0)])
        said = lines(ranks)
        self.assertEqual(said[0], "Rank 7, the process at 10.0.0.2:5007 on node2 has ended (lost 3.0 s ago: peer's process has ended); "
                                  "15 ranks wait for it, the longest for 41 s.")

    def test_a_cut_cable_between_ranks_that_run(self):
        ranks = [process(0, receive(4, 12.0), size=5, peers=[Peer(address(4), "packet", owes=True, silent_s=12.0)]),
                 process(4, receive(0, 12.0), size=5, peers=[Peer(address(0), "packet", owes=True, silent_s=12.0)])]
        self.assertEqual(self.kinds(ranks), ["parted"], "no deadlock")
        self.assertIn("has heard nothing from rank 4 on node2 for 12 s, though both run: look at the cable", lines(ranks)[0])
        ranks[1] = ranks[1]._replace(peers=[Peer(address(0), "packet", owes=False, silent_s=0.5)])
        self.assertNotIn("parted", self.kinds(ranks), "after a pause, the first frame is on its way")

    def test_a_deadlock_of_two_windows(self):
        """Each rank has the lock of its own window and waits for that of the other."""
        def atomic(rank, seconds):
            return Operation("atomic", address(rank), "to answer it", 8, age_s=seconds)

        said = lines([process(0, atomic(1, 20.0), size=2), process(1, atomic(0, 19.0), size=2)])
        self.assertEqual(said[0], "Deadlock: ranks 0-1 on node1 wait for each other, for 19 s at least.")
        self.assertEqual([line.partition(" has waited")[0] for line in said[1:]], ["  rank 0 on node1", "  rank 1 on node1"])
        # A library that tries again and again shows atomics that are always new.
        repeating = [process(0, atomic(1, 0.0), size=3), process(1, atomic(0, 0.0), size=3), process(2, receive(0, 20.0), size=3)]
        self.assertEqual(self.kinds(repeating), ["repeating"])
        self.assertEqual(lines(repeating)[0], "Ranks 0-1 on node1 repeat atomic operations on each other's memory: each may hold a lock for which "
                                              "the other waits; 1 rank waits for them, for 20 s.")
        same = [process(0, atomic(2, 0.0), size=3), process(1, atomic(2, 0.0), size=3), process(2, receive(0, 20.0), size=3)]
        self.assertIn("Ranks 0-1 on node1 repeat atomic operations on the memory of rank 2 on node1: each may hold", lines(same)[0])
        own = [process(0, atomic(0, 0.0), size=3), process(1, atomic(0, 0.0), size=3), process(2, receive(0, 20.0), size=3)]
        self.assertIn("Ranks 0-1 on node1 repeat atomic operations on the memory of rank 0 on node1: each may hold", lines(own)[0])
        self.assertEqual(self.kinds(same[:1] + [process(1, size=3), same[2]]), ["busy"], "one rank alone makes progress")
        # A library that sends messages for its windows has receives for any of them posted.
        window = receive(None, 20.0, count=4, tag=77)
        asking = [process(0, window, size=3), process(1, window, size=3), process(2, window, receive(0, 20.0), size=3)]
        self.assertEqual(self.kinds(asking), ["windows"])
        self.assertIn("Ranks 0-1 on node1 have open windows and make calls, but get no message", lines(asking)[0])

        # A library that sends messages for its windows, and posts only buffers that take all.
        hidden = [process(0, size=3), process(1, size=3), process(2, receive(0, 20.0), size=3)]
        self.assertEqual(self.kinds(hidden), ["windows"])
        self.assertIn("Ranks 0-1 on node1 make calls, but have nothing in progress: each may wait for the other inside its MPI library",
                      lines(hidden)[0])
        self.assertEqual(self.kinds([*hidden[:2], process(2, send(0, 20.0), size=3)]), ["idle"], "a missing receive")

    def test_a_deadlock_of_sends(self):
        said = lines([process(0, send(1, 20.0), size=3), process(1, send(0, 20.0), size=3), process(2, receive(1, 19.0), size=3)])
        self.assertEqual(said[0], "Deadlock: ranks 0-1 on node1 wait for each other, for 20 s at least; 1 more rank waits for them.")
        self.assertEqual(len(said), 3)

    def test_a_rank_that_waits_for_itself(self):
        self.assertIn("has posted no receive that matches a message of itself", lines([process(0, send(0, 20.0), size=1)])[0])

    def test_a_cycle_that_a_third_rank_can_open_is_no_deadlock(self):
        """Rank 1 has a receive from rank 2 posted beforehand, which computes."""
        ranks = [process(0, receive(1, 20.0), size=3), process(1, receive(0, 20.0), receive(2, 20.0), size=3), process(2, size=3, no_call_s=20.0)]
        self.assertEqual(self.kinds(ranks), ["away"])
        self.assertIn("2 ranks wait for it", lines(ranks)[0])

    def test_no_deadlock_among_reports_of_different_times(self):
        ranks = [process(0, send(1, 4.0), size=2), process(1, send(0, 9.0), size=2)]
        self.assertEqual(self.kinds(ranks), ["deadlock"])
        self.assertEqual(self.kinds(ranks, span_s=5.0), [])

    def test_no_deadlock_while_ranks_are_missing_that_could_send(self):
        ranks = [process(0, receive(None, 20.0), size=3), process(1, receive(0, 20.0), size=3)]
        self.assertEqual(self.kinds(ranks), [])
        self.assertEqual(lines(ranks)[-1], "Rank 2 was found on none of node1: --nodes names more.")

    def test_a_cut_launcher(self):
        silent = Launcher(900, "orted", "S", [], [Connection("10.0.0.2:1", "10.0.0.1:2", 5)])
        ranks = [process(rank, launcher=silent if rank >= 4 else Launcher(800, "mpirun", "S")) for rank in range(8)]
        self.assertEqual(self.kinds(ranks), ["launcher"])
        self.assertEqual(lines(ranks)[0], "All 8 ranks can wait for the launcher: nothing answers what orted (process 900) on node2 sends over TCP "
                                          "from 10.0.0.2:1 to 10.0.0.1:2 (5 retransmissions): is this rail cut?")
        ranks[5] = process(5, state="T", stop_signal=19, launcher=silent)
        self.assertEqual(self.kinds(ranks), ["stopped"], "that is certain")
        ranks = [process(rank, launcher=Launcher(800, "mpirun", "T")) for rank in range(4)]
        self.assertIn("mpirun (process 800) on node1 is stopped", lines(ranks)[0])

    def test_a_rank_without_endpoint(self):
        ranks = [process(0, size=2), process(1, size=2, addresses=[], state="S", sleeps_in="do_wait")]
        self.assertEqual(self.kinds(ranks), ["outside"])
        self.assertIn("Rank 1 on node1 (process 1001 solver) has no endpoint: it has not begun to use MPI", lines(ranks)[0])

    def test_nobody_waits(self):
        said = lines([process(rank, launcher=Launcher(800, "mpirun", "S"), no_call_s=3.0, size=4) for rank in range(4)])
        self.assertEqual(said, ["No rank waits for another (4 ranks: 4 without a call; the longest without a call for 3.0 s). If the job hangs, its "
                                "ranks compute, or wait for mpirun (process 800)."])
        self.assertEqual(lines([process(0, receive(1, 0.5), size=2), process(1, receive(0, 0.5), size=2)])[0][:27], "No rank waits for another (")

    def test_buffers_of_a_library_wait_for_nobody(self):
        made, _ = explained([process(0, Operation("receive", ANY, "x", age_s=9.0, count=2), size=1)])
        self.assertEqual(made.waits, [])

    def test_thousands_of_ranks(self):
        ranks = [process(rank, receive((rank + 1) % 3000, 20.0), size=3000) for rank in range(3000)]
        ranks[5] = process(5, size=3000, state="T", stop_signal=19)
        self.assertIn("2999 ranks wait for it", lines(ranks, [])[0])


if __name__ == "__main__":
    unittest.main(verbosity=1)
