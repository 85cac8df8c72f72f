"""What a command reports in one line."""


class AgentError(Exception):
    """What is wrong and what helps, for the user who started the command."""
