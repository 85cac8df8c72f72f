"""Draws the pictures of a report: python3 plots.py REPORT.json DIRECTORY. Needs matplotlib."""
import json
import os
import sys

import matplotlib

matplotlib.use("Agg")
matplotlib.rcParams["svg.hashsalt"] = "cluster-perf"  # the same figures give the same file
import matplotlib.pyplot as plot  # noqa: E402

_TITLES = {"inside": "inside a node", "between": "between two nodes"}
_COLOURS = {"cluster": "#c0392b", "cluster/packet": "#c0392b", "cluster/udp": "#e67e22", "cluster/safe": "#d98880",
            "shm": "#2471a3", "vader": "#2471a3", "tcp": "#117864", "rxd": "#7d6608", "ucx": "#6c3483", "psm3": "#566573",
            "bare": "#95a5a6"}
_MARKERS = "osD^vPX*"


def _is_ours(name):
    return name.partition("/")[0] == "cluster"


def _short(name):
    return name.removeprefix("mpi:")


def _curves(report, place, level, measure):
    """Transport -> {bytes: median}; ours first."""
    curves = {}
    for result in report["results"]:
        if (result["place"], result["level"], result["measure"], result["wait"]) == (place, level, measure, "spin"):
            curves.setdefault(_short(result["transport"]), {})[result["bytes"]] = result
    return dict(sorted(curves.items(), key=lambda entry: (not _is_ours(entry[0]), entry[0])))


def _size(value, _=None):
    for unit, shift in ((" MB", 20), (" KB", 10)):
        if value >= 1 << shift:
            return f"{value / (1 << shift):g}{unit}"
    return f"{value:g} B"


def _axes(title, ylabel, xlabel="message size"):
    figure, axes = plot.subplots(figsize=(6.4, 4.2), layout="constrained")
    axes.set_title(title, fontsize=11)
    axes.set_xscale("log", base=2)
    axes.set_xlabel(xlabel)
    axes.set_ylabel(ylabel)
    axes.grid(True, which="major", linewidth=0.5, alpha=0.5)
    return figure, axes


def _draw(axes, name, number, points, spread=None):
    xs = sorted(points)
    ours = _is_ours(name)
    style = {"color": _COLOURS.get(name.partition("@")[0], "#333333"), "linewidth": 2.2 if ours else 1.3,
             "marker": _MARKERS[number % len(_MARKERS)], "markersize": 5 if ours else 4, "label": name,
             "zorder": 3 if ours else 2}
    axes.plot(xs, [points[x] for x in xs], **style)
    if spread:
        axes.fill_between(xs, [spread[x][0] for x in xs], [spread[x][1] for x in xs], color=style["color"], alpha=0.15)


def _save(figure, directory, name, written):
    for ending in ("svg", "png"):
        path = os.path.join(directory, f"{name}.{ending}")
        figure.savefig(path, dpi=150, metadata={"Date": None} if ending == "svg" else None)
        written.append(path)
    plot.close(figure)


def _over_size(report, place, level, measure, scale, ylabel, title, directory, written):
    curves = {name: results for name, results in _curves(report, place, level, measure).items() if len(results) > 1}
    if not curves:
        return
    figure, axes = _axes(f"{title} {_TITLES[place]}" + (", MPI" if level == "mpi" else ""), ylabel)
    axes.set_yscale("log")
    axes.xaxis.set_major_formatter(plot.FuncFormatter(_size))
    axes.yaxis.set_major_formatter(plot.FuncFormatter(lambda value, _: f"{value:g}"))
    for number, (name, results) in enumerate(curves.items()):
        _draw(axes, name, number, {size: result["median"] * scale for size, result in results.items()},
              {size: (result["smallest"] * scale, result["largest"] * scale) for size, result in results.items()})
    axes.legend(fontsize=9)
    _save(figure, directory, f"{place}-{'mpi-' if level == 'mpi' else ''}{measure}", written)


def _ratios(report, place, level, measure, directory, written):
    """The speedup of ours over each peer, for each size."""
    curves = {}
    for ratio in report["ratios"]:
        subject = (ratio["place"], ratio["level"], ratio["measure"], ratio["wait"])
        if ratio["same_phase"] and subject == (place, level, measure, "spin"):
            name = f"{_short(ratio['transport'])} : {_short(ratio['peer'])}"
            curves.setdefault(name, (_short(ratio["peer"]), {}))[1][ratio["bytes"]] = ratio["times"]
    curves = {name: curve for name, curve in curves.items() if len(curve[1]) > 1}
    if not curves:
        return
    figure, axes = _axes(f"{measure}: times as good as each peer, {_TITLES[place]}" + (", MPI" if level == "mpi" else ""), "times")
    axes.set_yscale("log")
    axes.xaxis.set_major_formatter(plot.FuncFormatter(_size))
    axes.yaxis.set_major_formatter(plot.FuncFormatter(lambda value, _: f"{value:g}"))
    axes.axhline(1, color="black", linewidth=1)
    for number, (name, (peer, points)) in enumerate(sorted(curves.items())):
        xs = sorted(points)
        axes.plot(xs, [points[x] for x in xs], color=_COLOURS.get(peer.partition("@")[0], "#333333"), linewidth=1.5,
                  linestyle="--" if "/udp" in name else "-", marker=_MARKERS[number % len(_MARKERS)], markersize=4, label=name)
    axes.legend(fontsize=8)
    _save(figure, directory, f"{place}-{'mpi-' if level == 'mpi' else ''}{measure}-ratio", written)


def _rate(report, place, level, directory, written):
    curves = {}
    for result in report["results"]:
        if (result["place"], result["level"], result["measure"], result["wait"]) == (place, level, "rate", "spin"):
            curves.setdefault(_short(result["transport"]), {})[result["window"]] = result["median"] / 1e6
    curves = {name: points for name, points in curves.items() if len(points) > 1}
    if not curves:
        return
    figure, axes = _axes(f"8-byte messages {_TITLES[place]}" + (", MPI" if level == "mpi" else ""), "million per second", "window")
    axes.set_yscale("log")
    axes.xaxis.set_major_formatter(plot.FuncFormatter(lambda value, _: f"{value:g}"))
    axes.yaxis.set_major_formatter(plot.FuncFormatter(lambda value, _: f"{value:g}"))
    for number, (name, points) in enumerate(sorted(curves.items(), key=lambda entry: not _is_ours(entry[0]))):
        _draw(axes, name, number, points)
    axes.legend(fontsize=9)
    _save(figure, directory, f"{place}-{'mpi-' if level == 'mpi' else ''}rate", written)


def draw(report, directory):
    os.makedirs(directory, exist_ok=True)
    written = []
    for place in _TITLES:
        for level in ("fabric", "mpi"):
            _over_size(report, place, level, "latency", 1, "one-way latency, us", "Latency", directory, written)
            _over_size(report, place, level, "bandwidth", 1e-9, "GB/s", "Bandwidth", directory, written)
            for measure in ("latency", "bandwidth"):
                _ratios(report, place, level, measure, directory, written)
            _rate(report, place, level, directory, written)
    return written


if __name__ == "__main__":
    with open(sys.argv[1], encoding="utf-8") as source:
        for drawn in draw(json.load(source), sys.argv[2]):
            print(drawn)
