"""Which component may include which: the include order of prov/cluster/README.md, as a table. Change both or neither."""
import re

from source import Violation

# component -> components (or single headers) it may include beside its own.
ALLOWED = {
    "base": set(),
    "crypto": {"base"},
    "wire": {"base"},
    "link": {"base", "wire"},
    "carrier": {"base", "wire"},
    "os": {"base", "crypto", "wire", "link"},
    "seal": {"base", "crypto", "wire", "link"},
    "relay": {"base", "crypto", "wire", "link", "seal"},
    "multipath": {"base", "wire", "link"},
    "reliability": {"base", "wire", "link", "carrier", "multipath"},
    "group": {"base", "wire", "link", "carrier", "multipath"},
    "protocol": {"base", "wire", "carrier"},
    "transport": {"base", "wire", "carrier", "os", "protocol", "reliability/flow_stats.h", "reliability/ack_delay.h"},
    "self": {"base", "wire", "carrier", "multipath/address_pairing.h", "protocol", "transport"},
    "shm": {"base", "wire", "os", "carrier", "seal", "protocol", "transport"},
    "verbs": {"base", "wire", "link", "carrier", "protocol", "transport"},
    "network": {"base", "wire", "link", "carrier", "os", "multipath", "reliability", "protocol", "transport"},
    "collective": {"base", "wire", "protocol"},
    "connection": {"base", "wire"},
    "engine": {"base", "wire", "link", "carrier", "os", "multipath", "reliability", "group", "shm", "network", "self", "protocol",
               "transport", "collective", "connection"},
    "api": {"base", "carrier/registered_memory.h", "protocol", "collective", "connection", "transport", "network/endpoint_roster.h", "shm/fast_lane.h", "engine"},
    "provider": {"base", "crypto", "seal", "relay", "wire", "link", "carrier", "os", "multipath", "reliability", "shm", "verbs", "protocol",
                 "transport", "engine", "api"},
}
LIBFABRIC_COMPONENTS = {"api", "provider"}

_INCLUDE = re.compile(r'^\s*#\s*include\s*([<"])([^>"]+)[>"]', re.MULTILINE)


def includes(file):
    """(line, quoted with "" rather than <>, name) for every include directive outside comments."""
    for match in _INCLUDE.finditer(file.code):
        line = file.code.count("\n", 0, match.start(1)) + 1
        yield line, match.group(1) == '"', match.group(2)

_ROW = re.compile(r"^\| `src/(\w+)/`", re.MULTILINE)


def check(tree):
    readme = tree.find("prov/cluster/README.md")
    rows = set(_ROW.findall(readme.text)) if readme else set()
    components = {file.component() for file in tree.cpp("prov/cluster/src/")}
    for component in sorted(components - rows if rows else ()):
        yield Violation(readme.path, 1, "layering", f"component '{component}' has no row in the table",
                        "say there what it knows, where to begin, and what it includes")
    for file in tree.cpp("prov/cluster/src/"):
        component = file.component()
        if component not in ALLOWED:
            yield Violation(file.path, 1, "layering", f"component '{component}' is not in the table",
                            "put the file into a component, or add the component to layering.py and to the README")
            continue
        for line, quoted, name in includes(file):
            yield from _check_include(file, component, line, quoted, name)


def _check_include(file, component, line, quoted, name):
    if name.startswith("rdma/"):
        if component not in LIBFABRIC_COMPONENTS:
            yield Violation(file.path, line, "layering", f"{component}/ includes <{name}>",
                            "libfabric's types end in api/ and provider/: pass values of ours instead")
        return
    if not quoted:
        return
    target = name.split("/")[0]
    if "/" not in name:
        yield Violation(file.path, line, "layering", f'"{name}" names no component',
                        f'include it from the source root: "{component}/{name}"')
    elif target != component and target not in ALLOWED[component] and name not in ALLOWED[component]:
        allowed = ", ".join(sorted(ALLOWED[component])) or "nothing else"
        yield Violation(file.path, line, "layering", f'{component}/ includes "{name}"',
                        f"{component}/ may include: {allowed}; return a value upwards instead of calling up")
