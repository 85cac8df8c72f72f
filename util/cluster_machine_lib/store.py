"""The virtual machines of one user: names of machines and their nodes, as JSON in a file that only this user writes.

The file lies in the home directory: with a shared home, every node knows the same machines.
"""
import contextlib
import fcntl
import json
import os
import re

from clusterd_lib.errors import AgentError
from clusterd_lib.protocol.wire import is_name

MACHINES_MAX, NODES_MAX = 100, 4096
_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,31}")


def path():
    base = os.environ.get("XDG_CONFIG_HOME") or os.path.join(os.path.expanduser("~"), ".config")
    return os.path.join(base, "cluster", "machines.json")


def is_machine_name(text):
    return _NAME.fullmatch(text) is not None


def load():
    """Name -> nodes, in the order in which they were chosen."""
    try:
        with open(path(), encoding="utf-8") as file:
            found = json.load(file)
        if all(is_machine_name(name) and nodes and all(map(is_name, nodes)) for name, nodes in found.items()):
            return found
    except FileNotFoundError:
        return {}
    except (ValueError, TypeError, AttributeError, OSError) as error:
        raise AgentError(f"{path()}: {getattr(error, 'strerror', None) or 'not JSON'}") from error
    raise AgentError(f"{path()}: not a list of machines: repair or remove it")


def nodes_of(name):
    machines = load()
    if name not in machines:
        raise AgentError(f"there is no machine '{name}': " + (f"you have {', '.join(sorted(machines))}" if machines else "you have saved none"))
    return machines[name]


@contextlib.contextmanager
def _changed():
    """The machines, written back at the end, so that two changes at a time lose nothing."""
    os.makedirs(os.path.dirname(path()), mode=0o700, exist_ok=True)
    with open(path() + ".lock", "w", encoding="ascii") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        machines = load()
        yield machines
        with open(path() + ".new", "w", encoding="utf-8") as file:
            json.dump(machines, file, indent=1)
            file.write("\n")
        os.replace(path() + ".new", path())


def save(name, nodes):
    """Replaces a machine of that name."""
    if not is_machine_name(name):
        raise AgentError(f"'{name}' is no name of a machine: up to 32 letters, digits and . _ -")
    nodes = list(dict.fromkeys(nodes))
    if not 0 < len(nodes) <= NODES_MAX or not all(map(is_name, nodes)):
        raise AgentError(f"a machine has 1 to {NODES_MAX} nodes, each with a name of a node")
    with _changed() as machines:
        if name not in machines and len(machines) >= MACHINES_MAX:
            raise AgentError(f"you have {MACHINES_MAX} machines: remove one first")
        machines[name] = nodes


def remove(name):
    nodes_of(name)
    with _changed() as machines:
        machines.pop(name, None)
