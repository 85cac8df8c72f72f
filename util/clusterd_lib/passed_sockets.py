"""Sockets that systemd has opened for this process, before any user could take their names (sd_listen_fds(3))."""
import os
import socket

_FIRST = 3


class Passed:
    """`local`: on the name for users of this node; `questions`: on the TCP port; `port_holder`: on the UDP port of every
    address, which keeps it for the agent and receives nothing. Each is None if systemd has not passed it."""

    def __init__(self, local_name, port):
        self.local = self.questions = self.port_holder = None
        count = int(os.environ.pop("LISTEN_FDS", "0")) if os.environ.pop("LISTEN_PID", "") == str(os.getpid()) else 0
        for descriptor in range(_FIRST, _FIRST + count):
            opened = socket.socket(fileno=descriptor)
            opened.set_inheritable(False)
            if opened.family == socket.AF_UNIX and opened.getsockname() == local_name.encode():
                self.local = opened
            elif opened.family == socket.AF_INET and opened.getsockname()[1] == port:
                if opened.type == socket.SOCK_STREAM:
                    self.questions = opened
                else:
                    # systemd sets this always. With it any user could share the port.
                    opened.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 0)
                    self.port_holder = opened
