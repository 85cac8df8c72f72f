"""Files whose bytes are known by their names, and a load of metadata.

    files.py write DIRECTORY COUNT BYTES   prints the longest time that one file took, in seconds
    files.py check DIRECTORY               compares every file that `write` has made; prints how many there are
    files.py metadata DIRECTORY COUNT      creates, looks up and removes empty files; prints how many each took in a second
"""
import hashlib
import os
import pathlib
import random
import sys
import time


def content(name, length):
    return random.Random(name).randbytes(length)


def write(directory, count, length):
    longest = 0.0
    for number in range(int(count)):
        begun = time.monotonic()
        name = f"file{number}"
        with open(os.path.join(directory, name), "wb") as file:
            file.write(content(name, int(length)))
            file.flush()
            os.fsync(file.fileno())
        longest = max(longest, time.monotonic() - begun)
    print(f"{longest:.3f}")


def check(directory):
    found = sorted(pathlib.Path(directory).glob("file*"))
    for path in found:
        data = path.read_bytes()
        if not data or hashlib.sha256(data).digest() != hashlib.sha256(content(path.name, len(data))).digest():
            sys.exit(f"{path} is wrong")
    print(len(found))


def metadata(directory, count):
    names, rates = [os.path.join(directory, f"empty{number}") for number in range(int(count))], []
    for work in (lambda name: open(name, "x", encoding="ascii").close(), os.stat, os.unlink):
        begun = time.monotonic()
        for name in names:
            work(name)
        rates.append(len(names) / (time.monotonic() - begun))
    if os.listdir(directory):
        sys.exit("files remain")
    print(*(f"{rate:.0f}" for rate in rates))


if __name__ == "__main__":
    {"write": write, "check": check, "metadata": metadata}[sys.argv[1]](*sys.argv[2:])
