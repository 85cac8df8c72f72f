"""The launchers of the MPI libraries: how to recognise each, and how to give it the nodes and our agent instead of ssh.

It knows Open MPI up to 4 (orted), Open MPI from 5 on (prted), MPICH and Intel MPI (hydra). All start a remote daemon by
`AGENT [OPTIONS] NODE COMMAND`, so one agent that enters the node serves them all. All their differences are in this
module.
"""
import dataclasses
import glob
import os
import re
import shutil
import subprocess

from . import state
from .errors import VclusterError

# Options of any mpirun that take one value or two; the first other word is the program. An option that two launchers
# share takes as many values in both.
_ONE_VALUE = {
    # Open MPI
    "-x", "-n", "-np", "-c", "-N", "-H", "-host", "-hostfile", "-machinefile", "-bind-to", "-map-by", "-rank-by",
    "-npernode", "-npersocket", "-wdir", "-wd", "-path", "-rf", "-rankfile", "-cpu-set", "-cpu-list", "-tune", "-am",
    "-output-filename", "-prefix", "-timeout", "-max-restarts", "-stdin", "-report-uri", "-launch-agent",
    "-default-hostfile", "-ppr", "-personality", "-preload-files", "-app", "-aborted", "-xterm", "-tmpdir",
    "-mpi-thread", "-dvm", "-ompi-server", "-pernode-value", "-xml-file", "-output", "-runtime-options", "-display",
    # hydra
    "-hosts", "-f", "-ppn", "-perhost", "-genvlist", "-envlist", "-rankmap", "-configfile", "-launcher",
    "-launcher-exec", "-bootstrap", "-bootstrap-exec", "-bootstrap-exec-args", "-rmk", "-topolib", "-membind", "-demux",
    "-errfile-pattern", "-outfile-pattern", "-prepend-pattern", "-iface", "-localhost", "-nameserver", "-usize",
    "-memory-alloc-kinds", "-machine", "-gtool", "-outfile", "-errfile"}
_TWO_VALUES = {"-mca", "-gmca", "-prtemca", "-pmixmca", "-genv", "-env"}
_COUNT = {"-n", "-np", "-c"}
_PLACE = {"-H", "-host", "-hosts", "-hostfile", "-machinefile", "-machine", "-f", "-default-hostfile", "-rf", "-rankfile"}
_BIND = {"-bind-to", "-bind-to-core", "-bind-to-socket", "-rf", "-rankfile", "-cpu-set", "-cpu-list"}
_PER_NODE = {"-ppn", "-perhost", "-rr"}
_OVERSUBSCRIBE = {"-oversubscribe", "-nooversubscribe"}
_PATHS = {"pml", "mtl", "btl", "osc"}  # parameters of Open MPI that say by which way messages go
_FILES = "OMPI_MCA_mca_base_param_files"


def option_length(word):
    """How many words an option of mpirun takes, itself included."""
    option = "-" + word.lstrip("-")
    return 3 if option in _TWO_VALUES else 2 if option in _ONE_VALUE else 1


class _Request:
    """The decisions that the user's own mpirun options already make."""

    def __init__(self, words):
        self.count, self.options, self.parameters = None, set(), set()
        position = 0
        while position < len(words) and words[position].startswith("-"):
            option = "-" + words[position].lstrip("-")
            values = words[position + 1:position + 3]
            if option in _COUNT and values and values[0].isdigit():
                self.count = int(values[0])
            if option in _TWO_VALUES and values:
                self.parameters.add(values[0])
            self.options.add(option)
            position += option_length(words[position])
        self.has_program = position < len(words)

    def decides(self, options):
        return bool(self.options & options)


# All slots are taken by the ranks if nobody chose their number: processes that these spawn share them.
_SPAWN = {"orte": ["--mca", "rmaps_base_oversubscribe", "1"], "prrte": ["--prtemca", "rmaps_default_mapping_policy", ":OVERSUBSCRIBE"]}


@dataclasses.dataclass(frozen=True)
class Launcher:
    """One installed mpirun."""

    kind: str  # orte, prrte, mpich, intel
    program: str
    environment: dict  # variables that its programs need besides the caller's; None removes one

    def collectives(self):
        """The settings that load libcluster-coll into the ranks: each build of it is for one ABI."""
        name = f"libcluster-coll-{'mpich' if self.kind in ('mpich', 'intel') else 'openmpi'}.so"
        here = os.path.dirname(os.path.realpath(__file__))
        places = [os.path.join(path, "..", "..", "coll") for path in os.environ.get("FI_PROVIDER_PATH", "").split(":") if path]
        places += [os.path.join(here, "..", "..", "build", "release", "coll"), *glob.glob("/usr/lib/*/libfabric-cluster")]
        for place in places:
            library = os.path.realpath(os.path.join(place, name))
            if os.path.exists(library):
                return {"LD_PRELOAD": ":".join(filter(None, [os.environ.get("LD_PRELOAD"), library]))}
        raise VclusterError(f"--coll: there is no {name}: build it (\"ninja -C build/release\"), or install the package")

    def parameters(self, words):
        """For Open MPI and a user who has asked for the provider, but for no way of Open MPI: the file of parameters that selects it,
        behind the user's own file, which so takes precedence."""
        if self.kind not in ("orte", "prrte") or os.environ.get("FI_PROVIDER") != "cluster" or _Request(words).parameters & _PATHS or \
                any(name in os.environ for name in (_FILES, *(f"OMPI_MCA_{path}" for path in _PATHS))):
            return {}
        here = os.path.dirname(os.path.realpath(__file__))
        ours = os.path.join(os.path.dirname(here), "openmpi", f"openmpi{4 if self.kind == 'orte' else 5}.conf")
        return {_FILES: ",".join([os.path.expanduser("~/.openmpi/mca-params.conf"), ours])}

    def command(self, record, words, slots, chosen):
        """The complete command line, to run in the first node."""
        request, spread = _Request(words), slots is None
        nodes = chosen or record["nodes"]
        ranks = request.count or len(nodes) * (slots or 1)
        slots = slots or -(-ranks // len(nodes))
        labels = [node["label"] for node in nodes]
        family = _hydra if self.kind in ("mpich", "intel") else _open_mpi
        line = [self.program, *family(self.kind, state.directory(record["name"]), request, labels, slots, ranks)]
        if spread and self.kind in _SPAWN and not request.decides(_PLACE | _OVERSUBSCRIBE):
            line += _SPAWN[self.kind]
        if request.count is None and request.has_program and not request.decides(_PLACE):
            line += ["-n", str(ranks)]
        return line + words


def _open_mpi(kind, base, request, labels, slots, ranks):
    agent, temporary = os.path.join(base, "agent"), os.path.join(base, "tmp")
    if kind == "orte":
        line = ["--mca", "plm_rsh_agent", agent, "--mca", "orte_tmpdir_base", temporary]
    else:
        line = ["--prtemca", "plm_ssh_agent", agent, "--prtemca", "prte_tmpdir_base", temporary]
    if os.geteuid() == 0:
        line.append("--allow-run-as-root")
    if not request.decides(_PLACE):
        line += ["--host", ",".join(f"{label}:{slots}" for label in labels)]
    if not request.decides(_BIND):
        # Every node believes that it owns all cores. With binding, the first rank of each node would share core 0.
        line += ["--bind-to", "none"]
    if ranks > len(os.sched_getaffinity(0)) and "mpi_yield_when_idle" not in request.parameters:
        line += ["--mca", "mpi_yield_when_idle", "1"]
    return line


def _hydra(kind, base, request, labels, slots, ranks):
    word = "bootstrap" if kind == "intel" else "launcher"
    line = [f"-{word}", "ssh", f"-{word}-exec", os.path.join(base, "agent")]
    if kind == "intel":
        # mpirun passes none of its own variables to the ranks. They get those of the agent: the same except for the
        # node's name.
        line.append("-genvnone")
        if ranks > len(os.sched_getaffinity(0)) and "I_MPI_THREAD_YIELD" not in os.environ:
            line += ["-genv", "I_MPI_THREAD_YIELD", "2"]  # waiting ranks yield the processor
    if not request.decides(_PLACE):
        line += ["-hosts", ",".join(labels)]
        if not request.decides(_PER_NODE):
            line += ["-ppn", str(slots)]
    return line


def _recognise(program, environment):
    """Recognises a launcher by its version text."""
    try:
        said = subprocess.run([program, "--version"], capture_output=True, text=True, check=False, timeout=60,
                              env={**os.environ, **environment}).stdout
    except (OSError, subprocess.TimeoutExpired) as error:
        raise VclusterError(f"{program}: cannot be asked for its version: {error}") from error
    open_mpi = re.search(r"\((?:Open MPI|OpenRTE)\) (\d+)", said)
    if open_mpi:
        return "orte" if int(open_mpi.group(1)) < 5 else "prrte"
    if "Intel(R) MPI Library" in said:
        return "intel"
    if "HYDRA" in said:
        return "mpich"
    raise VclusterError(f"{program} is no mpirun of Open MPI, MPICH or Intel MPI")


def _surroundings(prefix):
    """The variables for programs of an installation outside the system's directories."""
    before = {name: os.environ.get(name) for name in ("PATH", "LD_LIBRARY_PATH")}
    return {"PATH": ":".join(filter(None, [os.path.join(prefix, "bin"), before["PATH"]])),
            "LD_LIBRARY_PATH": ":".join(filter(None, [os.path.join(prefix, "lib"), before["LD_LIBRARY_PATH"]]))}


def find(wish=None):
    """The launcher the user means: the prefix of an installation, a path, a name as in mpirun.NAME, or what PATH has."""
    environment = {}
    prefix = os.path.abspath(wish) if wish and os.sep in wish and os.path.isdir(wish) else None
    if prefix:
        environment = _surroundings(prefix)
        program = os.path.join(prefix, "bin", "mpirun")
    elif wish and os.sep in wish:
        program = os.path.abspath(wish)
    else:
        program = (shutil.which(f"mpirun.{wish}") or shutil.which(wish)) if wish else shutil.which("mpirun")
    if not program or not os.path.exists(program):
        raise VclusterError(f"--mpi {wish}: no mpirun there" if wish else
                            'mpirun is not installed (Debian: "apt install openmpi-bin")')
    hydra = os.path.join(os.path.dirname(os.path.realpath(program)), "mpiexec.hydra")
    if os.path.exists(hydra):  # Intel's mpirun is a script that asks for batch systems first
        program = hydra
    kind = _recognise(program, environment)
    if kind == "intel":
        # Every node believes that it owns all cores. With pinning, the first rank of each node would share core 0.
        environment["I_MPI_PIN"] = os.environ.get("I_MPI_PIN", "off")
        if prefix:
            environment["I_MPI_ROOT"] = prefix
    if kind == "mpich":
        # Its mpirun would pass the first node's name to the ranks of all others; with no variable at all it cannot
        # spawn.
        environment["VCLUSTER_NODE"] = None
    return Launcher(kind, program, environment)
