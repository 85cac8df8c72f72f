"""One run of libfabric's own fi_pingpong between two nodes of a cluster, every byte checked."""
import subprocess
import time

import virtual_nodes

CONTROL_PORT = 47592  # fi_pingpong's own TCP connection
_START_SECONDS, _END_SECONDS = 30, 20


def run(cluster, nodes, environments, arguments, seconds, provider="cluster"):
    """`nodes` and `environments` are those of the server and of the client. Returns (failure or None, client's output)."""
    command = ["fi_pingpong", "-p", provider, "-c", *arguments]
    pipes = {"stdout": subprocess.PIPE, "stderr": subprocess.STDOUT, "text": True}
    server = virtual_nodes.start(cluster.command(nodes[0], *command), environments[0], **pipes)
    children = [server]
    try:
        deadline = time.monotonic() + _START_SECONDS
        while not cluster.listens(nodes[0], CONTROL_PORT):
            if server.poll() is not None or time.monotonic() > deadline:
                return "the server does not listen:\n" + _end(server), ""
            time.sleep(0.01)
        client = virtual_nodes.start(cluster.command(nodes[1], *command, cluster.address(nodes[0])), environments[1], **pipes)
        children.append(client)
        output, _ = client.communicate(timeout=seconds)
        server_output, _ = server.communicate(timeout=_END_SECONDS)
    except subprocess.TimeoutExpired:
        return "no end in time\n" + "".join(f"--- {child.args[-1]}\n{_end(child)}" for child in children), ""
    finally:
        for child in children:
            _end(child)
    if client.returncode != 0 or server.returncode != 0:
        return f"exit status {client.returncode} and {server.returncode}\n--- client\n{output}--- server\n{server_output}", output
    return None, output


def _end(child):
    if child.poll() is not None:
        return ""
    child.kill()
    return child.communicate()[0] or ""
