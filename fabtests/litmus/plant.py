#!/usr/bin/env python3
"""Plants mistakes in the provider, one at a time, and demands that programs over real links and shared memory notice each.

    plant.py --build DIRECTORY [--only WORDS] [--scratch DIRECTORY] [--every] | --check

What mutate.py does with the simulator, with processes: the plugin is compiled from a copy of the tree with one mistake in
it, and programs of the build tree (litmus, histories, locks, conformance), which know nothing of it, run over that plugin
in the settings that mistakes.py names, on virtual nodes. `lossy` is nodes-udp over a network that loses and repeats frames.
Each of these programs must pass without any mistake first. Exit status 0 if each mistake was noticed, 1 if not, 2 usage.

    --check  only that every mistake still applies to the sources
    --every  all programs that mistakes.py names for a mistake, not only until one has noticed it
"""
import argparse
import os
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

HERE = Path(__file__).resolve().parent
TOP = HERE.parent.parent
sys.path[:0] = [str(HERE.parent), str(TOP / "prov" / "cluster" / "sim")]
import mutate  # noqa: E402
import virtual_nodes  # noqa: E402
from mistakes import MISTAKES  # noqa: E402
from vcluster_lib import temporary  # noqa: E402

_PROGRAMS = {"litmus": ("litmus", ["--rounds", "300"]), "locks": ("litmus", ["--rounds", "50"]),
             "histories": ("litmus", ["--batches", "20", "--sides", "3"]),
             "conformance": ("conformance", ["--gtest_repeat=4"])}  # some mistakes need an unlucky moment
_LOSSY = ("--loss", "3%", "--duplicate", "3%", "--reorder", "2%", "--only", "udp")
_SECONDS = 120  # a program that takes longer stands still


class Looker:
    """Runs programs over one plugin after the other, on nodes that all of them share."""

    def __init__(self, build):
        self.build = build.resolve()
        # Found by run_setting.py as those of the process that started it.
        self.cluster = temporary.make("ctest", virtual_nodes.SHARED_NODES, suffix="-shared")

    def look(self, words, plugin):
        """What a program noticed, in a few words; None if it passed."""
        program, setting, *filters = words.split()
        folder, options = _PROGRAMS[program]
        lossy = setting == "lossy"
        if lossy:
            self.cluster.faults(*_LOSSY)
        command = [sys.executable, "-B", str(HERE.parent / "conformance" / "run_setting.py"), "nodes-udp" if lossy else setting,
                   str(self.build / "fabtests" / folder / program), "--gtest_brief=1",
                   *[f"--gtest_filter={word}" for word in filters], *options]
        environment = {**os.environ, "FI_PROVIDER_PATH": str(plugin), "FI_PROVIDER": "cluster", "CONFORMANCE_SECONDS": "30",
                       "CONFORMANCE_ROUNDS": "300"}
        try:
            done = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=_SECONDS, check=False)
        except subprocess.TimeoutExpired:
            return "stands still"
        finally:
            if lossy:
                self.cluster.faults("--clear")
        if done.returncode == 0 or done.returncode == virtual_nodes.SKIPPED:
            return None
        failed = [line.split("]")[1].split("(")[0].strip() for line in done.stdout.splitlines() if line.startswith("[  FAILED  ]")]
        return failed[0] if failed else f"exit status {done.returncode}"


def compile_plugin(tree):
    """None, or what the compiler reports."""
    done = subprocess.run(["ninja", "-C", str(tree / "build"), "cluster-fi"], capture_output=True, text=True, check=False)
    return None if done.returncode == 0 else "\n".join(line for line in done.stdout.splitlines() if "error" in line)[:500]


def prepare(tree):
    """A copy of the tree, configured, and its plugin without any mistake."""
    shutil.copytree(TOP, tree, ignore=shutil.ignore_patterns("build", ".git", "__pycache__"))
    launcher = ["-DCMAKE_CXX_COMPILER_LAUNCHER=ccache"] if shutil.which("ccache") else []
    subprocess.run(["cmake", "-S", str(tree), "-B", str(tree / "build"), "-G", "Ninja", "-DCMAKE_BUILD_TYPE=RelWithDebInfo",
                    "-DCLUSTER_TESTS=OFF", "-DCLUSTER_WERROR=OFF", *launcher], check=True, capture_output=True)
    return compile_plugin(tree)


def notice(looker, tree, mistake, every):
    """(True if noticed, the line to print)"""
    _, name, old, new, looks = mistake
    path = tree / "prov" / "cluster" / "src" / name
    before = path.read_text()
    path.write_text(before.replace(old, new))
    errors = compile_plugin(tree)
    path.write_text(before)
    if errors is not None:
        return False, "does not compile: " + errors
    found = []
    for words in looks:
        what = looker.look(words, tree / "build" / "prov" / "cluster")
        if what is not None or every:
            found.append((what is not None, f"{words}: {what or 'not noticed'}"))
        if what is not None and not every:
            break
    return any(noticed for noticed, _ in found), "; ".join(text for _, text in found) or "NOT NOTICED by " + ", ".join(looks)


def plant(options, chosen):
    virtual_nodes.require("cmake", "ninja")
    looker = Looker(options.build)
    with tempfile.TemporaryDirectory(prefix="cluster-plant-", dir=options.scratch) as scratch:
        tree = Path(scratch) / "tree"
        errors = prepare(tree)
        if errors is not None:
            print("plant: the sources do not compile: " + errors, file=sys.stderr)
            return 1
        for words in sorted({words for mistake in chosen for words in mistake[4]}):
            what = looker.look(words, tree / "build" / "prov" / "cluster")
            if what is not None:
                print(f"plant: without any mistake {words} fails: {what}", file=sys.stderr)
                return 1
        missed = 0
        for number, mistake in enumerate(chosen, 1):
            noticed, text = notice(looker, tree, mistake, options.every)
            missed += not noticed
            print(f"{number:3} {mistake[0]:62} {text}", flush=True)
    print(f"{len(chosen)} mistakes, {missed} not noticed")
    return 1 if missed else 0


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--build", type=Path, help="build tree whose programs are run")
    parser.add_argument("--only", default="", help="mistakes whose name contains these words")
    parser.add_argument("--scratch", help="make the scratch directory here")
    parser.add_argument("--every", action="store_true", help="run all programs that are named for a mistake")
    parser.add_argument("--check", action="store_true", help="only that every mistake still applies")
    options = parser.parse_args()
    chosen = [mistake for mistake in MISTAKES if options.only in mistake[0]]
    if options.check:
        return mutate.check([mistake[:4] for mistake in chosen])
    if not chosen or options.build is None:
        print("plant: " + ("--build is needed" if chosen else f"no mistake is called {options.only}"), file=sys.stderr)
        return 2
    return plant(options, chosen)


if __name__ == "__main__":
    sys.exit(main())
