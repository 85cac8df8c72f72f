"""Tables for a terminal."""
import time

from . import matrix

_COLOURS = {"up": 32, "good": 32, "returned": 36, "suspect": 33, "lossy": 33, "isolated": 35, "down": 31}
_CELL = {matrix.DOWN: "down", matrix.NONE: "-"}


class Text:
    def __init__(self, coloured):
        self._coloured = coloured

    def _colour(self, kind, text):
        return f"\x1b[{_COLOURS[kind]}m{text}\x1b[0m" if self._coloured and kind in _COLOURS else text

    def _table(self, heads, rows):
        """Rows of (kind of colour or None, text) or plain text, in columns."""
        cells = [[cell if isinstance(cell, tuple) else (None, str(cell)) for cell in row] for row in rows]
        widths = [max([len(head)] + [len(row[column][1]) for row in cells]) for column, head in enumerate(heads)]
        lines = ["  ".join(head.ljust(width) for head, width in zip(heads, widths)).rstrip()]
        for row in cells:
            lines.append("  ".join(self._colour(kind, text.ljust(width)) for (kind, text), width in zip(row, widths)).rstrip())
        return "\n".join(lines)

    def nodes(self, status):
        rows = []
        for node in status["nodes"]:
            state = node["state"] if not node["order"] or node["order"] == node["state"] else f"{node['state']}, {node['order']}"
            rows.append([node["name"], (node["state"], state), matrix.ago(time.time() - node["since"]),
                         "-" if node["cpu"] is None else f"{node['cpu']:.0f} %",
                         "-" if node["memory"] is None else f"{node['memory']:.0f} %",
                         "-" if node["endpoints"] is None else node["endpoints"],
                         *(matrix.rate(sum(pair[way] for pair in node["rates"].values()) if node.get("rates") else None) for way in (0, 1)),
                         " ".join(rail["address"] for rail in node["rails"]) or "-", node["reason"] or node["order_reason"]])
        return self._table(("NODE", "STATE", "SINCE", "CPU", "MEMORY", "ENDPOINTS", "IN", "OUT", "RAILS", "REASON"), rows)

    def links(self, status):
        names = [node["name"] for node in status["nodes"]]
        parts = []
        for rail, links in matrix.of_links(status["links"]).items():
            rows = []
            for source in names:
                row = [source]
                for peer in names:
                    link = links.get((source, peer))
                    kind = matrix.quality(link)
                    text = _CELL.get(kind) or matrix.duration(link["rtt_us"] * 1e-6)
                    if kind in (matrix.GOOD, matrix.LOSSY) and link.get("rate_bits_per_second"):
                        text += f" {link['rate_bits_per_second'] / 1e9:.1f}G"
                    if kind == matrix.LOSSY:
                        text += f" {link['loss'] * 100:.0f}%" if link["loss"] > matrix.LOSS_BAD else f" mtu {link['path_mtu']}"
                    row.append((kind, text) if source != peer else ".")
                rows.append(row)
            parts.append(self._table((f"RAIL {rail}", *names), rows))
        return "\n\n".join(parts)

    def endpoints(self, status):
        """A row for each endpoint: its peers by path and node, rates, retransmitted frames, waiting operations."""
        rows = []
        for row in status["endpoints"]:
            rates, waits = row.get("rates", {}), waiting(row)
            rows.append([row["node"], row["job"] or "-", f"{row['pid']} {row['command'][:20]}", row["endpoint"]["endpoint"],
                         paths(row.get("peers", [])), matrix.rate(rates.get("bytes_sent_per_second")),
                         matrix.rate(rates.get("bytes_received_per_second")),
                         sum(peer.get("retransmitted_frames", 0) for peer in row.get("peers", [])),
                         ("down", waits[0]) if waits else "-"])
            rows += [[""] * 8 + [("down", text)] for text in waits[1:]]
        heads = ("NODE", "JOB", "PROCESS", "ENDPOINT", "PEERS", "SENDS", "RECEIVES", "SENT AGAIN", "STUCK")
        return self._table(heads, rows) if rows else ""

    def relays(self, status):
        rows = [[row["node"], *(row[name] for name in ("members", "frames", "bytes", "refused", "dropped")), " ".join(row["addresses"])]
                for row in status.get("relays", [])]
        return self._table(("NODE", "MEMBERS", "FRAMES", "BYTES", "REFUSED", "DROPPED", "ADDRESSES"), rows) if rows else ""

    def findings(self, status):
        return "\n".join(f"{self._colour('suspect', entry['node'])}: {entry['text']}" for entry in status["findings"])

    def history(self, status):
        return "\n".join(f"{time.strftime('%H:%M:%S', time.localtime(event['at']))} {event['node']}: {event['text']}"
                         for event in status["history"])

    def everything(self, status):
        parts = [self.nodes(status), self.links(status)]
        for head, text in (("RUNNING ENDPOINTS", self.endpoints(status)), ("RELAYS", self.relays(status)), ("FINDINGS", self.findings(status)),
                           ("HISTORY", self.history(status))):
            if text:
                parts.append(f"{head}\n{text}")
        return "\n\n".join(part for part in parts if part)



OPERATION_SECONDS = 10
PATHS_MAX, WAITS_MAX = 4, 3


def way_to(peer):
    """The path to a peer, and the relays through which its frames go now: `udp by relay 10.0.0.9:9227`."""
    relays = sorted({rail["relay"] for rail in peer.get("rails", []) if rail.get("relay")})
    return peer["path"] + (f" by relay {' '.join(relays)}" if relays else "")


def paths(peers):
    """The number of peers per path, and their nodes: `1 shm, 4 packet (node2 node3)`."""
    found = {}
    for peer in peers:
        found.setdefault(way_to(peer), []).append(peer.get("node", ""))
    parts = []
    for path, nodes in sorted(found.items()):
        names = sorted(set(nodes) - {""})
        shown = " ".join(names[:PATHS_MAX]) + (" ..." if len(names) > PATHS_MAX else "")
        parts.append(f"{len(nodes)} {path}" + (f" ({shown})" if shown and path != "shm" else ""))
    return ", ".join(parts) or "-"


def stuck_peers(row):
    """Peers that owe an answer and are silent (measure/accounting.py)."""
    return list(row.get("stuck", []))


def waiting(row):
    """Sentences: why an endpoint does not answer, which peers owe an answer, which operations wait for long."""
    found = [row["trouble"]] if row.get("trouble") else stuck_peers(row)
    operations = [entry for entry in row.get("operations", []) if entry.get("age_ns", 0) > OPERATION_SECONDS * 1e9]
    for entry in sorted(operations, key=lambda entry: -entry["age_ns"]):
        found.append(f"{entry['operation']} of {entry['bytes']} bytes, {entry['peer']}: waits for {matrix.ago(entry['age_ns'] / 1e9)}")
    return found[:WAITS_MAX] + ([f"and {len(found) - WAITS_MAX} more"] if len(found) > WAITS_MAX else [])
