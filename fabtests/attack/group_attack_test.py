"""A hostile node on the network of a multicast group writes into it. Messages still arrive intact, and no member ends.

Where the group has no key, the node forges frames only of streams that it does not know. Where it has one, the node
also replays and alters what it has heard."""
import argparse
import json
import os
import re
import subprocess
import sys
import time

_HERE = os.path.dirname(os.path.realpath(__file__))
sys.path[:0] = [os.path.join(_HERE, ".."), os.path.join(_HERE, "..", "group")]
import group_test  # noqa: E402
import virtual_nodes  # noqa: E402

_KEY = "0123456789abcdef" * 4
_FRAMES_MIN = 2000  # fewer frames are no attack


def start_attack(cluster, members, rate, blind):
    attacker = virtual_nodes.start(
        cluster.command(3, sys.executable, "-B", os.path.join(_HERE, "hostile_group.py"), "--address", cluster.address(3),
                        "--group", f"{group_test.GROUP}:{group_test.PORT}", "--rate", str(rate), *(["--blind"] if blind else [])),
        stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    for member in members:
        port = int(member.name[4:8], 16)
        attacker.stdin.write(f"{cluster.address(member.node)} {port}\n")
    attacker.stdin.write("\n")
    attacker.stdin.flush()
    return attacker


def rounds(members, seconds, sizes=(64, 5000, 200000)):
    """The number of messages that arrive intact within the time; `receive` compares each byte."""
    done = 0
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        for size in sizes:
            members[1].say("receive", 0, 8, size)
            members[1].answer("ready")
            members[0].say("send", 8, size)
            _, failed = members[0].answer("sent")
            if failed != "0" or members[1].answer("received") != ["8"]:
                raise RuntimeError("a message has failed")
            done += 8
    return done


def attacked(cluster, options, settings, rate, blind=False):
    members = []
    try:
        members = [group_test.Member(cluster, node, **settings) for node in (1, 2)]
        for member in members:
            member.say("peers", *(each.name for each in members))
            member.say("join")
        for member in members:
            member.answer("joined")
        attacker = start_attack(cluster, members, rate, blind) if rate else None
        done = rounds(members, options.seconds)
        counts = json.loads(attacker.communicate(timeout=30)[0]) if attacker else {}
        lost = []
        for member in members:
            member.say("events")
            lost += [line for line in [member.answer("lost")[0]] if line != "0"]
        for member in members:
            member.process.stdin.close()
            member.process.wait(30)
        text = "".join(member.text() for member in members)
        counts["refused"] = sum(int(number) for number in re.findall(r"refused_(?:multicast|stale)=(\d+)", text))
        lost += [line for line in text.splitlines() if " is lost: " in line]
        return done / options.seconds, counts, lost
    finally:
        for member in members:
            member.close()


def main():
    made = argparse.ArgumentParser(description=__doc__)
    made.add_argument("--seconds", type=int, default=4, help="of each attack (default: %(default)s)")
    made.add_argument("--provider", required=True, help="directory of libcluster-fi.so")
    made.add_argument("--program", required=True, help="group_member")
    made.add_argument("--link", choices=("udp", "packet"), default="udp")
    made.add_argument("--rate", type=int, default=20000, help="frames a second at most (default: %(default)s)")
    options = made.parse_args()
    virtual_nodes.require()
    cluster = virtual_nodes.shared(3)
    group_test.options = options
    failed = 0
    for name, settings in (("no key", {}), ("auth", {"FI_CLUSTER_KEY": _KEY, "FI_CLUSTER_SECURITY": "auth"}),
                           ("encrypt", {"FI_CLUSTER_KEY": _KEY, "FI_CLUSTER_SECURITY": "encrypt"})):
        calm = attacked(cluster, options, settings, 0)[0]
        rate, counts, lost = attacked(cluster, options, settings, options.rate, blind=not settings)
        sent = sum(counts[kind] for kind in ("forged", "replayed", "altered"))
        print(f"{name}: {calm:.0f} messages a second undisturbed, {rate:.0f} under {sent / counts['seconds']:.0f} frames a second: {counts}")
        if lost or counts["refused"] < _FRAMES_MIN or sent < _FRAMES_MIN or (settings and not counts["replayed"]):
            print(f"FAIL: lost {lost}, {sent} frames")
            failed = 1
    return failed


if __name__ == "__main__":
    sys.exit(main())
