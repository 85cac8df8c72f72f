"""Jumps of the clock: the time of day and the monotonic clock advance by different amounts.

Time servers slew by less than a thousandth. A third clock, which also counts while the host sleeps, tells a suspended
host from a clock that was set.
"""
JUMP_SECONDS = 0.5


class ClockWatch:
    def __init__(self, wall, steady, boot):
        self._last = (wall, steady, boot)

    def look(self, wall, steady, boot):
        """What happened since the last look, in words; empty if nothing did."""
        passed = [now - then for now, then in zip((wall, steady, boot), self._last)]
        self._last = (wall, steady, boot)
        slept = passed[2] - passed[1]
        if slept > JUMP_SECONDS:
            return f"this host was suspended for {slept:.1f} s"
        jump = passed[0] - passed[1]
        return f"the clock jumped by {jump:+.1f} s" if abs(jump) > JUMP_SECONDS else ""
