"""libfabric's own fi_pingpong, small to large, every byte checked, under losses, reordering, duplicates and damage."""
import subprocess
import sys
import time

import faulty_network

CONTROL_PORT = 47592  # fi_pingpong's own TCP connection
SECONDS_MAX = 60
COMMAND = ["fi_pingpong", "-e", "rdm", "-p", "cluster", "-c"]
ROUNDS = {64: 200, 20_000: 50, 1_048_576: 5}  # of messages of one packet, of several, and large ones


def listens(network):
    """True if somebody on node1 accepts connections on the control port."""
    table = subprocess.run([*network.executing, "node1", "cat", "/proc/net/tcp"], capture_output=True, text=True,
                           check=True).stdout
    return any(line.split()[1].endswith(f":{CONTROL_PORT:04X}") and line.split()[3] == "0A"
               for line in table.splitlines()[1:])


def pingpong(network, environment, size):
    """Messages of one size; returns the reason why it failed, or None."""
    pipes = {"stdout": subprocess.PIPE, "stderr": subprocess.STDOUT, "text": True, "env": environment}
    command = [*COMMAND, "-S", str(size), "-I", str(ROUNDS[size])]
    server = subprocess.Popen([*network.executing, "node1", *command], **pipes)
    client = None
    try:
        deadline = time.monotonic() + 30
        while not listens(network):
            if server.poll() is not None or time.monotonic() > deadline:
                return "the server did not come up"
        client = subprocess.Popen([*network.executing, "node2", *command, network.address(1)], **pipes)
        output, _ = client.communicate(timeout=SECONDS_MAX)
        server_output, _ = server.communicate(timeout=20)
    except subprocess.TimeoutExpired:
        return "no end in time"
    finally:
        for child in (client, server):
            if child is not None and child.poll() is None:
                child.kill()
                child.wait()
    print(output)
    if client.returncode != 0 or server.returncode != 0:
        return f"exit codes {client.returncode} and {server.returncode}: {output}{server_output}"
    return None


def every_size(network, environment):
    return next(filter(None, (pingpong(network, environment, size) for size in ROUNDS)), None)


def main():
    options = faulty_network.parser(__doc__).parse_args()
    faulty_network.prepare("fi_pingpong")
    network = faulty_network.Network(2)
    return faulty_network.under_each_loss(network, lambda: every_size(network, faulty_network.environment(options)))


if __name__ == "__main__":
    sys.exit(main())
