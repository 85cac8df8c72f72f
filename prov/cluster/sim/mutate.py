#!/usr/bin/env python3
"""Plants mistakes in the library, one at a time, and demands that the simulator detects each of them.

    mutate.py [--seeds 1000] [--jobs 2] [--only WORDS] [--scratch DIRECTORY] [--keep] [--check | --self-test]

Works on a copy of the sources in a scratch directory, never on the tree itself, and compiles there only what
a mistake touches. Prints a table: each mistake, and the first seed that detects it. Exit status: 0 if all
were detected; 1 if one was not, or if the text that a mistake replaces does not occur in its file exactly
once; 2 usage.

    --only WORDS  plants only the mistakes whose names contain these words
    --check       only checks that every mistake still applies to the sources; compiles nothing
    --self-test   checks that the unchanged sources pass, and that one mistake is detected
"""
import argparse
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile

from mutations import MUTATIONS

HERE = pathlib.Path(__file__).resolve().parent
PROVIDER = HERE.parent
# The simulator consists of every component below the interface, and of its own sources.
INTERFACE = ("api", "provider")
COMPILER = "g++ -std=c++20 -O1 -DNDEBUG"
# Which workload runs the sources of some folders; "any" runs the others.
WORKLOADS = {"groups": ("group/", "seal/group"), "rings": ("os/ring",), "connections": ("connection/", "engine/connection_")}
# Mistakes whose names contain the first word need hosts with RDMA devices, and long messages. If they also
# contain the second word, they need remote reads and writes instead.
DEVICE = "device"
REMOTE = "(remote)"
# Mistakes whose names contain this word need hosts with keys.
KEYED = "(keyed)"
# Mistakes whose names contain this word need a router that translates addresses.
ROUTER = "router"
# Mistakes in these sources need two parts of a network that only relays join.
RELAY = "relay/"
# Other tests prove that the unchanged sources pass. These seeds only show that the copy is complete.
UNCHANGED_SEEDS = 20


def sources(tree):
    """Returns the sources of the simulator. Files for one kind of processor are left out, because _other.cc
    is for all. Files that need the headers of libibverbs are left out, and so are the wrappers of
    cancellation points, which only the linker of the plugin needs."""
    components = [path for path in sorted((tree / "src").iterdir()) if path.is_dir() and path.name not in INTERFACE]
    found = [path for component in components for path in sorted(component.rglob("*.cc"))]
    found += sorted((tree / "print").glob("*.cc")) + sorted((tree / "sim").glob("*.cc"))
    left_out = re.compile(r"_(x86|arm64)\.cc$|^cancellation_points\.cc$|^verbs_(link|device|library|queue|reader)\.cc$")
    return [path for path in found if not left_out.search(path.name)]


def write_rules(tree, launcher):
    # The paths are relative. So what was compiled in another scratch directory need not be compiled again.
    lines = [f"cxx = {launcher}{COMPILER} -Isrc -I.",
             "rule compile", "  command = $cxx -MMD -MF $out.d -c $in -o $out", "  depfile = $out.d", "  deps = gcc",
             "rule link", f"  command = {COMPILER} $in -o $out -lpthread"]
    objects = []
    for source in sources(tree):
        path = source.relative_to(tree)
        name = str(path).replace("/", "_") + ".o"
        objects.append(name)
        lines.append(f"build {name}: compile {path}")
    lines.append("build cluster-sim: link " + " ".join(objects))
    (tree / "build.ninja").write_text("\n".join(lines) + "\n")


def build(tree, jobs):
    """Returns None, or what the compiler reports."""
    done = subprocess.run(["ninja", "-C", str(tree), "-j", str(jobs)], capture_output=True, text=True)
    if done.returncode == 0:
        return None
    wrong = [line for line in done.stdout.splitlines() if re.search("error:|undefined reference", line)]
    return "\n".join(wrong) or done.stdout[-2000:]


def first_failure(tree, seeds, jobs, security="none", workload="any", more=()):
    """Returns what the first seed that fails reports, or None."""
    done = subprocess.run([str(tree / "cluster-sim"), "--seed", "1", "--seeds", str(seeds), "--jobs", str(jobs),
                           "--security", security, "--workload", workload, "--first-failure", "--quiet", *more], capture_output=True, text=True)
    if done.returncode == 0:
        return None
    for line in done.stdout.splitlines():
        failure = re.match(r"(SAFETY|LIVENESS|CRASH)  seed (\d+) \([^)]*\): (.*)", line)
        if failure:
            return f"{failure[1].lower()}, seed {failure[2]}: {failure[3][:70]}"
    return f"exit status {done.returncode}"


def problem_of(tree, mutation):
    """Returns why a mistake cannot be planted in the sources of the tree, or None."""
    _, name, old, _ = mutation
    path = tree / "src" / name
    if not path.exists():
        return f"no longer applies: there is no src/{name}"
    count = path.read_text().count(old)
    return None if count == 1 else f"no longer applies: src/{name} has {count} times: {old}"


def detect(tree, mutation, options):
    """Plants a mistake. Returns whether it was detected, and what to print."""
    problem = problem_of(tree, mutation)
    if problem:
        return False, problem
    _, name, old, new = mutation
    path = tree / "src" / name
    before = path.read_text()
    path.write_text(before.replace(old, new))
    errors = build(tree, options.jobs)
    security = "any" if name.startswith(("seal/", RELAY)) or KEYED in mutation[0] else "none"
    workload = next((word for word, places in WORKLOADS.items() if name.startswith(places)), "any")
    more = ()
    if DEVICE in mutation[0]:
        workload, more = "remote" if REMOTE in mutation[0] else "large", ("--devices",)
    if ROUTER in mutation[0]:
        more = ("--translator",)
    if name.startswith(RELAY):
        more = ("--relay",)
    failure = None if errors else first_failure(tree, options.seeds, options.jobs, security, workload, more)
    path.write_text(before)
    if errors:
        return False, "does not compile: " + errors
    return failure is not None, failure or f"NOT DETECTED in {options.seeds} seeds"


def check(chosen):
    """Checks that every mistake still applies to the sources."""
    problems = [(mutation[0], problem_of(PROVIDER, mutation)) for mutation in chosen]
    for name, problem in problems:
        if problem:
            print(f"{name:46} {problem}")
    stale = sum(problem is not None for _, problem in problems)
    print(f"{len(chosen)} mistakes, {stale} no longer apply")
    return 1 if stale else 0


def run(tree, chosen, options):
    shutil.copytree(PROVIDER / "src", tree / "src")
    shutil.copytree(PROVIDER / "print", tree / "print")
    shutil.copytree(HERE, tree / "sim")
    shutil.copytree(PROVIDER / "test" / "support", tree / "test" / "support")
    write_rules(tree, "ccache " if shutil.which("ccache") else "")
    print(f"building the simulator ({len(sources(tree))} files)", flush=True)
    errors = build(tree, options.jobs)
    if errors:
        print("mutate: the sources do not compile:\n" + errors, file=sys.stderr)
        return 1
    failure = first_failure(tree, UNCHANGED_SEEDS, options.jobs)
    if failure:
        print("mutate: the simulator fails without any mistake: " + failure, file=sys.stderr)
        return 1
    missed = 0
    for number, mutation in enumerate(chosen, 1):
        detected, text = detect(tree, mutation, options)
        missed += not detected
        print(f"{number:3} {mutation[0]:52} {text}", flush=True)
    print(f"{len(chosen)} mistakes, {missed} not detected")
    return 1 if missed else 0


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seeds", type=int, default=1000)
    parser.add_argument("--jobs", type=int, default=2)
    parser.add_argument("--only", default="")
    parser.add_argument("--scratch", help="make the scratch directory here")
    parser.add_argument("--keep", action="store_true", help="leave the scratch directory")
    mode = parser.add_mutually_exclusive_group()
    mode.add_argument("--check", action="store_true", help="only that every mistake still applies")
    mode.add_argument("--self-test", action="store_true", help="the sources pass, and one mistake is detected")
    options = parser.parse_args()
    chosen = [mutation for mutation in MUTATIONS if options.only in mutation[0]]
    if not chosen:
        print(f"mutate: no mistake is called {options.only}", file=sys.stderr)
        return 2
    if options.check:
        return check(chosen)
    scratch = pathlib.Path(tempfile.mkdtemp(prefix="cluster-mutate-", dir=options.scratch))
    try:
        return run(scratch, chosen[:1] if options.self_test else chosen, options)
    finally:
        if options.keep:
            print(f"left in {scratch}")
        else:
            shutil.rmtree(scratch)


if __name__ == "__main__":
    sys.exit(main())
