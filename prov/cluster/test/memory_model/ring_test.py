#!/usr/bin/env python3
"""The order of memory accesses in the ring (src/shm), on any processor that C++ allows, arm64 among them: every execution
of a small model of each protocol is run (machine.py). Each mistake planted below must be found."""
import os
import re
import sys
import unittest

sys.path.insert(0, os.path.dirname(os.path.realpath(__file__)))
from machine import ACQUIRE, RELAXED, RELEASE, SEQ_CST, Violation, exchange, explore, load, process_fence, read, store, write  # noqa: E402

SOURCES = os.path.join(os.path.dirname(os.path.realpath(__file__)), "..", "..", "src", "shm")

# What the models below stand for, as it is written in the source.
MODELLED = {
    "ring_writer.h": ["std::atomic_ref(slot.sequence).store(position_, std::memory_order_release);"],
    "ring_writer.cc": ["std::atomic_ref(ring_.control->head).load(std::memory_order_acquire)"],
    "ring_reader.h": ["std::atomic_ref(next_word()).load(std::memory_order_acquire)",
                      "std::atomic_ref(ring_.control->head).store(position_, std::memory_order_release);"],
    "recall_word.h": [
        "held_.store(resting() | kHeld, std::memory_order_seq_cst); os::fence_processes(); "
        "return taking_.load(std::memory_order_seq_cst) == 0;",
        "held_.exchange(resting(), std::memory_order_seq_cst);",
        "taking_.store(1, std::memory_order_relaxed); std::atomic_signal_fence(std::memory_order_seq_cst); "
        "if (held_.load(std::memory_order_acquire) == kFenced && fenced_)",
        "taking_.exchange(1, std::memory_order_seq_cst); if ((held_.load(std::memory_order_seq_cst) & kHeld) == 0",
        "taking_.store(0, std::memory_order_release);"],
    "doorbell_word.h": [
        "word_.exchange(wanted, std::memory_order_seq_cst)",
        "const std::uint32_t word = word_.load(std::memory_order_relaxed); if (fenced_ && (word & kFenced)) [[likely]] { "
        "if (!(word & kRequested)) [[likely]] return false; } "
        "return (word_.fetch_and(~kRequested, std::memory_order_seq_cst) & kRequested) != 0;"],
}

ANYTHING = "a word of one's own"  # what os/process_fence.cc exchanges where there is no membarrier
SLOTS, MESSAGES, LOOKS = 1, 2, 3


def consume(planted=()):
    """Segments through a ring of one slot, so that it is written again."""

    def writer():
        head = 0
        for number in range(MESSAGES):
            if number - head >= SLOTS:
                head = yield load("head", RELAXED if "the writer's look at the head is relaxed" in planted else ACQUIRE)
                if number - head >= SLOTS:
                    return number
            yield write(f"slot {number % SLOTS}", number)
            order = RELAXED if "a segment is published without release" in planted else RELEASE
            yield store(f"sequence {number % SLOTS}", number + 1, order)
        return MESSAGES

    def reader():
        position = 0
        for _ in range(LOOKS):
            order = RELAXED if "a segment is looked for without acquire" in planted else ACQUIRE
            if (yield load(f"sequence {position % SLOTS}", order)) != position + 1:
                continue
            if (yield read(f"slot {position % SLOTS}")) != position:
                raise Violation("another segment than the one that was announced")
            position += 1
            yield store("head", position, RELAXED if "the head is published without release" in planted else RELEASE)
        return position

    return explore([writer, reader])


def hold(planted=(), fenced=True):
    """The writer takes a segment back, while the reader takes it."""

    def writer():
        resting = 2 if fenced else 0
        yield store("held", resting | 1, SEQ_CST)
        if "the writer's fence left out" not in planted:
            yield process_fence() if fenced else exchange(ANYTHING, lambda _: 1)
        if (yield load("taking", SEQ_CST)) == 0:
            yield write("withdrawn", 1)
        if "resume without release" in planted:
            yield store("held", resting, RELAXED)
        else:
            yield exchange("held", lambda _: resting)

    def reader():
        for _ in range(2):
            yield store("taking", 1, RELAXED)
            held = yield load("held", RELAXED if "held is looked at without acquire" in planted else ACQUIRE)
            if not (held == 2 and fenced):
                if "the reader's own fence left out" not in planted:
                    yield exchange("taking", lambda _: 1)
                if (yield load("held", RELAXED if "the reader's own fence left out" in planted else SEQ_CST)) & 1:
                    yield store("taking", 0, RELEASE)
                    continue
            yield read("withdrawn")
            yield store("taking", 0, RELAXED if "a batch ends without release" in planted else RELEASE)

    return explore([writer, reader], initial={"held": 2 if fenced else 0})


def sleep(planted=(), fenced=True):
    """The reader goes to sleep while the writer posts: no wake may be missed."""

    def sleeper():
        yield exchange("bell", lambda _: 1 | (2 if fenced else 0))
        if "the sleeper's fence left out" not in planted:
            yield process_fence() if fenced else exchange(ANYTHING, lambda _: 1)
        return "asleep" if (yield load("sequence", ACQUIRE)) == 0 else "awake"

    def waker():
        yield store("sequence", 1, RELEASE)
        word = yield load("bell", RELAXED)
        if (fenced and word & 2 or "the waker's own fence left out" in planted) and not word & 1:
            return "silent"
        return "rings" if (yield exchange("bell", lambda bell: bell & ~1)) & 1 else "silent"

    def judge(results):
        if results == ["asleep", "silent"]:
            raise Violation("a wake is missed")

    return explore([sleeper, waker], judge, {"bell": 2 if fenced else 0})


class Ring(unittest.TestCase):
    def test_no_execution_is_wrong(self):
        """The numbers of executions say that the search has not been cut short."""
        for model in (consume, hold, lambda: hold(fenced=False), sleep, lambda: sleep(fenced=False)):
            self.assertGreater(model(), 10)

    def test_planted_mistakes_are_found(self):
        for model, planted, settings in (
                (consume, "a segment is published without release", {}),
                (consume, "a segment is looked for without acquire", {}),
                (consume, "the head is published without release", {}),
                (consume, "the writer's look at the head is relaxed", {}),
                (hold, "the writer's fence left out", {}),
                (hold, "resume without release", {}),
                (hold, "a batch ends without release", {}),
                (hold, "held is looked at without acquire", {}),
                (hold, "the reader's own fence left out", {"fenced": False}),
                (sleep, "the sleeper's fence left out", {}),
                (sleep, "the waker's own fence left out", {"fenced": False})):
            with self.subTest(planted), self.assertRaises(Violation):
                model((planted,), **settings)

    def test_the_models_follow_the_source(self):
        for name, statements in MODELLED.items():
            with open(os.path.join(SOURCES, name), encoding="utf-8") as file:
                source = re.sub(r"\s+", " ", re.sub(r"//.*", "", file.read()))
            for statement in statements:
                self.assertIn(statement, source, f"{name} has changed: so must the model")


class Litmus(unittest.TestCase):
    """The machine itself: what C++ allows and forbids in the classical examples."""

    @staticmethod
    def outcomes(*programs):
        seen = set()
        explore(programs, lambda results: seen.add(tuple(results)))
        return seen

    def pair(self, first, second, between=None):
        def thread(mine, other):
            def program():
                yield store(mine, 1, first)
                if between:
                    yield between()
                return (yield load(other, second))
            return program
        return self.outcomes(thread("x", "y"), thread("y", "x"))

    def test_store_buffering(self):
        self.assertIn((0, 0), self.pair(RELAXED, RELAXED))
        self.assertIn((0, 0), self.pair(RELEASE, ACQUIRE))
        self.assertNotIn((0, 0), self.pair(SEQ_CST, SEQ_CST))
        self.assertNotIn((0, 0), self.pair(RELAXED, RELAXED, process_fence))

    def message(self, release, acquire):
        def writer():
            yield store("data", 1, RELAXED)
            yield store("flag", 1, release)

        def reader():
            flag = yield load("flag", acquire)
            return flag, (yield load("data", RELAXED))
        return self.outcomes(writer, reader)

    def test_message_passing(self):
        self.assertIn((None, (1, 0)), self.message(RELAXED, ACQUIRE))
        self.assertIn((None, (1, 0)), self.message(RELEASE, RELAXED))
        self.assertNotIn((None, (1, 0)), self.message(RELEASE, ACQUIRE))

    def test_a_thread_reads_no_older_value_again(self):
        def writer():
            yield store("x", 1, RELAXED)

        def reader():
            first = yield load("x", RELAXED)
            return first, (yield load("x", RELAXED))
        self.assertNotIn((None, (1, 0)), self.outcomes(writer, reader))


if __name__ == "__main__":
    unittest.main(verbosity=2)
