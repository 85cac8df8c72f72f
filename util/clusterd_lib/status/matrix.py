"""Links as one matrix per rail, and one word for the quality of a link."""
LOSS_BAD = 0.01

GOOD, LOSSY, DOWN, NONE = "good", "lossy", "down", "none"


def quality(link):
    if link is None or link["state"] == "unknown":
        return NONE
    if link["state"] == "down":
        return DOWN
    return LOSSY if link["loss"] > LOSS_BAD or 0 < link["path_mtu"] < link["mtu"] else GOOD


def of_links(links):
    """rail -> {(from, peer): link}"""
    rails = {}
    for link in links:
        rails.setdefault(link["rail"], {})[link["from"], link["peer"]] = link
    return dict(sorted(rails.items()))


def of_node(links, name, rail):
    """The quality of a node's cable to a rail: bad only if it is bad to most peers. The cut cable of one node spoils a link of each
    other node, whose own cable is well."""
    peers = {}
    for link in links:
        if link["rail"] == rail and name in (link["from"], link["peer"]) and quality(link) != NONE:
            peers.setdefault(link["peer"] if link["from"] == name else link["from"], set()).add(quality(link))
    bad = [kinds for kinds in peers.values() if kinds != {GOOD}]
    if not peers:
        return NONE
    if 2 * len(bad) <= len(peers):
        return GOOD
    return DOWN if 2 * bad.count({DOWN}) > len(peers) else LOSSY


def duration(seconds):
    """A short time: 350us, 1.2ms."""
    if not seconds:
        return "-"
    return f"{seconds * 1e6:.0f}us" if seconds < 1e-3 else f"{seconds * 1e3:.1f}ms"


def rate(bytes_per_second):
    """1.2 MB/s; - if the rate is unknown."""
    if bytes_per_second is None:
        return "-"
    for unit, size in (("GB/s", 1e9), ("MB/s", 1e6), ("kB/s", 1e3)):
        if bytes_per_second >= size:
            return f"{bytes_per_second / size:.1f} {unit}"
    return f"{bytes_per_second:.0f} B/s"


def ago(seconds):
    for unit, length in (("d", 86400), ("h", 3600), ("min", 60)):
        if seconds >= length:
            return f"{seconds / length:.0f} {unit}"
    return f"{max(0, seconds):.0f} s"
