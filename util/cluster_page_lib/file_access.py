"""Looks at and changes files for the page, as the user whose program this is; the page starts it, and nothing here needs trust.

    file_access.py list PATH           {"where": whole path, "folders": [...], "files": [[name, bytes, time], ...],
                                       "more": N} as JSON
    file_access.py read PATH BYTES     at most so many bytes
    file_access.py write PATH BYTES    the file becomes what stdin has, if that is exactly so much
    file_access.py remove PATH
    file_access.py folder PATH         makes it
    file_access.py where PATH          its whole path

PATH is relative to the home directory.
"""
import json
import os
import sys

LISTED_MAX = 1000


def _list(path):
    folders, files, strange = [], [], 0
    for entry in sorted(os.scandir(path), key=lambda entry: entry.name):
        if entry.name.startswith("."):
            continue
        if not entry.name.isprintable():  # no page can show it, and no request can name it
            strange += 1
        elif entry.is_dir():
            folders.append(entry.name)
        elif entry.is_file():
            facts = entry.stat()
            files.append([entry.name, facts.st_size, facts.st_mtime])
    more = strange + max(0, len(folders) - LISTED_MAX) + max(0, len(files) - LISTED_MAX)
    json.dump({"where": os.path.abspath(path), "folders": folders[:LISTED_MAX], "files": files[:LISTED_MAX], "more": more}, sys.stdout)


def _where(path):
    print(os.path.abspath(path), end="")


def _read(path, most):
    with open(os.open(path, os.O_RDONLY | os.O_NONBLOCK), "rb") as file:  # a pipe without a writer would wait for ever
        sys.stdout.buffer.write(file.read(int(most)) or b"")


def _write(path, count):
    left, new = int(count), path + ".part"
    try:
        with open(new, "wb") as file:
            while piece := sys.stdin.buffer.read(1 << 16):
                left -= len(piece)
                file.write(piece[:max(0, left + len(piece))])
        if left:
            raise OSError("the file has not come completely")
        if os.path.exists(path):
            os.chmod(new, os.stat(path).st_mode & 0o777)
        elif _is_script(new):
            os.chmod(new, 0o700)
        os.replace(new, path)
    finally:
        if os.path.exists(new):
            os.remove(new)


def _is_script(path):
    with open(path, "rb") as file:
        return file.read(2) in (b"#!", b"\x7fE")  # or a program


def main(action, path, *more):
    os.chdir(os.path.expanduser("~"))
    {"list": _list, "read": _read, "write": _write, "remove": os.remove, "folder": os.mkdir, "where": _where}[action](path or ".", *more)


if __name__ == "__main__":
    try:
        main(*sys.argv[1:])
    except OSError as error:
        sys.exit(error.strerror or str(error))
