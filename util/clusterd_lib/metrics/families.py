"""Families of metrics, built at each scrape from a snapshot of this agent.

Metrics that the agent measures begin with clusterd_, counters of the provider's endpoints with cluster_. Base units:
seconds, bytes, ratios from 0 to 1. Every node reports about itself, so n nodes give n times the series of one. Series
that grow with the number of nodes are bounded: at most NODES_MAX nodes and LINKS_MAX links, the worst first. Jobs and
paths are bounded where they are counted (measure/accounting.py). clusterd_series_left_out counts what was left out.
"""
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, InfoMetricFamily

from ..protocol.membership import STATES

NODES_MAX = 64
LINKS_MAX = 256
_REFUSED = "refused_"


def counter_name(name):
    """The name of a provider's counter after the conventions of Prometheus: the unit comes last."""
    for unit in ("bytes", "frames", "datagrams", "sessions"):
        if name.startswith(unit + "_"):
            name = f"{name[len(unit) + 1:]}_{unit}"
    return f"cluster_{name}"


def _gauge(name, text, labels, rows):
    family = GaugeMetricFamily(name, text, labels=labels)
    for values, number in rows:
        family.add_metric([str(value) for value in values], number)
    return family


def _counter(name, text, labels, rows):
    family = CounterMetricFamily(name, text, labels=labels)
    for values, number in rows:
        family.add_metric([str(value) for value in values], number)
    return family


def _agent(picture):
    yield InfoMetricFamily("clusterd_node", "The node that this agent is of.",
                           {"node": picture["node"], "cluster": picture["cluster"], "protocol": str(picture["protocol"])})
    yield _counter("clusterd_sent_bytes", "Bytes sent to other agents in datagrams, IP and UDP headers included.", [],
                   [([], picture["sent_bytes"])])
    yield _counter("clusterd_sent_datagrams", "Datagrams sent to other agents.", [], [([], picture["sent_messages"])])
    yield _counter("clusterd_refused_datagrams", "Datagrams refused at the gate.", ["reason"],
                   [([reason], count) for reason, count in sorted(picture["refused"].items())])
    yield _counter("clusterd_events", "Events of the history, by kind.", ["kind"],
                   [([kind], count) for kind, count in sorted(picture["events"].items())])
    kinds = [entry["kind"] for entry in picture["findings"]]
    yield _gauge("clusterd_findings", "What is wrong with wiring and settings now, as seen from here.", ["kind"],
                 [([kind], kinds.count(kind)) for kind in sorted(set(kinds))])
    load = picture["load"]
    yield _gauge("clusterd_processor_used_ratio", "Share of the processors of this node in use.", [], [([], load["cpu"] / 100)])
    yield _gauge("clusterd_memory_used_ratio", "Share of the memory of this node in use.", [], [([], load["memory"] / 100)])


def _nodes(picture):
    nodes = picture["nodes"]
    yield _gauge("clusterd_nodes", "Nodes in each state, as seen from here.", ["state"],
                 [([state], sum(found == state for found, _ in nodes.values())) for state in STATES])
    yield _gauge("clusterd_nodes_drained", "Nodes that an operator has drained, so that they get no jobs.", [],
                 [([], sum(order == "drained" for _, order in nodes.values()))])
    shown = sorted(nodes, key=lambda name: (nodes[name][0] == "up", name))[:NODES_MAX]
    yield _gauge("clusterd_node_state", f"1 for the state of a node as seen from here, of {NODES_MAX} nodes at most.",
                 ["node", "state"], [([name, state], nodes[name][0] == state) for name in shown for state in STATES])
    yield _gauge("clusterd_series_left_out", "Nodes and links that are not shown because there are too many.", ["of"],
                 [(["nodes"], len(nodes) - len(shown)), (["links"], max(0, len(picture["links"]) - LINKS_MAX))])


def _rails(picture):
    rails = [([number, rail["device"]], rail) for number, rail in enumerate(picture["rails"])]
    labels = ["rail", "device"]
    yield _gauge("clusterd_rail_up", "1 if the interface has a carrier.", labels, [(to, rail["up"]) for to, rail in rails])
    yield _gauge("clusterd_rail_mtu_bytes", "MTU of the interface.", labels, [(to, rail["mtu"]) for to, rail in rails])
    yield _gauge("clusterd_rail_speed_bytes", "Bytes per second that the interface can carry, if known.", labels,
                 [(to, rail["speed"] * 1e6 / 8) for to, rail in rails if rail["speed"]])
    counted = [(to, picture["interfaces"][rail["device"]]) for to, rail in rails if rail["device"] in picture["interfaces"]]
    for name, what, key in (("receive_bytes", "Bytes received", "bytes_recv"), ("transmit_bytes", "Bytes sent", "bytes_sent"),
                            ("receive_errors", "Receive errors", "errin"), ("transmit_errors", "Transmit errors", "errout"),
                            ("receive_dropped", "Frames dropped at receipt", "dropin"),
                            ("transmit_dropped", "Frames dropped at sending", "dropout")):
        yield _counter(f"clusterd_rail_{name}", f"{what} by the interface.", labels,
                       [(to, getattr(numbers, key)) for to, numbers in counted])


def _links(picture):
    worst_first = sorted(picture["links"], key=lambda link: (link["state"] == "up", -link["loss"], link["peer"], link["rail"]))
    links = [([link["peer"], link["rail"]], link) for link in worst_first[:LINKS_MAX] if link["state"] != "unknown"]
    labels = ["peer", "rail"]
    yield _gauge("clusterd_link_up", "1 if echoes of the peer come back over the rail.", labels,
                 [(to, link["state"] == "up") for to, link in links])
    yield _gauge("clusterd_link_loss_ratio", "Share of the latest 64 echoes that were lost.", labels,
                 [(to, link["loss"]) for to, link in links])
    yield _gauge("clusterd_link_round_trip_seconds", "Smoothed round trip of echoes.", labels,
                 [(to, link["rtt_us"] * 1e-6) for to, link in links if link["rtt_us"]])
    yield _gauge("clusterd_link_path_mtu_bytes", "Longest packet that arrives.", labels,
                 [(to, link["path_mtu"]) for to, link in links if link["path_mtu"]])


def _jobs(accounting):
    jobs = sorted((name or "none", totals) for name, totals in accounting.jobs.items())
    for name, text, key in (
            ("cluster_endpoints", "Endpoints of the provider that run here.", "endpoints"),
            ("cluster_unanswered_endpoints", "Endpoints that do not answer: their process is stopped.", "unanswered"),
            ("cluster_stuck_peers", "Peers that owe an answer and are silent for more than a second.", "stuck"),
            ("cluster_waiting_messages", "Messages that wait for a receive.", "unexpected")):
        yield _gauge(name, text, ["job_id"], [([job], totals.gauges[key]) for job, totals in jobs])
    names = list(dict.fromkeys(name for _, totals in jobs for name in totals.counted))
    for name in names:
        if not name.startswith(_REFUSED):
            yield _counter(counter_name(name), f"Counter {name} of the endpoints of a job on this node, see fi_cluster(7).",
                           ["job_id"], [([job], totals.counted[name]) for job, totals in jobs if name in totals.counted])
    yield _counter("cluster_refused_arrivals", "Arrivals that endpoints refused, see fi_cluster(7).", ["job_id", "reason"],
                   [([job, name[len(_REFUSED):]], totals.counted[name]) for job, totals in jobs for name in totals.counted
                    if name.startswith(_REFUSED)])


def _paths(accounting):
    paths = sorted(([job or "none", peer, path], totals) for (job, peer, path), totals in accounting.paths.items())
    labels = ["job_id", "peer", "path"]
    for name, text, key in (("cluster_path_peers", "Peers reached by this path.", "peers"),
                            ("cluster_path_queued_frames", "Frames that wait to be sent.", "queued"),
                            ("cluster_path_in_flight_frames", "Frames that are not acknowledged yet.", "in_flight")):
        yield _gauge(name, text, labels, [(to, totals.gauges[key]) for to, totals in paths])
    yield _gauge("cluster_path_round_trip_seconds", "Longest smoothed round trip of the peers of this path.", labels,
                 [(to, totals.gauges["round_trip_ns"] * 1e-9) for to, totals in paths if totals.gauges["round_trip_ns"]])
    for kind in ("sent", "lost", "retransmitted"):
        yield _counter(f"cluster_path_{kind}_frames", f"Frames {kind} on this path.", labels,
                       [(to, totals.counted[f"{kind}_frames"]) for to, totals in paths if totals.counted])


def families(picture):
    """All families; picture["accounting"] has what endpoints have sent."""
    for part in (_agent, _nodes, _rails, _links):
        yield from part(picture)
    yield from _jobs(picture["accounting"])
    yield from _paths(picture["accounting"])
