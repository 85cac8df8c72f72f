"""First contact at scale: the endpoints of a job on two virtual nodes send each other a message, all at once.

    first_contact.py --build BUILD --program first_contact [--each N]

Each process may have 1024 descriptors, as most systems have it. Nothing may fail. A peer on the same node takes one
descriptor. A peer on the other node takes at most one, while the endpoint asks its kernel whether it lives. Nor may
endpoints waste processor time by retransmitting what others had no time to read: four frames for each peer on the other
node are enough, and a crowd may take FRAMES_MAX.
"""
import argparse
import collections
import os
import re
import socket
import sys
import tempfile
import time

from life_process import virtual_nodes

import subprocess  # noqa: E402

LOCAL_MAX, REMOTE_MAX, OWN_MAX = 1, 1, 60
FRAMES_MAX = 40


def shown(name):
    """ADDRESS:PORT, as warnings call it, of the sockaddr_in that an endpoint says in hexadecimal."""
    address = bytes.fromhex(name)
    return f"{socket.inet_ntoa(address[4:8])}:{int.from_bytes(address[2:4], 'big')}"


def chain(written, names):
    """The endpoint that failed first, the peer that it blames, the peer that this one blames, and so on."""
    i = next(iter(written), None)
    seen = []
    while i in written and i not in seen:
        seen.append(i)
        blamed = re.findall(r"first_contact: .*: (\S+)$", written[i], re.MULTILINE)
        i = names.index(blamed[-1]) if blamed and blamed[-1] in names else None
    return seen


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--build", required=True)
    parser.add_argument("--program", required=True)
    parser.add_argument("--each", type=int, default=192, help="endpoints on each node (default: %(default)s)")
    options = parser.parse_args()
    virtual_nodes.require("prlimit")
    cluster = virtual_nodes.make(2, suffix="-contact")
    environment = virtual_nodes.of_provider(os.path.join(os.path.abspath(options.build), "prov", "cluster"), FI_LOG_LEVEL="warn")
    program = os.path.abspath(options.program)
    # Into files: this program reads no pipe while it waits for the endpoints, and an endpoint that warns would stop at a full one.
    logs = [tempfile.TemporaryFile("w+") for _ in range(2 * options.each)]
    processes = [virtual_nodes.start([*cluster.command(1 + i // options.each), "prlimit", "--nofile=1024:1024", program], environment,
                                     text=True, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=log) for i, log in enumerate(logs)]
    try:
        names = [process.stdout.readline() for process in processes]
        began = time.monotonic()
        for process, own in zip(processes, names):
            process.stdin.write("".join(name for name in names if name != own) + "\n")
            process.stdin.flush()
        said = [process.stdout.readline().split() for process in processes]
        seconds = time.monotonic() - began
        failed = [i for i, line in enumerate(said) if not line or line[0] != "done"]
        failed.sort(key=lambda i: os.fstat(logs[i].fileno()).st_mtime_ns)
        for i in failed:
            logs[i].seek(0)
        written = {i: logs[i].read() for i in failed}
        words = [([""] + written[i].splitlines())[-1] for i in failed]
        for i in chain(written, [shown(name) for name in names]):
            print(f"{shown(names[i])}, one of the first:\n{written[i]}")
        for cause, count in collections.Counter(words).most_common(10):
            print(f"{count} times: {cause}")
        if failed:
            sys.exit(f"{len(failed)} of {len(processes)} endpoints failed")
        most = max(int(words[1]) for words in said)
        frames = sum(int(words[2]) for words in said) / (len(processes) * options.each)
        print(f"{len(processes)} endpoints, {len(processes) * (len(processes) - 1)} messages in {seconds:.1f} s; "
              f"at most {most} descriptors, {frames:.1f} frames to each peer of the other node")
        sys.exit(most > (LOCAL_MAX + REMOTE_MAX) * options.each + OWN_MAX or frames > FRAMES_MAX)
    finally:
        for process in processes:
            process.stdin.close()
        for process in processes:
            process.wait()


main()
