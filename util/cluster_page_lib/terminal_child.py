"""The end of a terminal of the page that runs as the user: a shell on a pseudo-terminal, between stdin and stdout.

Stdin has frames: a letter, the length in two bytes, and that many bytes. `d`: what was typed. `r`: rows and columns, two
bytes each. The shell gets a hangup when stdin ends. Stdout has what the shell prints.
"""
import fcntl
import os
import pty
import select
import signal
import struct
import sys
import termios

PIECE = 1 << 14


class _Frames:
    def __init__(self):
        self._data = b""

    def add(self, data):
        """(kind, content) of each frame that is complete."""
        self._data += data
        while len(self._data) >= 3:
            length = 3 + int.from_bytes(self._data[1:3], "big")
            if len(self._data) < length:
                return
            kind, content, self._data = self._data[:1], self._data[3:length], self._data[length:]
            yield kind, content


def _write(handle, data):
    while data:
        data = data[os.write(handle, data):]


def _relay(terminal):
    frames = _Frames()
    while True:
        ready, _, _ = select.select([0, terminal], [], [])
        if terminal in ready:
            try:
                data = os.read(terminal, PIECE)
            except OSError:  # the last process has closed the terminal
                return
            if not data:
                return
            _write(1, data)
        if 0 in ready:
            data = os.read(0, PIECE)
            if not data:
                return
            for kind, content in frames.add(data):
                if kind == b"d":
                    _write(terminal, content)
                elif kind == b"r" and len(content) == 4:
                    fcntl.ioctl(terminal, termios.TIOCSWINSZ, struct.pack("HHHH", *struct.unpack("!HH", content), 0, 0))


def main():
    child, terminal = pty.fork()
    if child == 0:
        shell = os.environ.get("SHELL") or "/bin/sh"
        try:
            os.execv(shell, [shell])
        except OSError as error:
            print(f"{shell}: {error.strerror}")
            os._exit(127)
    try:
        _relay(terminal)
    except BrokenPipeError:
        pass  # the page is gone
    os.close(terminal)
    os.kill(child, signal.SIGHUP)
    return 0


if __name__ == "__main__":
    sys.exit(main())
