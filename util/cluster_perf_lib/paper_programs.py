"""The tables of the page about the papers that whole programs give: stages of a frame, PVM, matrix product, jobs, Gauss elimination.

Each function returns lines of Markdown that end with one sentence, and raises NotMeasured where there are no figures."""
from .paper_figures import NotMeasured, summary_line, table
from .rows import size_text, value_text

_LINKS = {"packet": "raw frames", "udp": "UDP"}
_GAUSS = {"asleep": "UDP, asleep", "polling": "raw frames, polling", "mpi_udp": "MPI, UDP", "mpi": "MPI, raw frames"}


def _us(value):
    return value_text(value, "us")


def _seconds(value):
    return f"{value:.3f} s"


def _percent(part, whole):
    return f"{100 * part / whole:.0f} %"


def stages(figures):
    rows = figures.rows("stages")

    def parts(row):
        return [row["send"] - row["send_kernel"], row["send_kernel"], row["arrive_kernel"], row["arrive"] - row["arrive_kernel"]]

    small = next(row for row in rows if row["link"] == "packet")
    share = _percent(small["send_kernel"] + small["arrive_kernel"], small["send"] + small["arrive"])
    return [*table(["where the time of a message goes", "sender, provider", "sender, kernel and wire", "receiver, kernel", "receiver, provider"],
                   [[f"{_LINKS[row['link']]}, {size_text(row['bytes'])}", *(f"{max(part, 0):.1f} us" for part in parts(row))] for row in rows]),
            "Both ends ran one after the other on one processor. The kernel of the sender also passes the frame through the virtual switch into the "
            f"memory of the receiver, which stands for wire and interrupt: kernels take {share} of a small message over raw frames."]


def pvm_line(figures):
    """PVM over cluster-ip, in a table of summaries."""
    times = figures.pvm("over")
    return summary_line("PVM over cluster-ip", _us(times[8]), [(size, size / us * 1e6) for size, us in sorted(times.items()) if size >= 64])


def matrix(figures):
    rows = figures.rows("matrix")
    order, lines, shares = rows[0]["order"], [], []
    for nodes in sorted({row["nodes"] for row in rows}):
        by_way = {row["way"]: row for row in rows if row["nodes"] == nodes}
        ours, tcp = by_way["mpi"], by_way["mpi_tcp"]
        products = {row["network"]: row["value"] for row in figures.rows("pvm") if row["what"] == "matrix" and row["nodes"] == nodes}
        shares.append(tcp["talking"] / ours["talking"])
        lines.append([str(nodes), *(f"{_seconds(row['seconds'])} ({_percent(row['talking'], row['seconds'])})" for row in (ours, tcp)),
                      *(_seconds(products[network]) if network in products else "-" for network in ("over", "plain"))])
    return [*table([f"matrix product of order {order}, nodes", "MPI, raw frames (communication)", "MPI, tcp (communication)", "PVM, cluster-ip", "PVM, tcp"],
                   lines),
            "The nodes are virtual and share two processors, so more nodes bring no speed-up here, and only the relation of the communication counts: "
            f"over TCP it takes {min(shares):.2f} to {max(shares):.2f} times as long as over raw frames."]


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

    lines = [["MPI, cluster" if row["way"] == "cluster" else "MPI, tcp", *cells(row)] for row in shown]
    return [*table([f"{nodes} nodes with {ranks} processes each", "start-up", "barrier", "allreduce 8 B", "memory of a process"], lines),
            f"DAWNING-3000 has 70 nodes with 4 processes each; the largest job that ended here has {nodes} with {ranks}"
            f"{' (' + ', '.join(not_ended) + ' did not end)' if not_ended else ''}. All of its {nodes * ranks} processes share two processors, so only "
            "that it ends, and the memory, mean something."]


def gauss(figures):
    rows = figures.rows("gauss")
    ways = [way for way in _GAUSS if any(row["way"] == way for row in rows)]
    lines = []
    for order in sorted({row["order"] for row in rows}):
        by_way = {row["way"]: row for row in rows if row["order"] == order}
        lines.append([f"{order:,}", *(f"{_seconds(by_way[way]['seconds'])} ({_seconds(by_way[way]['seconds_talking'])})" for way in ways),
                      f"{by_way[ways[0]]['digits']:.1f}"])
    asleep, polling = (sum(row["seconds_talking"] for row in rows if row["way"] == way) for way in ("asleep", "polling"))
    return [*table(["Gauss elimination, order", *(f"{_GAUSS[way]} (communication)" for way in ways), "exact digits"], lines),
            "Every number is carried with two roundings, as CADNA does it: each operation is rounded up for one of two samples and down for the other, at "
            "random, and the digits on which they agree are exact. Two nodes exchange columns; communication includes the wait for the other node. "
            f"Over all orders it takes {asleep / polling:.2f} times as long with calls and interrupts as at user level with polling."]


def exchanges(figures):
    def time_of_one(row):
        return row["seconds_talking"] / row["exchanges"] * 1e6

    rows = figures.rows("gauss")
    lines = []
    for order in sorted({row["order"] for row in rows}):
        by_way = {row["way"]: row for row in rows if row["order"] == order}
        one = by_way["polling"]
        lines.append([f"{order:,}", f"{one['exchanges']:,}", f"{one['bytes'] / 1e6:.1f} MB", f"{one['bytes'] / one['exchanges'] / 1024:.1f} KB",
                      f"{one['largest'] / 1024:.1f} KB", *(_us(time_of_one(by_way[way])) for way in ("asleep", "polling"))])
    return [*table(["exchanges, order", "messages", "in all", "mean size", "largest", "time of one, asleep", "time of one, polling"], lines),
            "The number of messages grows with the order, the bytes with its square; the time of an exchange includes what the other node computes first."]


def control(figures):
    rows = figures.rows("control")
    best = min(rows, key=lambda row: row["seconds"])
    lines = [[f"{row['at_once']}", _seconds(row["seconds"]), _seconds(row["seconds_talking"])] for row in rows]
    return [*table(["data in a control message up to", f"order {rows[0]['order']:,}", "communication"], lines),
            "MPI-MPC sends short messages inside its control messages, whose best size the paper looks for. Here that is `FI_CLUSTER_NET_EAGER`: larger "
            f"messages are announced, and the receiver pulls them. The elimination is fastest with {best['at_once']} (the default is 64k)."]


def mailbox(figures):
    rows = figures.rows("mailbox")
    more = max(row["mailbox"] / row["plain"] for row in rows) - 1
    return [*table(["mailboxes, raw frames", "mailbox", "the same messages without"],
                   [[size_text(row["bytes"]), _us(row["mailbox"]), _us(row["plain"])] for row in rows]),
            f"DECK's mailboxes are an example here (`examples/mailbox`): names, types and threads cost at most {100 * max(more, 0):.0f} % of a message."]


TABLES = {"mailbox": mailbox, "stages": stages, "matrix": matrix, "jobs": jobs, "gauss": gauss, "exchanges": exchanges, "control": control}


def or_reason(make, figures, what):
    """The lines of a table, or one sentence that says why there is none."""
    try:
        return make(figures)
    except NotMeasured as reason:
        return ["", f"{what}: not measured in this run ({reason})."]
