"""What a command reports in one line."""


class AgentError(Exception):
    """What is wrong and what helps, for the one that started the command."""
