"""The command line that runs a program on chosen nodes, for each launcher, and the environment that it needs.

The agents start the launcher's daemons in place of ssh (cluster-remote); srun has its own.
"""
import os
import shutil
from types import SimpleNamespace

from cluster_page_lib.jobs import surroundings
from clusterd_lib.errors import AgentError
from vcluster_lib import launchers
from vcluster_lib.errors import VclusterError

_HERE = os.path.dirname(os.path.realpath(__file__))
_AS_RANK = os.path.join(_HERE, "as_rank.sh")
_REMOTE = os.path.join(os.path.dirname(_HERE), "cluster-remote")
_PORTS = range(20000, 30000)
_OF_USER = ("FI_", "OMPI_", "PRTE_", "I_MPI_", "MPIR_")


def _kind(wish):
    """(kind, program) of a launcher: srun, or what vcluster recognises."""
    if wish and os.path.basename(wish) == "srun":
        found = shutil.which(wish)
        if not found:
            raise AgentError("srun is not installed on this node: name another --launcher")
        return "srun", found
    try:
        found = launchers.find(wish or None)
    except VclusterError as error:
        raise AgentError(str(error).replace("--mpi", "--launcher")) from error
    return found.kind, found.program


def _layout(nodes, ranks):
    """The node of each rank: as many ranks on one node after the other."""
    slots = -(-ranks // len(nodes))
    return slots, [nodes[rank // slots] for rank in range(ranks)]


def environment(nodes, ranks, addresses, job):
    """What the launcher and every process get, beside the environment of the caller. `addresses`: node -> address."""
    _, places = _layout(nodes, ranks)
    where = [addresses.get(node, node) for node in places]
    values = surroundings.of_provider(SimpleNamespace(provider=""))
    values.update((name, value) for name, value in os.environ.items() if name.startswith(_OF_USER))
    values.update(SIZE=str(ranks), ADDRESSES=",".join(where), FIRST=f"{where[0]}:{_PORTS[os.getpid() % len(_PORTS)]}",
                  CLUSTER_NODES=",".join(nodes), CLUSTER_RANKS=str(ranks))
    if job:
        values["CLUSTER_JOB"] = job
    return values


def command(wish, nodes, ranks, values, words):
    """(words of the launcher, environment of the launcher)"""
    kind, program = _kind(wish)
    slots, _ = _layout(nodes, ranks)
    words = [_AS_RANK, *words]
    passed_on = [name for name in values if not name.startswith("OMPI_")]
    if kind == "srun":
        return [program, f"--nodelist={','.join(nodes)}", f"--nodes={len(nodes)}", f"--ntasks={ranks}", f"--ntasks-per-node={slots}",
                "--overcommit", "--distribution=block", *words], values
    if kind in ("orte", "prrte"):
        agent = {"orte": ("OMPI_MCA_plm_rsh_agent", "OMPI_MCA_plm"), "prrte": ("PRTE_MCA_plm_ssh_agent", "PRTE_MCA_plm")}[kind]
        values = {**values, agent[0]: f"/usr/bin/python3 -B {_REMOTE}", agent[1]: {"orte": "rsh", "prrte": "ssh"}[kind],
                  "OMPI_MCA_mpi_yield_when_idle": "1"}
        options = [option for name in passed_on for option in ("-x", name)]
        root = ["--allow-run-as-root"] if os.geteuid() == 0 else []
        return [program, *root, "--host", ",".join(f"{node}:{slots}" for node in nodes), "--bind-to", "none", *options,
                "-np", str(ranks), *words], values
    word = "bootstrap" if kind == "intel" else "launcher"
    return [program, f"-{word}", "ssh", f"-{word}-exec", _REMOTE, "-hosts", ",".join(nodes), "-ppn", str(slots), "-n", str(ranks), *words], values
