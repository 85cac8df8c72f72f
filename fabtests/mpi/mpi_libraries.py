"""The MPI libraries that the tests run, and the options that make each use one path and no other.

    openmpi4  the system's Open MPI 4.1 (Debian 12), its ranks built by CMake
    openmpi5  Open MPI 5 from PyPI
    mpich     MPICH 5 from PyPI
    intel     Intel MPI from PyPI; it comes without headers, so its programs are compiled with MPICH's, whose ABI it has

Paths: `cluster` is this provider for everything, also inside a node; `tcp` is what the library does over Ethernet
without it; `memory` is Open MPI's own shared memory, and `own` both, as Open MPI chooses them. None falls back to another silently.
"""
import dataclasses
import os
import subprocess
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))
import pypi_wheels  # noqa: E402

HERE = Path(__file__).resolve().parent
_FLAGS = ["-O2", "-std=c11", "-D_GNU_SOURCE", "-pthread", "-lm"]


@dataclasses.dataclass(frozen=True)
class Library:
    wheel: str  # empty: installed in the system
    compiler: str  # wheel whose mpicc builds the programs
    words: dict  # path -> options of mpirun
    variables: dict  # path -> environment
    windows: dict = dataclasses.field(default_factory=dict)  # path -> Open MPI's parameter osc
    lacks: dict = dataclasses.field(default_factory=dict)  # path -> tests of mpi_check that it fails by itself
    # With its own shared memory inside a node: environment, and Open MPI's parameter osc.
    own_memory: dict = dataclasses.field(default_factory=dict)
    own_windows: str = ""

    def prefix(self, cache):
        return pypi_wheels.install(self.wheel, cache) if self.wheel else None


def _open_mpi(wheel, include):
    # osc pt2pt: left to itself, 4.1.4 chooses osc rdma for windows and fails where no transport has atomic operations,
    # over TCP as well. Version 5 makes windows by TCP, in silence, unless osc rdma over btl ofi is selected. Neither gets
    # osc sm, which would take the windows of one node for itself; only it knows windows that share memory.
    ours, own = ["shared_by_a_node"], []
    if not wheel:
        ours.append("persistent_buffered")  # sends the bytes of the first start for ever, on every path
        own = [*ours, "truncation"]  # pml ob1 writes behind the buffer
    return Library(wheel, wheel, {
        "cluster": ["--mca", "pml", "cm", "--mca", "mtl", "ofi", "--mca", include, "cluster",
                    *(["--mca", "btl", "self,ofi"] if wheel else [])],
        "tcp": ["--mca", "pml", "ob1", "--mca", "btl", "tcp,self"],
        "memory": ["--mca", "pml", "ob1", "--mca", "btl", "self,vader" if not wheel else "self,sm"],
        "own": ["--mca", "pml", "ob1", "--mca", "btl", "self,vader,tcp" if not wheel else "self,sm,tcp"]}, {
            "cluster": {"FI_PROVIDER": "cluster"}}, {
                "cluster": "rdma" if wheel else "pt2pt", "tcp": "" if wheel else "pt2pt",
                "memory": "" if wheel else "pt2pt"}, {"cluster": ours, "tcp": own, "memory": own},
        own_windows="rdma,sm" if wheel else "pt2pt,sm")


def _mpich_like(wheel, common, own_memory, lacks=()):
    # NOLOCAL: through libfabric inside a node, too.
    return Library(wheel, "mpich", {}, {
        "cluster": {**common, "FI_PROVIDER": "cluster"}, "tcp": {**common, "FI_PROVIDER": "tcp"},
        "rxm": {**common, "FI_PROVIDER": "tcp;ofi_rxm"}}, {},
        {"cluster": lacks, "tcp": lacks, "rxm": lacks}, own_memory)


LIBRARIES = {
    "openmpi4": _open_mpi("", "mtl_ofi_provider_include"),
    "openmpi5": _open_mpi("openmpi", "opal_common_ofi_provider_include"),
    # This MPICH contains UCX as well and prefers it.
    "mpich": _mpich_like("mpich", {"MPIR_CVAR_CH4_NETMOD": "ofi", "MPIR_CVAR_NOLOCAL": "1"},
                         {"MPIR_CVAR_NOLOCAL": "0"}),
    # Without its own shared memory it writes to windows that share memory by a key which it never registered.
    "intel": _mpich_like("impi", {"I_MPI_FABRICS": "ofi"}, {"I_MPI_FABRICS": "shm:ofi"}, ("shared_by_a_node",)),
}


def build(name, program, cache):
    """Compiles a program of this directory for a library, if it is older than its sources; returns its path."""
    library = LIBRARIES[name]
    if program == "mpi_check":
        sources = [HERE / "mpi_check.c", *sorted(HERE.glob("check*.c"))]
    elif (HERE / "apps" / f"{program}.c").exists():
        sources = [HERE / "apps" / f"{program}.c"]
    else:
        sources = [HERE / f"{program}.c", HERE / "check.c"]
    target = cache / "programs" / f"{program}.{library.compiler}"
    newest = max(path.stat().st_mtime for path in [*sources, *HERE.glob("*.h")])
    if target.exists() and target.stat().st_mtime >= newest:
        return target
    compiler = pypi_wheels.install(library.compiler, cache) / "bin" / "mpicc"
    target.parent.mkdir(parents=True, exist_ok=True)
    unfinished = target.with_name(f"{target.name}.{os.getpid()}")
    subprocess.run([compiler, *map(str, sources), *_FLAGS, "-o", str(unfinished)], check=True)
    unfinished.rename(target)
    return target
