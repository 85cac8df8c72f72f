"""Accounts that exist only in the nodes of one cluster, to log in to its page: one for each role, one password for all.

vcluster copies /etc/passwd, group and shadow, adds the accounts, and mounts the copies over the originals, in the nodes
only. Accounts of the machine keep their passwords.
"""
import os
import secrets
import shutil
import subprocess

from . import namespaces, state
from .errors import VclusterError

_FILES = ("passwd", "group", "shadow")
_FIRST_NUMBER = 64100
# account -> groups besides its own; if the machine has an account of that name, it stays unchanged
ACCOUNTS = {"look": (), "submit": ("cluster-submit",), "operate": ("cluster-submit", "cluster-operate")}


def directory(record):
    return os.path.join(state.directory(record["name"]), "accounts")


def _hashed(password):
    return subprocess.run(["openssl", "passwd", "-6", "-stdin"], input=password, text=True, capture_output=True,
                          check=True).stdout.strip()


def _names(path):
    with open(path, encoding="utf-8") as file:
        return {line.partition(":")[0] for line in file}


def make(record):
    """Adds the accounts to every node; returns the password and keeps it in a file that belongs to root."""
    base = directory(record)
    os.makedirs(base, mode=0o755)
    for name in _FILES:
        shutil.copy2(f"/etc/{name}", os.path.join(base, name))
        shutil.chown(os.path.join(base, name), 0, os.stat(f"/etc/{name}").st_gid)
    taken = set(ACCOUNTS) & _names("/etc/passwd")
    if taken:
        raise VclusterError(f"this machine has an account '{min(taken)}' already, which the page's own would hide: use --no-page")
    password = secrets.token_urlsafe(9)
    hashed = _hashed(password)
    lines = {name: [] for name in _FILES}
    for number, account in enumerate(ACCOUNTS, _FIRST_NUMBER):
        home = os.path.join(base, "home-" + account)
        os.mkdir(home, 0o700)
        os.chown(home, number, number)
        lines["passwd"].append(f"{account}:x:{number}:{number}:of virtual nodes:{home}:/bin/sh")
        lines["group"].append(f"{account}:x:{number}:")
        lines["shadow"].append(f"{account}:{hashed}:20000:0:99999:7:::")
    for number, group in enumerate(("cluster-submit", "cluster-operate"), _FIRST_NUMBER + len(ACCOUNTS)):
        if group not in _names("/etc/group"):
            lines["group"].append(f"{group}:x:{number}:" + ",".join(name for name, groups in ACCOUNTS.items() if group in groups))
    for name, added in lines.items():
        with open(os.path.join(base, name), "a", encoding="utf-8") as file:
            file.write("\n".join(added) + "\n")
    for holder in record["nodes"]:
        for name in _FILES:
            namespaces.run_in(holder, ["mount", "--bind", os.path.join(base, name), f"/etc/{name}"])
    with open(os.open(os.path.join(base, "password"), os.O_WRONLY | os.O_CREAT, 0o600), "w", encoding="ascii") as file:
        file.write(password + "\n")
    return password
