"""Chaos: ranks on virtual nodes exchange checked messages, puts and atomics while ranks are killed and restarted, fork, are
stopped and continued, run short of descriptors and of memory, rails are cut and restored, and the switch reboots.

    chaos.py --build BUILD --program life_peer [--minutes N] [--seed S] [--ranks 8] [--nodes 4] [--reboot 10]

It fails if a byte is wrong, if an operation does not end, if one fails although its peer lived all the time (a false
death), or if the death of a rank is reported late. Operations of or with a rank that has no descriptor or no memory
left may fail. The seed decides the sequence of faults; what each of them hits depends on the machine.
"""
import argparse
import os
import random
import resource
import signal
import sys
import time

from life_process import Life, Process, virtual_nodes

PEER_TIMEOUT = 3.0
SHORT_MAX = 2.0
SHORT_OF = {"short of descriptors": resource.RLIMIT_NOFILE, "short of memory": resource.RLIMIT_AS}
CUT_MAX, STOP_MAX = 1.0, 6.0  # one rail at a time; stops last for longer than the peer timeout
REBOOT_MAX = 10.0  # of the switch: longer than the peer timeout
REBOOTS_EVERY = 45.0
REPORTED_WITHIN = 1.0
LATE = float(os.environ.get("LIFE_PATIENCE", "1"))
OPERATIONS_MAX = 12  # of a rank at a time
BIGGEST = 96 * 1024


class Rank:
    def __init__(self, number, cluster, nodes):
        self.number, self.node, self.port = number, 1 + number % nodes, 21000 + number
        self.cluster, self.process, self.handles = cluster, None, {}
        self.pending = {}  # operation -> (rank, life of it, life of this one, posted at)
        self.life, self.died_at, self.stopped_until = 0, None, None
        self.away = []  # (from, until): when it was stopped
        self.short_of, self.short_until, self.was_short_at = None, None, float("-inf")

    def start(self):
        settings = {"FI_CLUSTER_PEER_TIMEOUT": str(int(PEER_TIMEOUT * 1000)), "FI_LOG_LEVEL": "warn"}
        self.process = Process(self.cluster.command(self.node), self.port, **settings)
        self.process.do(f"keep 32 {BIGGEST}")
        self.handles, self.pending, self.died_at, self.short_until = {}, {}, None, None
        self.life += 1

    def run_short(self, of, until):
        """The rank gets no further descriptors, or no further memory."""
        pid = self.process.pid
        if of == resource.RLIMIT_NOFILE:
            held = max(map(int, os.listdir(f"/proc/{pid}/fd"))) + 1
        else:
            with open(f"/proc/{pid}/statm", encoding="ascii") as file:
                held = int(file.read().split()[0]) * resource.getpagesize()
        _, most = resource.prlimit(pid, of)
        resource.prlimit(pid, of, (held, most))
        self.short_of, self.short_until = of, until

    def has_plenty(self):
        _, most = resource.prlimit(self.process.pid, self.short_of)
        resource.prlimit(self.process.pid, self.short_of, (most, most))
        self.short_until, self.was_short_at = None, time.monotonic()

    def was_short(self, since):
        return bool(self.short_until) or self.was_short_at > since

    def know(self, ranks):
        """Targets accept remote accesses only from peers in the address vector; an address stays the same for all
        lives."""
        self.handles = {each.number: self.process.peer(each.process.name) for each in ranks if each is not self}

    def free_place(self):
        """A place of its own in the regions of all ranks, where no pending put writes."""
        taken = {int(order.split()[-1]) for _, _, _, order in self.pending.values() if order.startswith("put")}
        return next(place for place in range(self.number * OPERATIONS_MAX, (self.number + 1) * OPERATIONS_MAX) if place not in taken)

    @property
    def alive(self):
        return self.died_at is None

    def was_away(self, since):
        return bool(self.stopped_until) or any(until > since for _, until in self.away)


class Chaos:
    def __init__(self, options):
        self.random = random.Random(options.seed)
        self.cluster = virtual_nodes.make(options.nodes, "--rails", "2")
        self.ranks = [Rank(number, self.cluster, options.nodes) for number in range(options.ranks)]
        self.nodes, self.serial, self.cut = options.nodes, 0, None
        self.reboot_max, self.reboot_until, self.whole_since = options.reboot, None, 0.0
        self.next_reboot = time.monotonic() + self.random.uniform(0, REBOOTS_EVERY)
        self.counts = dict.fromkeys(("operations", "failed", "killed", "stopped", "forked", "cut", "reboots", *SHORT_OF), 0)
        self.began, self.story = time.monotonic(), []
        for rank in self.ranks:
            rank.start()
        for rank in self.ranks:
            rank.know(self.ranks)

    def start(self, rank):
        self.tell(f"start {rank.number}")
        rank.start()
        rank.know(self.ranks)

    def operate(self, rank):
        other = self.random.choice([each for each in self.ranks if each is not rank])
        handle = rank.handles[other.number]
        self.serial += 1
        name, size = f"o{self.serial}", self.random.choice((8, 64, 700, 5000, 60000, BIGGEST))
        seed = self.serial << 32 | rank.number << 8
        order = self.random.choice((f"say {name} {size} {handle} {seed}", f"put {name} {size} {handle} {seed} {rank.free_place()}",
                                    f"add {name} {handle}"))
        rank.process.do(order)
        rank.pending[name] = (other, other.life if other.alive else 0, time.monotonic(), order)
        self.counts["operations"] += 1

    def take(self, rank):
        rank.process.take()
        for name in [each for each in rank.pending if each in rank.process.ends]:
            other, life, posted, order = rank.pending.pop(name)
            error, at, text = rank.process.ends.pop(name)
            if error == 0:
                continue
            self.counts["failed"] += 1
            lived = other.alive and other.life == life and life > 0
            short = any(each.was_short(posted - SHORT_MAX) for each in (rank, other))
            if lived and not short and not self.knows_of_death(rank, other):
                raise RuntimeError(f"false death: rank {rank.number} with rank {other.number}: {text}; '{order}'; {rank.process.log()}")
        for other, life, posted, order in rank.pending.values():
            if other.alive or other.life != life or rank.was_away(other.died_at) or self.cut or self.reboot_until:
                continue
            waited = time.monotonic() - max(other.died_at, posted, self.whole_since)
            if waited > REPORTED_WITHIN * 2 * LATE + 2:
                raise RuntimeError(f"rank {rank.number} has not noticed in {waited:.1f} s that rank {other.number} is dead: '{order}'; "
                                   f"{rank.process.log()}")

    @staticmethod
    def knows_of_death(rank, other):
        """An earlier life of the other ended while this rank lived: this rank may know only of that loss."""
        return other.life > 1 and bool(rank.process.losses)

    def tell(self, what):
        self.story.append(f"{time.monotonic() - self.began:.2f} {what}")

    def kill(self, rank):
        self.tell(f"kill {rank.number}")
        rank.died_at = rank.process.kill()
        rank.stopped_until = None
        rank.process.close()
        self.counts["killed"] += 1

    def stop(self, rank):
        self.tell(f"stop {rank.number}")
        rank.process.signal(signal.SIGSTOP)
        now = time.monotonic()
        rank.stopped_until = now + self.random.uniform(0.1, STOP_MAX)
        self.counts["stopped"] += 1

    def go_on(self, rank):
        self.tell(f"go on {rank.number}")
        rank.process.signal(signal.SIGCONT)
        rank.away.append((0, time.monotonic()))
        rank.stopped_until = None

    def set_rail(self, node, up):
        self.tell(f"rail of node {node} {'up' if up else 'down'}")
        self.cluster.run(node, "ip", "link", "set", "eth1", "up" if up else "down")

    def set_switch(self, up):
        """No node hears another; the interfaces keep their carrier or not."""
        self.tell(f"the switch is {'back' if up else 'off'}")
        self.whole_since = time.monotonic()
        if up:
            self.cluster.faults("--clear")
        elif self.random.random() < 0.5:
            self.cluster.faults("--loss", "100%")
            return
        for node in range(1, self.nodes + 1):
            for rail in (0, 1):
                self.cluster.run("switch", "ip", "link", "set", f"n{node}r{rail}", "up" if up else "down")

    def harm(self):
        what = self.random.choice(("kill", "stop", "fork", "cut", *SHORT_OF, "start", "start"))
        rank = self.random.choice(self.ranks)
        running = rank.alive and not rank.stopped_until
        if what == "kill" and rank.alive and sum(each.alive for each in self.ranks) > 3:
            self.kill(rank)
        elif what == "start" and not rank.alive and not self.reboot_until:  # its peers know only the life before
            self.start(rank)
        elif what == "stop" and running:
            self.stop(rank)
        elif what == "fork" and running and not rank.short_until:  # without memory it would not answer before it has some
            self.tell(f"fork {rank.number}")
            rank.process.fork(self.random.choice(("live", "close", "exec", "use")))
            self.counts["forked"] += 1
        elif what in SHORT_OF and running and not rank.short_until:
            self.tell(f"{what} {rank.number}")
            rank.run_short(SHORT_OF[what], time.monotonic() + self.random.uniform(0.1, SHORT_MAX))
            self.counts[what] += 1
        elif what == "cut" and not self.cut:
            self.cut = (1 + self.random.randrange(self.nodes), time.monotonic() + self.random.uniform(0.1, CUT_MAX))
            self.set_rail(self.cut[0], False)
            self.counts["cut"] += 1

    def heal(self, everything=False):
        now = time.monotonic()
        if self.cut and (everything or now >= self.cut[1]):
            self.set_rail(self.cut[0], True)
            self.cut = None
        if self.reboot_until and (everything or now >= self.reboot_until):
            self.set_switch(up=True)
            self.reboot_until = None
        elif now >= self.next_reboot and not everything:
            self.next_reboot = now + REBOOTS_EVERY
            self.reboot_until = now + self.random.uniform(1, self.reboot_max)
            self.counts["reboots"] += 1
            self.set_switch(up=False)
        for rank in self.ranks:
            if rank.stopped_until and (everything or now >= rank.stopped_until):
                self.go_on(rank)
            if rank.alive and rank.short_until and (everything or now >= rank.short_until):
                self.tell(f"plenty {rank.number}")
                rank.has_plenty()
            if everything and not rank.alive:
                self.start(rank)

    def run(self, seconds):
        end, next_harm = time.monotonic() + seconds, 0.0
        while time.monotonic() < end:
            now = time.monotonic()
            self.heal()
            if now >= next_harm:
                self.harm()
                next_harm = now + self.random.uniform(0.05, 0.8)
            for rank in self.ranks:
                if not rank.alive or rank.stopped_until:
                    continue
                if len(rank.pending) < OPERATIONS_MAX:
                    self.operate(rank)
                self.take(rank)
        self.heal(everything=True)
        if not self.wait_for_all(60 * max(LATE, 1)):
            raise RuntimeError("hang: " + "; ".join(f"rank {rank.number}: {list(rank.pending.values())[:2]} {rank.process.log()}"
                                                    for rank in self.ranks if rank.pending))

    def wait_for_all(self, seconds):
        end = time.monotonic() + seconds
        while time.monotonic() < end:
            for rank in self.ranks:
                self.take(rank)
            if not any(rank.pending for rank in self.ranks):
                return True
            time.sleep(0.01)
        return False

    def close(self):
        for rank in self.ranks:
            rank.process.close()


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--build", required=True)
    parser.add_argument("--program", required=True)
    parser.add_argument("--minutes", type=float, default=10)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--ranks", type=int, default=8)
    parser.add_argument("--nodes", type=int, default=4)
    parser.add_argument("--reboot", type=float, default=REBOOT_MAX, help="longest reboot of the switch in seconds (default: %(default)s)")
    options = parser.parse_args()
    Life.program = os.path.abspath(options.program)
    Life.plugin = os.path.join(os.path.abspath(options.build), "prov", "cluster")
    virtual_nodes.require()
    print(f"chaos: seed {options.seed}, {options.minutes} minutes", flush=True)
    chaos = Chaos(options)
    try:
        chaos.run(options.minutes * 60)
    except RuntimeError as failure:
        chaos.tell("failed")
        print(f"chaos: seed {options.seed}: {failure}\n  " + "\n  ".join(chaos.story[-30:]))
        sys.exit(1)
    finally:
        chaos.close()
    print(", ".join(f"{count} {what}" for what, count in chaos.counts.items()) + ": no wrong byte, no hang, no false death")


main()
