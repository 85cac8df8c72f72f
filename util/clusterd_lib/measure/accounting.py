"""What endpoints of the provider send and receive over time: the rates of each, and totals of each job that only grow.

The counters of an endpoint begin at 0 and end with it, so their sum over the endpoints that run drops when one closes;
a program that takes differences would read that as a restart. So this adds what each endpoint counted since the last
look to the totals of its job and of the path to the peer's node. It misses what an endpoint does between the last look
and its end.

A process itself says which job it belongs to. A job belongs to the user of its first process that the agent sees. If a
process of another user claims that job, it counts as a process without a job.

Bounds: JOBS_MAX jobs and PEERS_MAX paths at a time, further ones count as OTHER; a job is forgotten KEEP_SECONDS after
its last endpoint.
"""
from collections import defaultdict

KEEP_SECONDS = 300
JOBS_MAX, PEERS_MAX = 32, 256
OTHER = "other"
STUCK_SECONDS = 1.0  # longer than any retransmission should take
_FLOW = ("sent_frames", "lost_frames", "retransmitted_frames")


def stuck(endpoint):
    """A sentence for each peer that owes an answer and is silent for longer than any retransmission should take."""
    found = []
    for peer in endpoint.get("peers", []):
        owed = peer.get("queued_frames", 0) + sum(rail.get("in_flight_frames", 0) for rail in peer.get("rails", []))
        if owed and peer.get("silent_ns", 0) > STUCK_SECONDS * 1e9:
            where = f" ({peer['node']})" if peer.get("node") else ""
            found.append(f"{peer['peer']}{where} silent for {peer['silent_ns'] / 1e9:.0f} s, owes {owed} frames")
    return found


class _Totals:
    """The totals of one job on this node, or of one path: counters that only grow, and the number of present endpoints
    or peers."""

    def __init__(self):
        self.counted, self.gauges, self.seen_at = defaultdict(int), defaultdict(int), 0.0


class Accounting:
    """`job_of(pid)` and `node_of(address)` give names, empty if they have none; `owner_of(pid)` gives a user."""

    def __init__(self, job_of, node_of, owner_of=lambda pid: 0):  # pylint: disable=redefined-outer-name
        self._job_of, self._node_of, self._owner_of = job_of, node_of, owner_of
        self._owners = {}  # job -> user
        self._last = {}  # (pid, endpoint[, peer]) -> numbers at the last look
        self._looked_at, self._jobs_of = None, {}
        self.jobs, self.paths = {}, {}

    def look(self, processes, now):
        """Takes in a report of `cluster-info --all --json`, and adds to it: to a process its job, to an endpoint its rates
        and what is stuck, to a peer its node."""
        last, self._last = self._last, {}
        passed = now - self._looked_at if self._looked_at is not None else 0
        self._looked_at = now
        self._owners = {job: user for job, user in self._owners.items() if job in self.jobs or job in self._jobs_of.values()}
        self._jobs_of = {process["pid"]: self._jobs_of.get(process["pid"]) or self._own_job_of(process["pid"])
                         for process in processes}
        for totals in (*self.jobs.values(), *self.paths.values()):
            totals.gauges.clear()
        for process in processes:
            process["job"] = self._jobs_of[process["pid"]]
            for endpoint in process.get("endpoints", []):
                self._endpoint(process, endpoint, last, passed, now)
        for table in (self.jobs, self.paths):
            for name in [name for name, totals in table.items() if now - totals.seen_at > KEEP_SECONDS]:
                del table[name]

    def _own_job_of(self, pid):
        job = self._job_of(pid)
        user = self._owner_of(pid) if job else None
        return job if user is not None and self._owners.setdefault(job, user) == user else ""

    def _added(self, key, numbers, last):
        """What an endpoint or peer has added since the last look; everything if it is new."""
        self._last[key] = numbers
        before = last.get(key, {})
        restarted = any(value < before.get(name, 0) for name, value in numbers.items())
        return {name: value - (0 if restarted else before.get(name, 0)) for name, value in numbers.items()}

    @staticmethod
    def _totals(table, name, other, most, now):
        if name not in table and len(table) >= most:
            name = other
        totals = table.setdefault(name, _Totals())
        totals.seen_at = now
        return totals

    def _endpoint(self, process, endpoint, last, passed, now):
        job = self._totals(self.jobs, process["job"], OTHER, JOBS_MAX, now)
        job.gauges["endpoints"] += 1
        if "counters" not in endpoint:
            job.gauges["unanswered"] += 1
            return
        key = (process["pid"], endpoint["endpoint"]["endpoint"])
        known = key in last
        added = self._added(key, endpoint["counters"], last)
        for name, value in added.items():
            job.counted[name] += value
        if known and passed > 0:
            endpoint["rates"] = {f"{name}_per_second": round(added.get(name, 0) / passed, 1)
                                 for name in ("bytes_sent", "bytes_received", "frames_sent", "frames_received")}
        for peer in endpoint.get("peers", []):
            peer["node"] = self._node_of(peer["peer"].rpartition(":")[0])
            self._peer(process["job"], key, peer, last, now)
        endpoint["stuck"] = stuck(endpoint)
        job.gauges["stuck"] += len(endpoint["stuck"])
        job.gauges["unexpected"] += endpoint["endpoint"].get("unexpected_messages", 0)

    def _peer(self, job, key, peer, last, now):
        path = self._totals(self.paths, (job, peer["node"], peer["path"]), (OTHER, OTHER, OTHER), PEERS_MAX, now)
        path.gauges["peers"] += 1
        path.gauges["queued"] += peer.get("queued_frames", 0)
        for rail in peer.get("rails", []):
            path.gauges["in_flight"] += rail.get("in_flight_frames", 0)
            path.gauges["round_trip_ns"] = max(path.gauges["round_trip_ns"], rail.get("rtt_ns", 0))
        if "sent_frames" in peer:
            for name, value in self._added((*key, peer["peer"]), {name: peer.get(name, 0) for name in _FLOW}, last).items():
                path.counted[name] += value
