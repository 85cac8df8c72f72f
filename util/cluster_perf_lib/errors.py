"""Errors that end a run."""


class PerfError(Exception):
    """Nothing can be measured; the text names cause and remedy."""


class Skipped(Exception):
    """One transport cannot be measured here; the text says why."""


class NotHere(Skipped):
    """Something that it needs is not installed or not permitted here."""
