#!/usr/bin/env python3
"""What leaves the plugin and what it wants: fi_prov_ini and nothing else; no libfabric, no C++ runtime."""
import re
import subprocess
import sys


def main(plugin):
    failures = []
    exported = subprocess.run(["nm", "-D", "--defined-only", plugin], capture_output=True, text=True, check=True).stdout
    names = [line.split()[-1] for line in exported.splitlines() if line.strip()]
    if names != ["fi_prov_ini"]:
        failures.append(f"exports {names[:10]} instead of fi_prov_ini alone")
    dynamic = subprocess.run(["readelf", "-d", plugin], capture_output=True, text=True, check=True).stdout
    needed = re.findall(r"\(NEEDED\).*\[(.*)\]", dynamic)
    for library in needed:
        if not re.match(r"(libc|libm|libdl|libpthread|ld-linux.*)\.so", library):
            failures.append(f"needs {library}")
    if "NODELETE" not in dynamic:
        failures.append("may be unloaded while its threads run (no -z nodelete)")
    for failure in failures:
        print(f"FAILED: {failure}")
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1]))
