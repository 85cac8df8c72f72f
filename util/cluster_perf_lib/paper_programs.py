"""The tables of the page about the papers that whole programs give: stages of a frame, PVM, matrix product, jobs, Gauss elimination.

Each function returns lines of Markdown that end with one sentence, and raises NotMeasured where there are no figures."""
from .paper_figures import OURS, NotMeasured, more_or_less, span_of, summary_line, table
from .rows import size_text, value_text

_LINKS = {"packet": "raw frames", "udp": "UDP"}
_GAUSS = {"asleep": "UDP, asleep", "polling": "raw frames, polling", "mpi_asleep": "MPI, UDP, asleep", "mpi_udp": "MPI, UDP, polling",
          "mpi": "MPI, raw frames, polling"}
_MATRIX = {"mpi": "MPI, raw frames", "mpi_tcp": "MPI, tcp", "over": "PVM, cluster-ip", "plain": "PVM, tcp"}
_ABOUT = 0.1
_PAIRS = {"cluster": "raw frames", "tcp": "tcp"}
_EAGER_DEFAULT = "64k"
_MATRIX_MPI = ("mpi", "mpi_tcp")  # the others are networks of PVM


def _us(value):
    return value_text(value, "us")


def _seconds(value):
    return f"{value:.3f} s"


def _percent(part, whole):
    return f"{100 * part / whole:.0f} %" if whole else "-"


def stages(figures):
    rows = figures.rows("stages")

    def parts(row):
        return [row["send"] - row["send_kernel"], row["send_kernel"], row["arrive_kernel"], row["arrive"] - row["arrive_kernel"]]

    small = next(row for row in rows if row["link"] == "packet")
    share = _percent(small["send_kernel"] + small["arrive_kernel"], small["send"] + small["arrive"])
    return [*table(["where the time of a message goes", "sender, provider", "sender, kernel and wire", "receiver, kernel", "receiver, provider"],
                   [[f"{_LINKS[row['link']]}, {size_text(row['bytes'])}", *(_us(max(part, 0)) for part in parts(row))] for row in rows]),
            f"Kernels take {share} of the time of a small message over raw frames. Both ends ran one after the other on one processor. The kernel of the "
            "sender also passes the frame through the virtual switch into the memory of the receiver, which stands for wire and interrupt."
            f"{_beside_one_way(figures, small)}"]


def _beside_one_way(figures, row):
    """Whether the stages of a message add up to the time of a ping-pong, and if not, why."""
    whole, stages_of = figures.get(OURS, "latency", row["bytes"]), row["send"] + row["arrive"]
    if whole is None:
        return ""
    said = f" The stages of {size_text(row['bytes'])} add up to {_us(stages_of)}, and one way takes {_us(whole['median'])} above"
    if abs(stages_of / whole["median"] - 1) <= _ABOUT:
        return f"{said}, about the same."
    why = "one cache has all that both ends use" if stages_of < whole["median"] else "the two ends never work at the same time"
    return f"{said}: there each end has a processor of its own. Here {why}."


def pvm_line(figures):
    """PVM over cluster-ip, in a table of summaries."""
    times = figures.pvm("over")
    return summary_line("PVM over cluster-ip", _us(times[8]), [(size, size / us * 1e6) for size, us in sorted(times.items()) if size >= 64])


def matrix(figures):
    rows, pvm_rows = figures.rows("matrix"), [row for row in figures.rows("pvm") if row["what"] == "matrix"] if figures.has("pvm") else []
    found = {(row["way"], row["nodes"]): row["seconds"] for row in rows}
    found.update({(row["network"], row["nodes"]): row["value"] for row in pvm_rows})
    talking = {(row["way"], row["nodes"]): row["talking"] for row in rows}
    many = sorted({row["nodes"] for row in rows})

    def cell_of(way, nodes):
        if (way, nodes) not in found:
            return "-"
        notes = [f"{_percent(talking[way, nodes], found[way, nodes])}"] if way in _MATRIX_MPI else []
        notes += [f"x {found[way, 1] / found[way, nodes]:.2f}"] if found.get((way, 1)) and found[way, nodes] else []
        return _seconds(found[way, nodes]) + (f" ({'; '.join(notes)})" if notes else "")

    def head_of(way):
        notes = [*(["communication"] if way in _MATRIX_MPI else []), *(["speed-up"] if gains else [])]
        return _MATRIX[way] + (f" ({'; '.join(notes)})" if notes else "")

    gains = [(found["mpi", 1] / found["mpi", nodes], nodes) for nodes in many if nodes > 1 and found["mpi", nodes]] if ("mpi", 1) in found else []
    shares = [talking["mpi_tcp", nodes] / talking["mpi", nodes] for nodes in many if nodes > 1 and talking["mpi", nodes]]
    beside = f"Over TCP, communication takes {span_of(shares)} over raw frames. " if shares else ""
    best = (f"The best speed-up over raw frames is {max(gains)[0]:.2f}, on {max(gains)[1]} nodes. " if gains else
            "This run has no row for one node, so it shows no speed-up. ")
    slept = rows[0].get("nanoseconds", 0)
    shape = (f" For each element, a process sleeps {_us(slept / 1000)} in place of computing. So the speed-up is what the network leaves of it on nodes with "
             "processors of their own." if slept else "")
    return [*table([f"matrix product of order {rows[0]['order']}, nodes", *map(head_of, _MATRIX)],
                   [[str(nodes), *(cell_of(way, nodes) for way in _MATRIX)] for nodes in many]),
            f"{beside}{best}The nodes are virtual and {figures.shared_by(max(many))}.{shape}"]


def pairs(figures):
    rows = figures.rows("pairs")
    found = {(row["way"], row["pairs"]): row for row in rows}
    ways, many = [way for way in _PAIRS if any(row["way"] == way for row in rows)], sorted({row["pairs"] for row in rows})
    names, units = ("rate", "bandwidth"), {"rate": "1/s", "bandwidth": "B/s"}
    lines = [[str(each), *(value_text(found[way, each][name], units[name]) for way in ways for name in names)] for each in many]
    one, most = found[ways[0], many[0]], found[ways[0], many[-1]]
    grown = (f"Over raw frames, {many[-1]} pairs together send {most['rate'] / one['rate']:.2f} times the messages of one pair, and "
             f"{most['bandwidth'] / one['bandwidth']:.2f} times its bytes. " if many[0] == 1 < many[-1] else "")
    return [*table(["several processes on one card, pairs", *(f"{_PAIRS[way]}: {what}" for way in ways for what in ("8 B messages", "1 MB"))], lines),
            f"{grown}All processes of a node share one card and one processor, and yield the processor while they wait."]


def jobs(figures):
    rows = figures.rows("jobs")
    ended = next(row for row in rows if row["way"] == "cluster" and row["ended"])
    not_ended = [row["form"] for row in rows if row["way"] == "cluster" and not row["ended"]]
    nodes, ranks = (int(number) for number in ended["form"].split("x"))
    shown = [row for row in rows if row["form"] == ended["form"]]

    def cells(row):
        if not row["ended"]:
            return ["did not end", "-", "-", "-"]
        return [f"{row['start_s']:.0f} s", f"{row['barrier_us'] / 1000:.1f} ms", f"{row['allreduce_us'] / 1000:.1f} ms", f"{row['kilobytes'] / 1024:.0f} MB"]

    plain = next((row for row in shown if row["way"] != "cluster" and row["ended"]), None)
    beside = f"A barrier over the provider takes {more_or_less(ended['barrier_us'] / plain['barrier_us'])} over tcp. " if plain and plain["barrier_us"] else ""
    lines = [["MPI, cluster" if row["way"] == "cluster" else "MPI, tcp", *cells(row)] for row in shown]
    return [*table([f"{nodes} nodes with {ranks} process{'es' if ranks > 1 else ''} each", "start-up", "barrier", "allreduce 8 B", "memory of a process"], lines),
            f"{beside}DAWNING-3000 has 70 nodes with 4 processes each; the largest job that ended here has {nodes} with {ranks}"
            f"{' (' + ', '.join(not_ended) + ' did not end)' if not_ended else ''}, and its {nodes * ranks} processes {figures.shared_by(nodes * ranks)}"
            f"{', so its times say little' if nodes * ranks > figures.processors else ''}."]


def gauss(figures):
    rows = figures.rows("gauss")
    ways = [way for way in _GAUSS if any(row["way"] == way for row in rows)]
    lines = []
    for order in sorted({row["order"] for row in rows}):
        by_way = {row["way"]: row for row in rows if row["order"] == order}
        lines.append([f"{order:,}", *(f"{_seconds(by_way[way]['seconds'])} ({_seconds(by_way[way]['seconds_talking'])})" for way in ways),
                      f"{by_way[ways[0]]['digits']:.1f} ({by_way[ways[0]]['least_digits']:.1f})"])

    def beside(field, way, other):
        """The ratio over all orders; 0, if one of the two is missing."""
        one, two = (sum(row[field] for row in rows if row["way"] == name) for name in (way, other))
        return one / two if two else 0

    slept, links = beside("seconds_talking", "asleep", "polling"), beside("seconds_talking", "mpi_udp", "mpi")
    polls = abs(links - 1) < abs(slept - 1) / 2
    of_mpi = (f"With MPI, polling over UDP takes {more_or_less(links)} over raw frames; so "
              f"{'polling makes the difference' if polls else 'the difference is not due to polling alone'}. " if links else "")
    worst = max(row["overclaimed"] for row in rows)
    return [*table(["Gauss elimination, order", *(f"{_GAUSS[way]} (communication)" for way in ways), "exact digits: mean (least)"], lines),
            f"Over all orders, communication with calls and interrupts takes {more_or_less(slept)} at user level with polling. {of_mpi}"
            f"With calls and interrupts, the whole elimination takes {more_or_less(beside('seconds', 'asleep', 'polling'))} with polling. "
            "Two nodes exchange columns, and communication includes the wait for the other node. Every number is carried with two roundings, as CADNA does "
            "it: at random, one of two samples is rounded up and the other down, and the digits on which they agree count as exact. At most "
            f"{100 * worst:.1f} % of the unknowns have fewer exact digits than that."]


def exchanges(figures):
    def time_of_one(row):
        return row["seconds_talking"] / row["exchanges"] * 1e6

    rows = figures.rows("gauss")
    ways = [way for way in _GAUSS if any(row["way"] == way for row in rows)]
    lines = []
    for order in sorted({row["order"] for row in rows}):
        by_way = {row["way"]: row for row in rows if row["order"] == order}
        one = by_way["polling"]
        lines.append([f"{order:,}", f"{one['exchanges']:,}", f"{one['bytes'] / 1e6:.1f} MB", f"{one['bytes'] / one['exchanges'] / 1024:.1f} KB",
                      f"{one['largest'] / 1024:.1f} KB", *(_us(time_of_one(by_way[way])) for way in ways)])
    return [*table(["exchanges, order", "messages", "in all", "mean size", "largest", *(f"time of one: {_GAUSS[way]}" for way in ways)], lines),
            "The number of messages grows with the order, and the bytes with its square. The time of an exchange includes what the other node computes first."]


def _beside_default(rows, best):
    """How much the best size of control messages gains, and whether that is more than the runs of one size differ."""
    usual = next((row for row in rows if row["at_once"] == _EAGER_DEFAULT), None)
    if usual is None or usual is best:
        return ""
    gained = f" It takes {more_or_less(best['seconds'] / usual['seconds'])} with the default."
    spread = max(row.get("spread", 0) for row in rows)
    if not spread:
        return gained
    within = "so this says little" if usual["seconds"] - best["seconds"] < spread * usual["seconds"] else "so this is no chance"
    return f"{gained} The runs of one size differ by up to {_percent(spread, 1)}, {within}."


def control(figures):
    rows = figures.rows("control")
    best = min(rows, key=lambda row: row["seconds"])
    lines = [[f"{row['at_once']}", _seconds(row["seconds"]), _seconds(row["seconds_talking"])] for row in rows]
    return [*table(["data in a control message up to", f"order {rows[0]['order']:,}", "communication"], lines),
            f"The elimination is fastest with {best['at_once']} (the default is {_EAGER_DEFAULT}).{_beside_default(rows, best)} MPI-MPC sends short messages "
            "inside its control messages, whose best size the paper looks for. Here that is `FI_CLUSTER_NET_EAGER`: larger messages are announced, and the "
            "receiver pulls them."]


def mailbox(figures):
    rows = figures.rows("mailbox")
    more = max(row["mailbox"] / row["plain"] for row in rows) - 1
    return [*table(["mailboxes, raw frames", "mailbox", "the same messages without"],
                   [[size_text(row["bytes"]), _us(row["mailbox"]), _us(row["plain"])] for row in rows]),
            f"With names, types and threads, a message takes at most {more_or_less(1 + more)} without. DECK's mailboxes are an example here "
            "(`examples/mailbox`)."]


def joined(figures):
    rows = {row["way"]: row for row in figures.rows("joined")}
    heads = {"direct": "one cluster: directly", "relay": "two clusters: through a relay"}
    time, bandwidth = (rows["relay"][measure] / rows["direct"][measure] for measure in ("latency", "bandwidth_large"))
    waits = " Both programs poll and leave no processor to the relay, which waits for one." if 0 < figures.processors < 3 else ""
    return [*table(["UDP, with a key", "64 B", "64 KB", "1 MB"],
                   [[head, _us(rows[way]["latency"]), *(value_text(rows[way][measure], "B/s") for measure in ("bandwidth", "bandwidth_large"))]
                    for way, head in heads.items()]),
            "DECK's MultiCluster joins two clusters by a node that belongs to both. Here, that node runs a relay, which forwards sealed frames. "
            f"Through it, 64 B takes {time:.1f} times as long, and a stream of 1 MB has {100 * bandwidth:.0f} % of the bandwidth.{waits}"]


TABLES = {"joined": joined, "mailbox": mailbox, "stages": stages, "matrix": matrix, "pairs": pairs, "jobs": jobs, "gauss": gauss, "exchanges": exchanges, "control": control}


def or_reason(make, figures, what):
    """The lines of a table, or one sentence that says why there is none."""
    try:
        return make(figures)
    except NotMeasured as reason:
        return ["", f"{what}: not measured in this run ({reason})."]
