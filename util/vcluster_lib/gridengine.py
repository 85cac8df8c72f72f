"""Grid Engine in the nodes of a cluster: sge_qmaster in the first, sge_execd in each, with Debian's default configuration.

The nodes mount their own cell and spool directories over the machine's, so qsub and the other commands find their node's
Grid Engine. A queue gives out whole nodes: one slot each, in the parallel environment `cluster`.
"""
import os
import re
import shutil
import subprocess
import time

from cluster_lib import build

from . import namespaces, state
from .errors import VclusterError

_PROGRAMS = ("sge_qmaster", "sge_execd", "qsub")
_ROOT, _SPOOL, _USER = "/var/lib/gridengine", "/var/spool/gridengine", "sgeadmin"
_READY_SECONDS = 60
_ENVIRONMENT = {"SGE_ROOT": _ROOT, "SGE_CELL": "default", "SGE_ND": "1"}
_PARALLEL = """\
pe_name            cluster
slots              9999
user_lists         NONE
xuser_lists        NONE
start_proc_args    NONE
stop_proc_args     NONE
allocation_rule    1
control_slaves     TRUE
job_is_first_task  FALSE
urgency_slots      min
accounting_summary TRUE
qsort_args         NONE
"""
_QUEUE = {"qname": "all.q", "hostlist": "@allhosts", "seq_no": "0", "nsuspend": "1", "suspend_interval": "00:05:00", "priority": "0",
          "min_cpu_interval": "00:05:00", "processors": "UNDEFINED", "qtype": "BATCH INTERACTIVE", "pe_list": "cluster", "rerun": "FALSE",
          "slots": "1", "tmpdir": "/tmp", "shell": "/bin/sh", "shell_start_mode": "posix_compliant", "notify": "00:00:60",
          "initial_state": "default"}
_NONE = ("load_thresholds suspend_thresholds ckpt_list prolog epilog starter_method suspend_method resume_method terminate_method owner_list "
         "user_lists xuser_lists subordinate_list complex_values projects xprojects calendar").split()
_LIMITS = [f"{kind}_{what}" for what in ("rt", "cpu", "fsize", "data", "stack", "core", "rss", "vmem") for kind in "sh"]


def ensure():
    """Installs the packages, before the cluster is made."""
    if any(shutil.which(program) is None for program in _PROGRAMS):
        build.packages("gridengine")


def _environment(record, holder):
    return {**state.environment(record, holder), **_ENVIRONMENT}


def _run(record, holder, *words):
    result = subprocess.run(words, env=_environment(record, holder), preexec_fn=lambda: namespaces.enter(holder), stdin=subprocess.DEVNULL,
                            capture_output=True, text=True, check=False)
    if result.returncode:
        raise VclusterError(f"{holder['label']}: {' '.join(words[:2])}: {(result.stderr or result.stdout).strip()[-200:]}")
    return result.stdout


def _spawn(record, holder, log, *words):
    with open(os.open(log, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600), "w", encoding="utf-8") as output:
        subprocess.Popen(words, stdin=subprocess.DEVNULL, stdout=output, stderr=subprocess.STDOUT, start_new_session=True,
                         env=_environment(record, holder), preexec_fn=lambda: namespaces.enter(holder))


def _directory(*parts):
    path = os.path.join(*parts)
    os.makedirs(path, mode=0o755, exist_ok=True)
    shutil.chown(path, _USER, _USER)
    return path


def _prepare(record, base):
    common = _directory(_directory(base, "cell"), "common")
    shutil.copy(os.path.join(_ROOT, "default", "common", "bootstrap"), common)
    with open(os.path.join(common, "act_qmaster"), "w", encoding="ascii") as file:
        file.write(record["nodes"][0]["label"] + "\n")
    shutil.chown(file.name, _USER, _USER)
    for holder in record["nodes"]:
        spool = _directory(_directory(base, holder["label"]), "spool")
        for part in (("execd",), ("qmaster",), ("qmaster", "job_scripts"), ("spooldb",)):
            _directory(spool, *part)
        for place, over in ((os.path.join(base, "cell"), os.path.join(_ROOT, "default")), (spool, _SPOOL)):
            namespaces.run_in(holder, ["mount", "--bind", place, over])


def _until(condition, what, log):
    deadline = time.monotonic() + _READY_SECONDS
    while not condition():
        if time.monotonic() > deadline:
            raise VclusterError(f"{what} does not start ({log})")
        time.sleep(0.2)


def _configure(record, base):
    """Hosts, parallel environment and queue, and answers within a second."""
    first, labels = record["nodes"][0], [holder["label"] for holder in record["nodes"]]

    def with_file(option, name, text):
        path = os.path.join(base, name)
        with open(path, "w", encoding="ascii") as file:
            file.write(text)
        _run(record, first, "qconf", option, path)

    def changed(shown, **values):
        text = _run(record, first, "qconf", shown)
        for key, value in values.items():
            text = re.sub(rf"^{key}\s.*$", f"{key} {value}", text, flags=re.MULTILINE)
        return text

    for label in labels:
        _run(record, first, "qconf", "-ah", label)
        _run(record, first, "qconf", "-as", label)
    with_file("-Msconf", "scheduler", changed("-ssconf", schedule_interval="0:0:1", flush_submit_sec="1", flush_finish_sec="1"))
    with_file("-Mconf", "global", changed("-sconf", reporting_params="accounting=true reporting=false flush_time=00:00:01 joblog=false "
                                                                   "sharelog=00:00:00", load_report_time="00:00:02"))
    with_file("-Ap", "parallel", _PARALLEL)


def _queue(record, base):
    first, labels = record["nodes"][0], [holder["label"] for holder in record["nodes"]]
    values = {**_QUEUE, **dict.fromkeys(_NONE, "NONE"), **dict.fromkeys(_LIMITS, "INFINITY")}
    for option, name, text in (("-Ahgrp", "hosts", f"group_name @allhosts\nhostlist {' '.join(labels)}\n"),
                               ("-Aq", "queue", "".join(f"{key} {value}\n" for key, value in values.items()))):
        with open(os.path.join(base, name), "w", encoding="ascii") as file:
            file.write(text)
        _run(record, first, "qconf", option, os.path.join(base, name))


def start(record):
    """Returns when every node can take jobs."""
    base = os.path.join(state.directory(record["name"]), "gridengine")
    os.makedirs(base, mode=0o755)
    _prepare(record, base)
    first, spool = record["nodes"][0], os.path.join(base, record["nodes"][0]["label"], "spool")
    _run(record, first, "setpriv", f"--reuid={_USER}", f"--regid={_USER}", "--clear-groups",
         "/usr/share/gridengine/scripts/init_cluster", _ROOT, "default", os.path.join(_SPOOL, "spooldb"), _USER)
    _spawn(record, first, os.path.join(base, "qmaster.out"), "sge_qmaster")

    def answers():
        try:
            return bool(_run(record, first, "qconf", "-sconf"))
        except VclusterError:
            return False

    _until(answers, "sge_qmaster", f"{spool}/qmaster/messages")
    _configure(record, base)
    for holder in record["nodes"]:
        _spawn(record, holder, os.path.join(base, holder["label"], "execd.out"), "sge_execd")

    def all_there():
        rows = [line.split() for line in _run(record, first, "qhost").splitlines()]
        return sum(row[0] in {holder["label"] for holder in record["nodes"]} and row[3:4] != ["-"] and row[1] != "-" for row in rows if row) \
            == len(record["nodes"])

    _until(all_there, "sge_execd", f"{base}/NODE/execd.out")
    _queue(record, base)
