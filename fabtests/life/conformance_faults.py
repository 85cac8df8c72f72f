"""Runs each test of the conformance suite with one call of the provider failing once.

    conformance_faults.py --build BUILD --shim FILE --program conformance [--faults N] [--seed S] [--setting NAME] [--only TEST]

A first run of a test counts the calls that the provider makes on even sides. Then it runs with N of them failing, one in each
run (the seed says which: first a function, then one of its calls). The tests expect no errors, so a test may fail, or
wait in vain, once the provider has reported one. But no side may die of a signal or hang, and no test may fail without
a reported error.
"""
import argparse
import concurrent.futures
import os
import random
import re
import subprocess
import sys
import tempfile

sys.path.insert(0, os.path.join(os.path.dirname(os.path.realpath(__file__)), ".."))
import virtual_nodes  # noqa: E402

SETTINGS = {
    "shm": ("", {}),
    "udp": ("FI_CLUSTER_SHM=no FI_CLUSTER_LINK=udp", {}),
    "udp-auto": ("FI_CLUSTER_SHM=no FI_CLUSTER_LINK=udp", {"CONFORMANCE_PROGRESS": "auto"}),
}
TEST_SECONDS = 60
RUN_SECONDS = TEST_SECONDS + 30
NEVER = re.compile(r"died of signal (?!9\b)\d+|terminate called|AddressSanitizer|runtime error")  # 9: the suite has ended it
# A call's return value, or an error entry; or fi_getinfo offers nothing, since the provider could not examine the host.
REPORTED = re.compile(r"Which is: -\d+|failed with|no info for these hints|(info|none)\) != \(nullptr\)|get_info\(.*\) != \(nullptr\)")
# Tests of this host's abilities or of time, and one of an address that no loopback has.
LEFT_OUT = ("Stress.", "Failure.SendingToAMissingNodeFailsInBoundedTime")


class Suite:
    def __init__(self, options):
        self.program, self.shim = os.path.abspath(options.program), os.path.abspath(options.shim)
        self.provider = os.path.join(os.path.abspath(options.build), "prov", "cluster")

    def tests(self, only):
        text = subprocess.run([self.program, "--gtest_list_tests"], capture_output=True, text=True, timeout=60, check=True).stdout
        suite, found = "", []
        for line in text.splitlines():
            name = line.partition("#")[0].rstrip()
            if line.startswith("  "):
                found.append(suite + name.strip())
            elif name.endswith("."):
                suite = name
        return [name for name in found if only in name and not name.startswith(LEFT_OUT)]

    def run(self, setting, test, **faults):
        """(exit status or None, its output); the faults hit even sides."""
        common, more = SETTINGS[setting]
        even = " ".join(filter(None, (common, *(f"{name}={value}" for name, value in faults.items()))))
        environment = virtual_nodes.of_provider(
            self.provider, LD_PRELOAD=self.shim, CONFORMANCE_NODE="127.0.0.1", CONFORMANCE_SECONDS=str(TEST_SECONDS),
            CONFORMANCE_ROUNDS="20", CONFORMANCE_ENV_A=even, CONFORMANCE_ENV_B=common, **more)
        command = [self.program, "--gtest_brief=1", f"--gtest_filter={test}"]
        child = subprocess.Popen(command, env=environment, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
                                 errors="replace", start_new_session=True)
        try:
            text, _ = child.communicate(timeout=RUN_SECONDS)
            return child.returncode, text
        except subprocess.TimeoutExpired:
            os.killpg(child.pid, 9)
            return None, child.communicate()[0]

    def calls(self, setting, test):
        """Function -> how often the provider calls it; None if the test cannot pass here."""
        with tempfile.NamedTemporaryFile("r") as file:
            status, _ = self.run(setting, test, LIFE_FAULT_COUNTS=file.name)
            lines = [line.split() for line in file]  # several sides may have written there at once
        return {words[0]: int(words[1]) for words in lines if len(words) == 2 and words[1].isdigit()} if status == 0 else None


def verdict(status, text):
    """The defect of a run in which a call failed; empty if there is none."""
    if status is None:
        return "hangs"
    found = NEVER.search(text)
    if status < 0 or found:
        return found.group() if found else f"signal {-status}"
    return "fails, and no error was reported" if status != 0 and not REPORTED.search(text) else ""


def one_test(suite, setting, test, options):
    """(runs, those in which the fault showed, those that went wrong)"""
    calls = suite.calls(setting, test)
    if not calls:
        print(f"{setting}: {test} left out: it calls nothing, or fails by itself", flush=True)
        return 0, 0, []
    choice = random.Random(f"{options.seed} {setting} {test}")
    noticed, faulty = 0, []
    for _ in range(options.faults):
        function = choice.choice(sorted(calls))
        fault = f"{function}:{choice.randint(1, calls[function])}"
        status, text = suite.run(setting, test, LIFE_FAULT=fault)
        noticed += status != 0
        wrong = verdict(status, text)
        if wrong or options.show:
            faulty.append(f"{setting} {test} {fault}: {wrong or status}\n" + "\n".join(text.splitlines()[-25:]))
    return options.faults, noticed, faulty


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--build", required=True)
    parser.add_argument("--shim", required=True)
    parser.add_argument("--program", required=True)
    parser.add_argument("--faults", type=int, default=3, help="of each test and setting (default: %(default)s)")
    parser.add_argument("--seed", default="1")
    parser.add_argument("--setting", action="append", choices=SETTINGS)
    parser.add_argument("--only", default="", help="tests whose name contains this")
    parser.add_argument("--show", action="store_true", help="what each run printed, also of those that are right")
    parser.add_argument("--jobs", type=int, default=4, help="programs at once, which wait most of the time")
    options = parser.parse_args()
    suite, wrong = Suite(options), 0
    tests = suite.tests(options.only)
    for setting in options.setting or SETTINGS:
        with concurrent.futures.ThreadPoolExecutor(options.jobs) as workers:
            results = list(workers.map(lambda test, on=setting: one_test(suite, on, test, options), tests))
        runs, noticed = sum(result[0] for result in results), sum(result[1] for result in results)
        faulty = [line for result in results for line in result[2]]
        wrong += len([line for line in faulty if not options.show]) + (noticed == 0)
        print("\n".join(faulty + [f"{setting}: {sum(result[0] > 0 for result in results)} tests, {runs} faults, "
                                      f"{noticed} noticed, {len(faulty)} shown"]), flush=True)
    sys.exit(wrong != 0)


main()
