#!/usr/bin/env python3
"""Errors of a program that uses mailboxes end it, and say what was wrong.

usage: mailbox_errors_test.py PATH-OF-mailbox_rules
"""
import subprocess
import sys

HERE = ("0", "1", "127.0.0.1:20190")  # one process alone
# fourth argument of the program -> what it says
ERRORS = {
    "name": "taken: Address already in use",
    "type": "message_unpack: the next item has another type or count",
    "count": "message_unpack: the next item has another type or count",
    "long": "message_pack: more than a message holds",
}


def main(program):
    failed = 0
    for error, text in ERRORS.items():
        result = subprocess.run([program, *HERE, error], capture_output=True, text=True, check=False, timeout=30)
        right = result.returncode == 1 and text in result.stderr
        print(f"{error}: " + ("ends the program" if right else f"FAILED: exit status {result.returncode}, {result.stderr!r}"))
        failed += not right
    return int(failed > 0)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1]))
