"""The page (cluster-page) of a cluster: a process in its first node whose socket listens outside the nodes.

A socket stays in the network namespace where it was made. So a browser on this machine reaches the page on the loopback
interface, and the page reaches the agent of its node.
"""
import os
import signal
import socket
import subprocess
import sys

from cluster_lib import build
from cluster_page_lib import assets

from . import namespaces, processes, state
from .errors import VclusterError

_PORTS = range(8443, 8543)
_READY_SECONDS = 60
_UTIL = os.path.dirname(os.path.dirname(os.path.realpath(__file__)))
_MODULES = "starlette, uvicorn, jinja2, pam, websockets"
_SYSTEM_PYTHON = "/usr/bin/python3"


def ensure():
    """Provides what the page needs before the cluster is made; returns the reason if there can be no page."""
    words = [_SYSTEM_PYTHON, "-c", f"import {_MODULES}"]
    try:
        if subprocess.run(words, stderr=subprocess.DEVNULL, check=False).returncode != 0:
            build.packages("page")
        lacks = assets.ensure()
    except build.BuildError as error:
        return str(error)
    if lacks:
        print(f"vcluster: warning: {lacks}", file=sys.stderr)
    return ""


def _listener():
    for port in _PORTS:
        opened = socket.socket(socket.AF_INET, socket.SOCK_STREAM)
        opened.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            opened.bind(("127.0.0.1", port))
            opened.listen(128)
            return opened
        except OSError:
            opened.close()
    raise VclusterError(f"no port from {_PORTS[0]} to {_PORTS[-1]} of 127.0.0.1 is free for the page")


def _readable_tree(record):
    """The directory util at a path that every user's jobs can read. The source tree may be in a private directory, so
    the nodes also mount it read-only under the cluster's own directory."""
    if build.installed:
        return _UTIL
    place = os.path.join(state.directory(record["name"]), "tree")
    if not os.path.isdir(place):
        os.mkdir(place, 0o755)
        for holder in record["nodes"]:
            namespaces.run_in(holder, ["mount", "--bind", "-o", "ro", build.TOP, place])
    return os.path.join(place, "util")


def start(record, options=()):
    """Starts the page and waits until it listens; the record has its address."""
    holder = record["nodes"][0]
    util = _readable_tree(record)
    directory = os.path.join(state.directory(record["name"]), "page")
    os.makedirs(directory, mode=0o711, exist_ok=True)
    log = os.path.join(directory, "log")
    opened = _listener()
    words = [_SYSTEM_PYTHON, "-B", os.path.join(util, "cluster-page"), "--state", directory, "--listen-fd", str(opened.fileno()),
             *options]
    with open(os.open(log, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600), "w", encoding="utf-8") as errors:
        process = subprocess.Popen(words, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=errors,
                                   env=state.environment(record, holder), start_new_session=True,
                                   pass_fds=[opened.fileno()], preexec_fn=lambda: namespaces.enter(holder))
    port = opened.getsockname()[1]
    opened.close()
    if not processes.await_line(process.stdout, b"https:", _READY_SECONDS):
        process.kill()
        with open(log, encoding="utf-8", errors="replace") as file:
            lines = file.read().strip().splitlines()
        raise VclusterError(f"the page does not start: {lines[-1] if lines else 'no answer'} ({log})")
    record["page"] = {"pid": process.pid, "start": processes.start_time(process.pid), "address": f"https://127.0.0.1:{port}/"}
    state.save(record)


def is_running(record):
    entry = record.get("page")
    return bool(entry) and processes.start_time(entry["pid"]) == entry["start"] and not processes.is_zombie(entry["pid"])


def stop(record):
    if is_running(record):
        handle = os.pidfd_open(record["page"]["pid"])
        signal.pidfd_send_signal(handle, signal.SIGTERM)
        processes.wait_all([handle], 10)
        os.close(handle)


def describe(record):
    if is_running(record):
        return f"page: {record['page']['address']}"
    return "page: not running"
