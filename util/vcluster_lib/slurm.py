"""Slurm in the nodes of a cluster: munged and slurmd in each, slurmctld in the first, all with one configuration.

The nodes mount their own /etc/slurm and /run/munge over the machine's, so sbatch and the other commands find their
node's Slurm. Jobs get whole nodes. If asked for, slurmrestd runs in the first node, as nobody. A node's state is in /run/vcluster/NAME/slurm/NODE.
"""
import glob
import os
import secrets
import shutil
import subprocess
import time

from cluster_lib import build

from . import namespaces, state
from .errors import VclusterError

_PROGRAMS = ("slurmctld", "slurmd", "munged", "sbatch")
_NOBODY = 65534
_PROCESSORS = 64  # per node; the ranks of a job share the real processors
_READY_SECONDS = 60
_CONFIGURATION = """\
ClusterName={name}
SlurmctldHost={first}
SlurmUser=root
AuthType=auth/munge
StateSaveLocation={base}/state
SlurmdSpoolDir={base}/%n/spool
SlurmctldPidFile={base}/slurmctld.pid
SlurmdPidFile={base}/%n/slurmd.pid
SlurmctldLogFile={base}/slurmctld.log
SlurmdLogFile={base}/%n/slurmd.log
ProctrackType=proctrack/linuxproc
TaskPlugin=task/none
JobAcctGatherType=jobacct_gather/none
SelectType=select/linear
SlurmdParameters=config_overrides
ReturnToService=2
SlurmdTimeout=15
KillWait=5
MpiDefault=none
NodeName={nodes} CPUs={processors} State=UNKNOWN
PartitionName=all Nodes=ALL Default=YES MaxTime=INFINITE State=UP
"""


def ensure(rest=False):
    """Installs the packages, before the cluster is made."""
    if any(shutil.which(program) is None for program in _PROGRAMS):
        build.packages("slurm")
    if rest and not (shutil.which("slurmrestd") and glob.glob("/usr/lib/*/slurm*/auth_jwt.so")):
        build.packages("slurmrest")


def _spawn(record, holder, log, *words):
    with open(os.open(log, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600), "w", encoding="utf-8") as output:
        return subprocess.Popen(words, stdin=subprocess.DEVNULL, stdout=output, stderr=subprocess.STDOUT, start_new_session=True,
                                env=state.environment(record, holder), preexec_fn=lambda: namespaces.enter(holder))


def _prepare(record, base, rest):
    os.makedirs(os.path.join(base, "etc"), mode=0o755)
    os.makedirs(os.path.join(base, "state"), mode=0o700)
    labels = [holder["label"] for holder in record["nodes"]]
    with open(os.path.join(base, "etc", "slurm.conf"), "w", encoding="utf-8") as file:
        file.write(_CONFIGURATION.format(name=record["name"], first=labels[0], nodes=",".join(labels), base=base,
                                         processors=_PROCESSORS))
        if rest:
            file.write(f"AuthAltTypes=auth/jwt\nAuthAltParameters=jwt_key={base}/jwt.key\n")
    with open(os.open(os.path.join(base, "jwt.key"), os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "wb") as file:
        file.write(secrets.token_bytes(32))
    with open(os.path.join(base, "etc", "cgroup.conf"), "w", encoding="utf-8") as file:
        file.write("CgroupPlugin=cgroup/v1\n")  # needs no mounted cgroup hierarchy: nodes have none
    with open(os.open(os.path.join(base, "munge.key"), os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o400), "wb") as file:
        file.write(secrets.token_bytes(128))
    for place in ("/etc/slurm", "/run/munge"):
        os.makedirs(place, mode=0o755, exist_ok=True)
    for label in labels:
        os.makedirs(os.path.join(base, label, "munge"), mode=0o755)
        os.makedirs(os.path.join(base, label, "spool"), mode=0o755)


def _start_node(record, holder, base):
    own = os.path.join(base, holder["label"])
    namespaces.run_in(holder, ["mount", "--bind", os.path.join(base, "etc"), "/etc/slurm"])
    namespaces.run_in(holder, ["mount", "--bind", os.path.join(own, "munge"), "/run/munge"])
    _spawn(record, holder, os.path.join(own, "munged.out"), "munged", "--foreground", "--force",
           f"--key-file={base}/munge.key", f"--log-file={own}/munged.log", f"--pid-file={own}/munged.pid",
           f"--seed-file={own}/munged.seed", "--num-threads=2")
    _until(lambda: os.path.exists(os.path.join(own, "munge", "munge.socket.2")), f"munged of {holder['label']}", own + "/munged.log")
    _spawn(record, holder, os.path.join(own, "slurmd.out"), "slurmd", "-D")


def _until(condition, what, log):
    deadline = time.monotonic() + _READY_SECONDS
    while not condition():
        if time.monotonic() > deadline:
            raise VclusterError(f"{what} does not start ({log})")
        time.sleep(0.05)


def page_options(record):
    """With which the page talks to slurmrestd."""
    base = os.path.join(state.directory(record["name"]), "slurm")
    return ["--jobs", "slurmrest", "--slurmrestd", f"{base}/rest/socket", "--slurm-jwt-key", f"{base}/jwt.key"]


def _start_rest(record, base):
    place = os.path.join(base, "rest")
    os.mkdir(place, 0o700)
    os.chown(place, _NOBODY, _NOBODY)
    _spawn(record, record["nodes"][0], os.path.join(base, "slurmrestd.out"), "setpriv", f"--reuid={_NOBODY}", f"--regid={_NOBODY}",
           "--clear-groups", "env", "SLURM_JWT=daemon", "slurmrestd", "-a", "rest_auth/jwt", "-s", "openapi/v0.0.38", f"unix:{place}/socket")
    _until(lambda: os.path.exists(os.path.join(place, "socket")), "slurmrestd", f"{base}/slurmrestd.out")


def start(record, rest=False):
    """Returns when every node is idle."""
    base = os.path.join(state.directory(record["name"]), "slurm")
    _prepare(record, base, rest)
    first = record["nodes"][0]
    for holder in record["nodes"]:
        _start_node(record, holder, base)
    _spawn(record, first, os.path.join(base, "slurmctld.out"), "slurmctld", "-D")

    def all_idle():
        said = subprocess.run(["sinfo", "--noheader", "--states=idle", "--format=%D"], capture_output=True, text=True, check=False,
                              preexec_fn=lambda: namespaces.enter(first)).stdout.split()
        return said[:1] == [str(len(record["nodes"]))]
    _until(all_idle, "Slurm", f"{base}/slurmctld.log, {base}/NODE/slurmd.log")
    if rest:
        _start_rest(record, base)
