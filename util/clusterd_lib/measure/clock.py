"""Jumps of the clock: the time of day goes another way than the clock that only counts.

Time servers slew by less than a thousandth. A host that was suspended is distinguished by a third clock, which counts
while it sleeps.
"""
JUMP_SECONDS = 0.5


class ClockWatch:
    def __init__(self, wall, steady, boot):
        self._last = (wall, steady, boot)

    def look(self, wall, steady, boot):
        """What has happened since the last look, in words; empty if nothing has."""
        passed = [now - then for now, then in zip((wall, steady, boot), self._last)]
        self._last = (wall, steady, boot)
        slept = passed[2] - passed[1]
        if slept > JUMP_SECONDS:
            return f"this host was suspended for {slept:.1f} s"
        jump = passed[0] - passed[1]
        return f"the clock jumped by {jump:+.1f} s" if abs(jump) > JUMP_SECONDS else ""
