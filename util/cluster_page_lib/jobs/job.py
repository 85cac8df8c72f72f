"""A job as the page shows it, and the request from which it is made."""
import dataclasses
import re
import shlex
from typing import Optional

QUEUED, RUNNING, ENDED, FAILED, CANCELLED, LOST = "queued", "running", "ended", "failed", "cancelled", "lost"
OPEN = (QUEUED, RUNNING)
NODES_MAX, RANKS_MAX, MINUTES_MAX = 4096, 1 << 20, 60 * 24 * 30
SCRIPT_BYTES_MAX = 100_000
ARGUMENTS_MAX = 200

_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9 ._+-]{0,63}")
_VARIABLE = re.compile(r"[A-Za-z_][A-Za-z0-9_]{0,127}")


class BadRequest(Exception):
    """The request is wrong; the text tells its sender why."""


@dataclasses.dataclass
class Job:
    number: str
    user: str
    name: str
    state: str
    wanted: int  # nodes
    ranks: int
    nodes: list = dataclasses.field(default_factory=list)
    submitted: float = 0.0
    started: float = 0.0
    ended: float = 0.0
    reason: str = ""
    status: Optional[int] = None  # with which it has ended

    @property
    def is_open(self):
        return self.state in OPEN


@dataclasses.dataclass
class Request:
    name: str
    nodes: int
    ranks: int
    minutes: int
    words: list  # program and arguments; empty for a script
    script: str
    environment: dict
    on: list = dataclasses.field(default_factory=list)  # these nodes and no others


def _number(form, field, at_most):
    text = form.get(field, "").strip()
    if not re.fullmatch(r"[0-9]{1,9}", text) or not 1 <= int(text) <= at_most:
        raise BadRequest(f"{field}: a number from 1 to {at_most}")
    return int(text)


def _environment(text):
    found = {}
    for line in text.splitlines():
        if line.strip():
            name, sign, value = line.strip().partition("=")
            if not sign or not _VARIABLE.fullmatch(name):
                raise BadRequest(f"environment: '{line[:40]}' is no NAME=VALUE")
            found[name] = value
    return found


def _words(form):
    program = form.get("program", "").strip()
    if not program.startswith("/") or not program.isprintable():
        raise BadRequest("program: its whole path, from the root directory")
    try:
        arguments = shlex.split(form.get("arguments", ""))
    except ValueError as error:
        raise BadRequest(f"arguments: {error}") from error
    if len(arguments) > ARGUMENTS_MAX:
        raise BadRequest(f"arguments: more than {ARGUMENTS_MAX}")
    return [program, *arguments]


def read(form, on=()):
    """Returns a Request; raises BadRequest, which says what is wrong. `on`: the nodes of the chosen machine."""
    name = form.get("name", "").strip()
    if not _NAME.fullmatch(name):
        raise BadRequest("name: up to 64 letters, digits, blanks and . _ + - of ASCII")
    script = form.get("script", "").replace("\r\n", "\n")
    if script.strip():
        if not script.startswith("#!/") or len(script.encode()) > SCRIPT_BYTES_MAX:
            raise BadRequest(f"script: begins with #!/ and has at most {SCRIPT_BYTES_MAX} bytes")
        if form.get("program", "").strip():
            raise BadRequest("a program or a script, not both")
    words = [] if script.strip() else _words(form)
    nodes, ranks = len(on) or _number(form, "nodes", NODES_MAX), _number(form, "ranks", RANKS_MAX)
    if ranks < nodes:
        raise BadRequest(f"ranks: at least one a node, and there are {nodes}")
    return Request(name, nodes, ranks, _number(form, "minutes", MINUTES_MAX), words, script if script.strip() else "",
                   _environment(form.get("environment", "")), list(on))
