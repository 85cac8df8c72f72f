"""An operational model of the memory order of C++, and a search through everything that a small program may do in it.

A location is the list of all values written to it, in modification order, each with what its writer knew when it wrote
(its view: per location the newest write that happens before). A thread has a view, too, and reads any write that is not
older than its view, so a load may return an old value although a newer one is there: this is how store buffers, late
invalidations and reordered loads show. Acquire joins the view of the write into that of the thread, release leaves the
view of the thread at the write. What is sequentially consistent also goes through one view that all share. A process fence
(membarrier) is a full fence in every thread at once.

Plain memory is checked for races: a thread that accesses it must know all conflicting accesses, in the sense of happens-before.

Not in the model: a load that takes its value from a store that comes later in another thread's program and depends on
nothing (load buffering); no word of the ring is used so. Each location has one writer, or is written by
read-modify-writes only, so writes never come between others.
"""

RELAXED, ACQUIRE, RELEASE, SEQ_CST = "relaxed", "acquire", "release", "seq_cst"


class Violation(Exception):
    pass


def store(place, value, order):
    return ("store", place, value, order)


def load(place, order):
    return ("load", place, None, order)


def exchange(place, change):
    """A sequentially consistent read-modify-write, which is no fence for other places."""
    return ("exchange", place, change, SEQ_CST)


def read(place):
    """Plain memory, as is the next."""
    return ("read", place, None, None)


def write(place, value):
    return ("write", place, value, None)


def process_fence():
    return ("process_fence", None, None, None)


class Memory:
    def __init__(self, choose, initial):
        self.choose = choose
        self.writes = {place: [(value, {})] for place, value in initial.items()}  # place -> [(value, view)]
        self.views = []
        self.shared = {}  # what is known to all that is sequentially consistent

    def _at(self, place):
        return self.writes.setdefault(place, [(0, {})])

    @staticmethod
    def _join(view, other):
        for place, newest in other.items():
            if newest > view.get(place, 0):
                view[place] = newest

    def _fence(self, view):
        self._join(view, self.shared)
        self._join(self.shared, view)

    def _append(self, view, place, value, order):
        writes = self._at(place)
        view[place] = len(writes)
        writes.append((value, dict(view) if order in (RELEASE, SEQ_CST) else {place: len(writes)}))
        if order == SEQ_CST:
            self.shared[place] = view[place]

    def do(self, thread, operation):
        kind, place, value, order = operation
        view = self.views[thread]
        if kind == "process_fence":
            for _ in range(2):  # the second round tells all what the first has collected
                for each in self.views:
                    self._fence(each)
            return None
        if kind == "store":
            return self._append(view, place, value, order)
        if kind == "read":
            return self._read_plain(view, place)
        if kind == "write":
            return self._write_plain(view, place, value)
        writes = self._at(place)
        if kind == "exchange":
            before, left = writes[-1]
            self._join(view, left)
            self._append(view, place, value(before), SEQ_CST)
            return before
        oldest = max(view.get(place, 0), self.shared.get(place, 0) if order == SEQ_CST else 0)
        number = oldest + self.choose(len(writes) - oldest)
        read, left = writes[number]
        view[place] = number
        if order in (ACQUIRE, SEQ_CST):
            self._join(view, left)
        return read

    # Plain memory. A read leaves a mark that a later write has to know of.
    def _read_plain(self, view, place):
        writes = self._at(place)
        if view.get(place, 0) != len(writes) - 1:
            raise Violation(f"{place} is read while it is written")
        self._append(view, place + " was read", None, RELAXED)
        return writes[-1][0]

    def _write_plain(self, view, place, value):
        for conflicting in (place, place + " was read"):
            if view.get(conflicting, 0) != len(self._at(conflicting)) - 1:
                raise Violation(f"{place} is written while it is {'read' if conflicting != place else 'written'}")
        self._append(view, place, value, RELAXED)


def explore(programs, judge=lambda results: None, initial=()):
    """Runs the threads (generator functions, which yield operations) in every way, and
    judges what they return. Returns the number of executions; a Violation ends it."""
    script, executions = [], 0
    while True:
        taken = []

        def choose(options, taken=taken):
            position = len(taken)
            if position == len(script):
                script.append([0, options])
            taken.append(script[position][0])
            return script[position][0]

        _run(programs, choose, judge, dict(initial))
        executions += 1
        while script and script[-1][0] + 1 == script[-1][1]:
            script.pop()
        if not script:
            return executions
        script[-1][0] += 1


def _run(programs, choose, judge, initial):
    memory = Memory(choose, initial)
    memory.views = [{} for _ in programs]
    running, waiting, results = {}, {}, [None] * len(programs)
    for number, program in enumerate(programs):
        running[number] = program()
        _resume(running, waiting, results, number, None)
    while running:
        number = list(running)[choose(len(running))] if len(running) > 1 else next(iter(running))
        _resume(running, waiting, results, number, memory.do(number, waiting[number]))
    judge(results)


def _resume(running, waiting, results, number, value):
    try:
        waiting[number] = running[number].send(value)
    except StopIteration as end:
        results[number] = end.value
        del running[number]
