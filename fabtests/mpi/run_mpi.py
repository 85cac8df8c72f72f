"""Runs one MPI program over virtual nodes, and checks its output and the path of its bytes.

    run_mpi.py --nodes 2 --ranks 4 --path cluster --provider DIRECTORY --link udp -- mpi_check --rounds 1
    run_mpi.py --library mpich --cache DIRECTORY ... -- mpi_check      # a program of this directory, built for it

Over `cluster`, the counters that each endpoint logs when it is closed must show that the bytes went that way: as many
endpoints as ranks, frames between nodes, shared-memory segments inside one, and not much less sent than compared. With --coll each
rank must report that libcluster-coll took over some of the calls of every kind, and most of all calls.
"""
import argparse
import glob
import os
import re
import subprocess
import sys
import tempfile
from pathlib import Path

sys.path.insert(0, os.path.join(os.path.dirname(os.path.realpath(__file__)), ".."))
import virtual_nodes  # noqa: E402
from mpi_libraries import LIBRARIES, build, pypi_wheels  # noqa: E402

# Each rank writes its errors to a file of its own: lines of different ranks cannot mix. $0 is the directory.
_RANK = 'n=$(hostname); case $FI_CLUSTER_LINK-$n in mixed-node1) export FI_CLUSTER_LINK=packet;; ' \
        'mixed-*) export FI_CLUSTER_LINK=udp;; esac; exec "$@" 2>>"$0/$n.$$"'
_LEAST_SHARE = 0.2  # of the bytes compared: what a rank sends to itself need not go through the provider


def parser():
    options = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    options.add_argument("--library", dest="mpi", choices=sorted(LIBRARIES), default="openmpi4", help="(default: %(default)s)")
    options.add_argument("--cache", type=Path, default=Path("build/cores"), help="for libraries from PyPI")
    options.add_argument("--nodes", type=int, default=2, help="virtual nodes (default: %(default)s)")
    options.add_argument("--ranks", type=int, default=2, help="ranks, spread over all nodes (default: %(default)s)")
    options.add_argument("--slots", type=int, default=0, help="ranks that fit a node (default: as many as there are)")
    options.add_argument("--path", choices=("cluster", "tcp", "rxm", "memory", "own"), default="cluster",
                         help="memory, own: Open MPI; rxm, which is tcp;ofi_rxm: MPICH (default: %(default)s)")
    options.add_argument("--own-memory", action="store_true", help="inside a node the library shares memory itself")
    options.add_argument("--provider", default="", help="directory of libcluster-fi.so")
    options.add_argument("--link", default="", help="packet, udp, or mixed: packet on the first node, udp elsewhere")
    options.add_argument("--rails", type=int, default=1, help="Ethernet interfaces per node (default: %(default)s)")
    options.add_argument("--mtu", type=int, default=1500, help="(default: %(default)s)")
    options.add_argument("--set", action="append", default=[], metavar="NAME=VALUE", help="in the ranks' environment")
    options.add_argument("--mca", action="append", default=[], metavar="NAME=VALUE", help="parameter of Open MPI")
    options.add_argument("--coll", action="store_true", help="with libcluster-coll in front of the library's collectives")
    options.add_argument("--no-warning", action="store_true", help="the provider must warn of nothing: the nodes are healthy")
    options.add_argument("--expect", default="", help="regular expression that the output must contain")
    options.add_argument("--directory", default="", help="working directory of the job")
    options.add_argument("--seconds", type=int, default=220, help="end the job after so long (default: %(default)s)")
    options.add_argument("program", nargs="+", help="program and arguments")
    return options


def arguments():
    return parser().parse_args()


def environment(options):
    values = virtual_nodes.without_settings()
    values.update(LIBRARIES[options.mpi].variables.get(options.path, {}))
    if options.path == "cluster" or options.coll:
        values.update({"FI_PROVIDER_PATH": os.path.abspath(options.provider), "FI_LOG_LEVEL": "info"})
        if options.link:
            values["FI_CLUSTER_LINK"] = options.link
    if options.own_memory:
        values.update(LIBRARIES[options.mpi].own_memory)
    if options.coll:
        values["CLUSTER_COLL"] = "on,report"
    values.update(word.split("=", 1) for word in options.set)
    return values


def command(options):
    """The options of `vcluster mpirun`, and the program with its arguments."""
    library = LIBRARIES[options.mpi]
    words = ["--on", ",".join(f"node{number}" for number in range(1, options.nodes + 1))]
    program = list(options.program)
    if os.path.basename(program[0]) == "mpi_check" and "--only" not in program:
        program += [word for test in library.lacks.get(options.path, ()) for word in ("--skip", test)]
    if library.wheel:
        words += ["--mpi", str(library.prefix(options.cache).resolve())]
        if os.sep not in program[0]:
            program[0] = str(build(options.mpi, program[0], options.cache).resolve())
    if options.coll:
        words.append("--coll")
    if options.slots:
        words += ["--slots", str(options.slots)]
    words += ["-np", str(options.ranks), *library.words.get(options.path, [])]
    if library.words:
        windows = library.own_windows if options.own_memory else library.windows.get(options.path)
        default = [f"osc={windows}"] if windows and not any(word.startswith("osc=") for word in options.mca) else []
        for setting in ["mpi_yield_when_idle=1", *default, *options.mca]:
            words += ["--mca", *setting.split("=", 1)]
    return words, program


def _run(command_line, options):
    process = subprocess.Popen(command_line, env=environment(options), text=True,
                               stdout=subprocess.PIPE, stderr=subprocess.STDOUT, cwd=options.directory or None)
    try:
        output, _ = process.communicate(timeout=options.seconds)
    except subprocess.TimeoutExpired:
        process.terminate()  # vcluster ends the job
        output, _ = process.communicate()
        output += f"\nended after {options.seconds} s\n"
    return process.returncode, output


def counters(errors):
    """Sums of the counters that the endpoints logged, and how many endpoints there were."""
    sums = {"endpoints": 0}
    for line in re.findall(r"endpoint \S+ closed:(.*)", errors):
        sums["endpoints"] += 1
        for name, value in re.findall(r"(\w+)=(\d+)", line):
            sums[name] = sums.get(name, 0) + int(value)
    return sums


def names_no_provider(options):
    """Whether only libcluster-coll asks libfabric for a provider by name: then nothing else makes libfabric's layers warn."""
    return options.coll and not LIBRARIES[options.mpi].wheel


def launch(options, cluster):
    """Returns the exit status, the output of the job, and the sums of the endpoints' counters."""
    words, program = command(options)
    with tempfile.TemporaryDirectory(prefix="run_mpi-") as directory:
        status, output = _run(cluster.mpirun(*words, "sh", "-c", _RANK, directory, *program), options)
        errors = ""
        for path in sorted(glob.glob(os.path.join(directory, "node*"))):
            with open(path, encoding="utf-8", errors="replace") as file:
                errors += file.read()
    own = "".join(line for line in errors.splitlines(True) if not re.match(r"libfabric:.*<(info|warn)>", line))
    warned = r"libfabric:.*<warn>" if names_no_provider(options) else r"libfabric:.*:cluster:.*<warn>"
    warnings = "".join(line for line in errors.splitlines(True) if re.match(warned, line))
    return status, output + own + warnings, counters(errors)


def missing(options, output, sums):
    """What the counters fail to prove; nothing if they prove that the bytes went through the provider."""
    found = []
    if options.own_memory and options.nodes == 1:
        return found
    if sums["endpoints"] < options.ranks:
        found.append(f"{sums['endpoints']} endpoints logged their counters, there were {options.ranks} ranks")
    if options.nodes > 1 and not sums.get("frames_sent"):
        found.append("no frame was sent")
    if options.ranks > options.nodes and not options.own_memory and not sums.get("shm_sent"):
        found.append("nothing went through shared memory")
    compared = sum(map(int, re.findall(r"(\d+) bytes compared", output)))
    if sums.get("bytes_sent", 0) < compared * _LEAST_SHARE:
        found.append(f"{sums.get('bytes_sent', 0)} bytes were sent through the provider, {compared} compared")
    return found


def left_to_mpi(options, output):
    """What the reports of libcluster-coll fail to prove; nothing if they prove that it took over the calls."""
    reports = re.findall(r"^libcluster-coll: rank \d+: (.*)", output, re.MULTILINE)
    sums = {}
    for call, taken, made in re.findall(r"(\w+) (\d+) of (\d+)", "\n".join(reports)):
        before = sums.get(call, (0, 0))
        sums[call] = before[0] + int(taken), before[1] + int(made)
    print("taken over: " + ", ".join(f"{call} {taken} of {made}" for call, (taken, made) in sums.items()))
    found = [] if len(reports) == options.ranks else [f"{len(reports)} of {options.ranks} ranks reported what libcluster-coll did"]
    found += [f"all {made} calls of {call} were left to MPI" for call, (taken, made) in sums.items() if made and not taken]
    taken, made = (sum(numbers) for numbers in zip((0, 0), *sums.values()))
    if 2 * taken <= made:
        found.append(f"libcluster-coll took over {taken} of {made} calls")
    return found


def judge(options, status, output, sums):
    print(output)
    wrong = [f"exit status {status}"] if status != 0 else []
    if options.expect and not re.search(options.expect, output):
        wrong.append(f"the output does not contain {options.expect}")
    if options.path == "cluster" and not wrong:
        wrong += missing(options, output, sums)
        print("through cluster: " + ", ".join(f"{sums.get(key, 0)} {key}" for key in (
            "endpoints", "bytes_sent", "frames_sent", "frames_retransmitted", "shm_sent")))
    if options.coll and not wrong:
        wrong += left_to_mpi(options, output)
        wrong += [f"a warning about a provider that libcluster-coll does not use: {line}"
                  for line in re.findall(r"libfabric:.*(?:ofi_\w+:|fi_getinfo).*<warn>.*", output) if names_no_provider(options)]
    if options.no_warning and not wrong:
        wrong += [f"a warning that asks for nothing: {line}" for line in re.findall(r"libfabric:.*:cluster:.*<warn>.*", output)]
    for line in wrong:
        print(f"FAIL: {line}")
    return 1 if wrong else 0


def cluster_for(options):
    """The shared cluster, or one of its own for a job that needs another network."""
    if (options.rails, options.mtu) == (1, 1500):
        return virtual_nodes.shared(options.nodes)
    return virtual_nodes.make(options.nodes, "--rails", str(options.rails), "--mtu", str(options.mtu))


def install(options):
    """Skips the test, with the reason, when the library cannot be installed."""
    try:
        LIBRARIES[options.mpi].prefix(options.cache)
    except pypi_wheels.Unavailable as reason:
        virtual_nodes.skip(reason)


def main():
    options = arguments()
    virtual_nodes.require("mpirun")
    install(options)
    return judge(options, *launch(options, cluster_for(options)))


if __name__ == "__main__":
    sys.exit(main())
