"""How long a node that does not answer stays suspect before it counts as down.

From Lifeguard: while only one node suspects, the time is long, because that node may be the slow one. Each other node
that independently finds the same makes it shorter.
"""
import math

SECONDS_MIN = 1.6
SECONDS_MAX = 2.4
CONFIRMATIONS = 3  # so many confirmations by other nodes bring the time down to the least


class Suspicion:
    def __init__(self, by, now, nodes):
        self._started = now
        self._by = {by}
        self._needed = max(1, min(CONFIRMATIONS, nodes - 2))

    def confirm(self, by):
        """Another node suspects, too; True if that is news."""
        if by in self._by or len(self._by) > self._needed:
            return False
        self._by.add(by)
        return True

    @property
    def deadline(self):
        confirmed = math.log(len(self._by)) / math.log(self._needed + 1)
        return self._started + max(SECONDS_MIN, SECONDS_MAX - (SECONDS_MAX - SECONDS_MIN) * confirmed)
