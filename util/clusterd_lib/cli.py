"""The command clusterd."""
import sys

from cluster_lib import build, system_errors

from . import interpreter
from . import settings as options
from .errors import AgentError


def main(arguments):
    try:
        settings = options.read(arguments)
        interpreter.with_packages()
        from . import daemon  # pylint: disable=import-outside-toplevel
        return daemon.main(settings)
    except (AgentError, build.BuildError) as error:
        print(f"clusterd: {error}", file=sys.stderr)
        return 1
    except OSError as error:
        print(f"clusterd: {system_errors.in_words(error)}", file=sys.stderr)
        return 1
