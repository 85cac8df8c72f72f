"""The command cluster-page."""
import sys

from cluster_lib import build, system_errors
from clusterd_lib import interpreter
from clusterd_lib.errors import AgentError

from . import assets, settings as options

NEEDED = ("starlette", "uvicorn", "jinja2", "pam", "websockets")


def main(arguments):
    try:
        settings = options.read(arguments)
        interpreter.with_packages(purpose="page", needed=NEEDED)
        lacks = assets.ensure()
        if lacks:
            print(f"cluster-page: warning: {lacks}", file=sys.stderr)
        from . import server  # pylint: disable=import-outside-toplevel
        return server.main(settings)
    except (AgentError, build.BuildError) as error:
        print(f"cluster-page: {error}", file=sys.stderr)
        return 1
    except OSError as error:
        print(f"cluster-page: {system_errors.in_words(error)}", file=sys.stderr)
        return 1
