"""Errors of one line, for the user."""


class VclusterError(Exception):
    """Ends the command with the message on standard error."""
