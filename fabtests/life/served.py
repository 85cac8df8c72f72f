"""A server is killed and started anew on its address, and serves all its clients again, which open nothing anew.

    served.py --build BUILD --program served [--clients N] [--lives N]

Half of the clients run on the server's node, half on another one, many of them in a process.
"""
import argparse
import os
import queue
import subprocess
import sys
import tempfile
import threading
import time

from life_process import virtual_nodes

EACH = 125  # clients in a process
PORT = 20051
SECONDS_MAX = 120


def start(cluster, node, environment, log, *words):
    return virtual_nodes.start([*cluster.command(node), *words], environment, text=True, stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                               stderr=log)


def read(process, lines):
    for line in process.stdout:
        lines.put((process, line.strip()))


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--build", required=True)
    parser.add_argument("--program", required=True)
    parser.add_argument("--clients", type=int, default=1000)
    parser.add_argument("--lives", type=int, default=3)
    parser.add_argument("--down", type=float, default=0, help="seconds until the next life begins (default: %(default)s)")
    options = parser.parse_args()
    virtual_nodes.require()
    cluster = virtual_nodes.make(2, suffix="-served")
    environment = virtual_nodes.of_provider(os.path.join(os.path.abspath(options.build), "prov", "cluster"), FI_LOG_LEVEL="warn")
    program = os.path.abspath(options.program)
    log, lines = tempfile.TemporaryFile("w+"), queue.Queue()
    count = -(-options.clients // EACH)
    callers = [start(cluster, 1 + i % 2, environment, log, program, "call", str(EACH)) for i in range(count)]
    for caller in callers:
        threading.Thread(target=read, args=(caller, lines), daemon=True).start()
    server, names = None, set()
    try:
        for life in range(1, options.lives + 1):
            server = start(cluster, 2, environment, log, program, "serve", str(PORT), str(life))
            name = server.stdout.readline()
            names.add(name)
            began = time.monotonic()
            if life == 1:
                for caller in callers:
                    caller.stdin.write(name)
                    caller.stdin.flush()
            left = set(callers)
            while left:
                try:
                    caller, said = lines.get(timeout=began + SECONDS_MAX - time.monotonic())
                except (queue.Empty, ValueError):
                    log.seek(0)
                    print("".join(log.readlines()[-20:]))
                    sys.exit(f"life {life}: {len(left)} of {count} processes are not served after {SECONDS_MAX} s")
                if said == f"served {life}":
                    left.discard(caller)
            print(f"life {life}: {count * EACH} clients are served after {time.monotonic() - began:.1f} s", flush=True)
            server.kill()
            server.wait()
            time.sleep(options.down)  # no event is awaited: clients call without an answer meanwhile
        sys.exit(len(names) != 1)
    finally:
        for process in [*callers, server]:
            process.kill()
            process.wait()


main()
