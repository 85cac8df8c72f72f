#!/usr/bin/env python3
"""Plants mistakes in the library and demands that the simulator notices each of them.

    mutate.py [--seeds 200] [--jobs 2] [--only WORDS] [--scratch DIRECTORY] [--keep] [--self-test]

Works on a copy of the sources in a scratch directory, never on the tree itself, and compiles there only what a
mistake touches. Prints a table: each mistake, and the first seed that tells of it. Exit status 0 if all were
noticed; 1 if one was not, or if the words that a mistake replaces no longer stand in the sources exactly once.

    --only WORDS  those whose name contains the words
    --self-test   the sources as they are must pass, and one mistake must be noticed
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
# What the simulator is made of: the rooms below the interface, and itself.
ROOMS = ("base", "wire", "rails", "link", "reliability", "protocol", "engine", "os")
COMPILER = "g++ -std=c++20 -O1 -DNDEBUG"
# That the sources as they are pass is for other tests to prove; here it only shows that the copy is sound.
UNHARMED_SEEDS = 20


def sources(tree):
    found = [path for room in ROOMS for path in sorted((tree / "src" / room).rglob("*.cc"))]
    found += sorted((tree / "sim").glob("*.cc"))
    return [path for path in found if not path.name.endswith("_other.cc")]


def write_rules(tree, launcher):
    # Relative paths: what was compiled in another scratch directory need not be compiled again.
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


def build(tree):
    done = subprocess.run(["ninja", "-C", str(tree)], capture_output=True, text=True)
    if done.returncode == 0:
        return None
    return "\n".join(line for line in done.stdout.splitlines() if "error" in line) or done.stdout[-2000:]


def first_failure(tree, seeds, jobs):
    """What the first seed that fails says, or None."""
    done = subprocess.run([str(tree / "cluster-sim"), "--seed", "1", "--seeds", str(seeds), "--jobs", str(jobs),
                           "--first-failure", "--quiet"], capture_output=True, text=True)
    if done.returncode == 0:
        return None
    for line in done.stdout.splitlines():
        said = re.match(r"(SAFETY|LIVENESS|CRASH)  seed (\d+) \([^)]*\): (.*)", line)
        if said:
            return f"{said[1].lower()}, seed {said[2]}: {said[3][:70]}"
    return f"exit status {done.returncode}"


def plant(tree, mutation):
    """Changes the file; returns its old words, or None if the place is not there any more."""
    _, name, old, new = mutation
    path = tree / "src" / name
    text = path.read_text() if path.exists() else ""
    if text.count(old) != 1:
        return None
    path.write_text(text.replace(old, new))
    return text


def judge(tree, mutation, options):
    """(noticed, what is to be said)"""
    before = plant(tree, mutation)
    if before is None:
        return False, f"no longer applies: {mutation[1]} does not say exactly once: {mutation[2]}"
    wrong = build(tree)
    said = None if wrong else first_failure(tree, options.seeds, options.jobs)
    (tree / "src" / mutation[1]).write_text(before)
    if wrong:
        return False, "does not compile: " + wrong
    return said is not None, said or f"NOT NOTICED in {options.seeds} seeds"


def run(tree, options):
    chosen = [m for m in MUTATIONS if options.only in m[0]]
    if not chosen:
        print(f"mutate: no mistake is called {options.only}", file=sys.stderr)
        return 2
    shutil.copytree(PROVIDER / "src", tree / "src")
    shutil.copytree(HERE, tree / "sim")
    write_rules(tree, "ccache " if shutil.which("ccache") else "")
    print(f"building the simulator ({len(sources(tree))} files)", flush=True)
    wrong = build(tree)
    if wrong:
        print("mutate: the sources do not compile:\n" + wrong, file=sys.stderr)
        return 1
    said = first_failure(tree, UNHARMED_SEEDS, options.jobs)
    if said:
        print("mutate: the simulator complains without any mistake planted: " + said, file=sys.stderr)
        return 1
    missed = 0
    for mutation in chosen[:1] if options.self_test else chosen:
        noticed, words = judge(tree, mutation, options)
        missed += not noticed
        print(f"{mutation[0]:46} {words}", flush=True)
    print(f"{len(chosen) if not options.self_test else 1} mistakes, {missed} not noticed")
    return 1 if missed else 0


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seeds", type=int, default=200)
    parser.add_argument("--jobs", type=int, default=2)
    parser.add_argument("--only", default="")
    parser.add_argument("--scratch", help="make the scratch directory here")
    parser.add_argument("--keep", action="store_true", help="leave the scratch directory")
    parser.add_argument("--self-test", action="store_true")
    options = parser.parse_args()
    scratch = pathlib.Path(tempfile.mkdtemp(prefix="cluster-mutate-", dir=options.scratch))
    try:
        return run(scratch, options)
    finally:
        if options.keep:
            print(f"left in {scratch}")
        else:
            shutil.rmtree(scratch)


if __name__ == "__main__":
    sys.exit(main())
