"""Who may include whom. The arrows of the architecture, as a table: change both or neither."""
import re

from source import Complaint

# room -> rooms (or single headers) it may include beside its own.
ALLOWED = {
    "base": set(),
    "wire": {"base"},
    "link": {"base", "wire"},
    "os": {"base", "wire", "link"},
    "multipath": {"base", "wire", "link", "os/interfaces.h", "reliability/send_window.h"},
    "reliability": {"base", "wire", "link", "multipath", "carrier"},
    "shm": {"base", "wire", "os", "carrier"},
"carrier": {"base", "wire"},
    "protocol": {"base", "wire", "carrier"},
"engine": {"base", "wire", "carrier", "link", "os", "multipath", "reliability", "shm", "protocol"},
    "api": {"base", "protocol", "engine"},
"provider": {"base", "wire", "carrier", "link", "os", "multipath", "reliability", "shm", "protocol", "engine", "api"},
}
LIBFABRIC_ROOMS = {"api", "provider"}

_INCLUDE = re.compile(r'^\s*#\s*include\s*([<"])([^>"]+)[>"]', re.MULTILINE)


def includes(file):
    """(line, quoted with "" rather than <>, name) for every include directive outside comments."""
    for match in _INCLUDE.finditer(file.code):
        line = file.code.count("\n", 0, match.start(1)) + 1
        yield line, match.group(1) == '"', match.group(2)


def check(tree):
    for file in tree.cpp("prov/cluster/src/"):
        room = file.room()
        if room not in ALLOWED:
            yield Complaint(file.path, 1, "layering", f"room '{room}' is not in the table of rooms",
                            "put the file into a room, or add the room to layering.py and the architecture")
            continue
        for line, quoted, name in includes(file):
            yield from _check_include(file, room, line, quoted, name)


def _check_include(file, room, line, quoted, name):
    if name.startswith("rdma/"):
        if room not in LIBFABRIC_ROOMS:
            yield Complaint(file.path, line, "layering", f"{room}/ includes <{name}>",
                            "libfabric's types end in api/ and provider/: pass values of ours instead")
        return
    if not quoted:
        return
    target = name.split("/")[0]
    if "/" not in name:
        yield Complaint(file.path, line, "layering", f'"{name}" names no room',
                        f'include it from the source root: "{room}/{name}"')
    elif target != room and target not in ALLOWED[room] and name not in ALLOWED[room]:
        allowed = ", ".join(sorted(ALLOWED[room])) or "nothing else"
        yield Complaint(file.path, line, "layering", f'{room}/ includes "{name}"',
                        f"{room}/ may include: {allowed}; return a value upwards instead of calling up")
