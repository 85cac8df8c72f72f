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
                         " ".join(rail["address"] for rail in node["rails"]) or "-", node["reason"] or node["order_reason"]])
        return self._table(("NODE", "STATE", "SINCE", "CPU", "MEMORY", "ENDPOINTS", "RAILS", "REASON"), rows)

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
                    if kind == matrix.LOSSY:
                        text += f" {link['loss'] * 100:.0f}%" if link["loss"] > matrix.LOSS_BAD else f" mtu {link['path_mtu']}"
                    row.append((kind, text) if source != peer else ".")
                rows.append(row)
            parts.append(self._table((f"RAIL {rail}", *names), rows))
        return "\n\n".join(parts)

    def endpoints(self, status):
        """A row for each endpoint: how many peers by which path, frames sent again, operations that wait."""
        rows = []
        for endpoint in status["endpoints"]:
            peers = endpoint.get("peers", [])
            paths = {}
            for peer in peers:
                paths[peer.get("path", "?")] = paths.get(peer.get("path", "?"), 0) + 1
            stuck = stuck_peers(endpoint)
            rows.append([endpoint["node"], endpoint["pid"], endpoint.get("command", "")[:24], endpoint.get("address", "-"),
                         " ".join(f"{count} {path}" for path, count in sorted(paths.items())) or "-",
                         sum(peer.get("retransmitted_frames", 0) for peer in peers),
                         ("down", ", ".join(stuck)) if stuck else endpoint.get("trouble", "-")])
        return self._table(("NODE", "PROCESS", "COMMAND", "ENDPOINT", "PEERS", "SENT AGAIN", "STUCK"), rows) if rows else ""

    def findings(self, status):
        return "\n".join(f"{self._colour('suspect', entry['node'])}: {entry['text']}" for entry in status["findings"])

    def history(self, status):
        return "\n".join(f"{time.strftime('%H:%M:%S', time.localtime(event['at']))} {event['node']}: {event['text']}"
                         for event in status["history"])

    def everything(self, status):
        parts = [self.nodes(status), self.links(status)]
        for head, text in (("RUNNING ENDPOINTS", self.endpoints(status)), ("FINDINGS", self.findings(status)),
                           ("HISTORY", self.history(status))):
            if text:
                parts.append(f"{head}\n{text}")
        return "\n\n".join(part for part in parts if part)


STUCK_SECONDS = 1.0


def stuck_peers(endpoint):
    """Peers that owe an answer and have been silent for longer than any retransmission should take."""
    return [str(peer.get("address", "?")) for peer in endpoint.get("peers", [])
            if peer.get("frames_in_flight", 0) > 0 and peer.get("silent_seconds", 0) > STUCK_SECONDS]
