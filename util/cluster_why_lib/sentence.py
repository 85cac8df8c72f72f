"""The causes in words: a sentence for each, and lines that show how ranks wait."""
import signal

from . import graph as graph_module

NAMED_MAX, LINES_MAX = 6, 8
_DEBUGGER = "t"
_NOBODY_WAITS = {graph_module.AWAY: "without a call", graph_module.POLLING: "with nothing in progress", graph_module.BUSY: "with new operations"}


def seconds(count):
    if count < 100:
        return f"{count:.1f} s" if count < 10 else f"{count:.0f} s"
    return f"{count / 60:.0f} min" if count < 7200 else f"{count / 3600:.1f} h"


def counted(count, word):
    return f"{count} {word}{'' if count == 1 else 's'}"


def ranges(numbers):
    """1, 2, 3, 7 as `1-3, 7`."""
    parts = []
    for number in sorted(numbers):
        if parts and parts[-1][1] == number - 1:
            parts[-1][1] = number
        else:
            parts.append([number, number])
    return ", ".join(str(first) if first == last else f"{first}-{last}" for first, last in parts)


def _joined(parts):
    return parts[0] if len(parts) == 1 else ", ".join(parts[:-1]) + " and " + parts[-1]


class Text:
    def __init__(self, graph):
        self._graph = graph
        numbers = [process.rank for process in graph.processes if process.rank >= 0]
        self._unique = len(numbers) == len(set(numbers))

    def name(self, number, with_process=False):
        """rank 7 on node3"""
        process = self._graph.processes[number]
        where = f" on {process.node}" if process.node else ""
        if not process.pid:
            return f"the process at {process.addresses[0]}{where}"
        if process.rank < 0 or not self._unique:
            rank = f"rank {process.rank} (process {process.pid} {process.command})" if process.rank >= 0 else \
                f"process {process.pid} {process.command}"
            return rank + where
        return f"rank {process.rank}{where}" + (f" (process {process.pid} {process.command})" if with_process else "")

    def names(self, numbers, with_process=False):
        """Several ranks, by node: ranks 3, 5-7 on node2."""
        processes = [self._graph.processes[number] for number in numbers]
        if len(numbers) == 1 or not self._unique or any(process.rank < 0 for process in processes):
            named = [self.name(number, with_process) for number in numbers[:NAMED_MAX]]
            return _joined(named + ([f"{len(numbers) - NAMED_MAX} more"] if len(numbers) > NAMED_MAX else []))
        by_node = {}
        for process in processes:
            by_node.setdefault(process.node, []).append(process.rank)
        parts = [f"{'rank' if len(ranks) == 1 else 'ranks'} {ranges(ranks)} on {node}" for node, ranks in by_node.items()]
        return _joined(parts[:NAMED_MAX] + ([f"those of {len(parts) - NAMED_MAX} more nodes"] if len(parts) > NAMED_MAX else []))

    # --- operations

    def _what(self, operation):
        """(send of 8 bytes, tag 5)"""
        text = f"{operation.kind} of {operation.bytes} bytes"
        if 0 < operation.done_bytes < operation.bytes:
            text += f", {operation.done_bytes} done"
        return text + (f", tag {operation.tag}" if operation.tag >= 0 else "")

    def _peer(self, wait):
        return "any rank" if wait.target < 0 else "itself" if wait.target == wait.source else self.name(wait.target)

    def wait(self, wait):
        """rank 0 on node1 has waited 12 s for rank 1 on node2 to send a message that matches it (receive of 8 bytes)"""
        one = wait.operation
        waited = f"has waited {seconds(one.age_s)} for" if one.age_s else "waits for"
        return f"{self.name(wait.source)} {waited} {self._peer(wait)} {one.waits_for} ({self._what(one)})"

    def _waiting(self, cause):
        if not cause.waiting:
            return ""
        verb = "waits" if cause.waiting == 1 else "wait"
        many = len(cause.ranks) > 1
        return f"; {counted(cause.waiting, 'rank')} {verb} for {'them' if many else 'it'}" + self._longest(cause)

    def _longest(self, cause):
        return f", {'the longest ' if cause.waiting > 1 else ''}for {seconds(cause.longest_s)}" if cause.longest_s else ""

    # --- a sentence for each kind of cause

    def node(self, cause):
        graph, node = self._graph, cause.node
        since = f" for {seconds(node.since_s)}" if node.since_s else ""
        text = f"{node.name} " + (f"has been down{since}" if node.down else "does not answer") + (f" ({node.trouble})" if node.trouble else "")
        absent, silent = graph.absent_ranks(), [each for each in graph.nodes if each.down or each.trouble]
        if absent and len(silent) == 1:
            text += f": {'rank' if len(absent) == 1 else 'ranks'} {ranges(absent)} ran there"
        elif cause.ranks:
            text += f": {counted(len(cause.ranks), 'process')[:-1] + 'es' if len(cause.ranks) > 1 else 'a process'} of the job ran there"
        if cause.waiting:
            text += f"; {counted(cause.waiting, 'rank')} {'waits' if cause.waiting == 1 else 'wait'} for {'it' if len(absent) == 1 else 'them'}"
            text += self._longest(cause)
        return text

    def _absent(self, cause):
        """The rank of a process of which only the address is known, if only one can be meant."""
        absent, unseen = self._graph.absent_ranks(), len(self._graph.processes) - self._graph.seen
        return f"rank {absent[0]}, " if len(absent) == 1 == len(cause.ranks) == unseen else ""

    def ended(self, cause):
        said = {peer.lost: peer.lost_s for process in self._graph.processes for peer in process.peers
                if peer.lost and self._graph.rank_at(peer.address) in cause.ranks}
        lost = "".join(f" (lost {seconds(ago)} ago: {why})" for why, ago in list(said.items())[:1])
        return f"{self._absent(cause)}{self.names(cause.ranks)} {'has' if len(cause.ranks) == 1 else 'have'} ended{lost}" + self._waiting(cause)

    def stopped(self, cause):
        processes = [self._graph.processes[number] for number in cause.ranks]
        one = processes[0]
        if one.state == _DEBUGGER:
            by = f"stopped by the debugger {one.tracer}" if one.tracer else "stopped by a debugger"
        else:
            by = f"stopped by {_signal(one.stop_signal)}" if one.stop_signal else "stopped by a signal"
        # Peers may have heard nothing for long before, and may have waited for long before: the shorter time is nearer.
        since = min([self._graph.heard[address] for process in processes for address in process.addresses if address in self._graph.heard] +
                    [wait.operation.age_s for wait in cause.waits[:1]], default=0.0)
        have = "has" if len(processes) == 1 else "have"
        text = f"{self.names(cause.ranks)} {have} made no call for {seconds(since)}: {by}" if since else \
            f"{self.names(cause.ranks)} {'is' if have == 'has' else 'are'} {by}"
        return text + self._waiting_briefly(cause)

    def _waiting_briefly(self, cause):
        """Without the time, which the sentence already has."""
        return self._waiting(cause).partition(", ")[0]

    def deaf(self, cause):
        process = self._graph.processes[cause.ranks[0]]
        return f"{self.names(cause.ranks, True)} gives no report, though it is not stopped ({process.trouble}; {doing(process)})" + self._waiting(cause)

    def parted(self, cause):
        wait = cause.waits[0]
        text = f"{self.name(wait.source)} has heard nothing from {self.name(wait.target)} for {seconds(wait.operation.age_s)}, though both run"
        if wait.operation.waits_for:
            text = f"{self.name(wait.source)} has given up {self.name(wait.target)} {seconds(wait.operation.age_s)} ago " \
                   f"({wait.operation.waits_for}), though both run"
        more = len(cause.ranks) - 2
        return f"{text}: look at the cable, the switch and the firewall between them" + (
            f"; {counted(more, 'rank')} of these nodes the same" if more > 0 else "") + self._waiting(cause)

    def launcher(self, cause):
        one = cause.launcher
        node = self._graph.processes[cause.ranks[0]].node
        text = f"all {cause.waiting} ranks can wait for the launcher: "
        if one.state in ("T", "t"):
            return text + f"{one.command} (process {one.pid}) on {node} is stopped"
        each = one.silent[0]
        return text + (f"nothing answers what {one.command} (process {one.pid}) on {node} sends over TCP from {each.source} to {each.to} "
                       f"({each.retransmissions} retransmissions): is this rail cut?")

    def away(self, cause):
        processes = [self._graph.processes[number] for number in cause.ranks]
        longest = max(process.no_call_s for process in processes)
        have = "has" if len(processes) == 1 else "have"
        return f"{self.names(cause.ranks)} {have} made no call for {seconds(longest)}: {doing(processes[0])}" + self._waiting(cause)

    def outside(self, cause):
        process = self._graph.processes[cause.ranks[0]]
        begun = "it has not begun to use MPI, has ended that, or uses another provider" if len(cause.ranks) == 1 else \
            "they have not begun to use MPI, have ended that, or use another provider"
        state = f"is stopped by {_signal(process.stop_signal)}" if process.state in ("T", "t") else "has no endpoint" \
            if len(cause.ranks) == 1 else "have no endpoint"
        return f"{self.names(cause.ranks, True)} {state}: {begun} ({doing(process)})"

    def receive(self, cause):
        wait = cause.waits[0]
        target = self._graph.processes[wait.target]
        others = [own for own in self._graph.waits if own.source == wait.target]
        text = f"{self.name(wait.target)} has posted no receive that matches a message of " \
               f"{'itself' if wait.source == wait.target else self.name(wait.source)} ({self._what(wait.operation)})"
        if others and wait.source != wait.target:
            text += f", but waits for {self._peer(others[0])} {others[0].operation.waits_for} ({self._what(others[0].operation)})"
        elif target.no_call_s:
            text += f"; it has made no call for {seconds(target.no_call_s)}"
        return text + self._waiting(cause)

    def message(self, cause):
        number = cause.ranks[0]
        process = self._graph.processes[number]
        own = next(wait for wait in self._graph.waits if wait.source == number)
        message = next((each for each in process.messages if own.target in (-1, self._graph.rank_at(each.peer))), process.messages[0])
        tag = f", tag {message.tag}" if message.tag >= 0 else ""
        return f"{self.name(number)} waits for {self._peer(own)} to send a message ({self._what(own.operation)}), but a message that has come " \
               f"({message.bytes} bytes{tag}) matches no receive (another tag or communicator?)" + self._waiting(cause)

    def deadlock(self, cause):
        if len(cause.ranks) == 1:
            return f"deadlock: {self.wait(cause.waits[0])}" + self._waiting(cause)
        others = f"; {counted(cause.waiting, 'more rank')} {'waits' if cause.waiting == 1 else 'wait'} for them" if cause.waiting else ""
        return f"deadlock: {self.names(cause.ranks)} wait for each other, for {seconds(min(wait.operation.age_s for wait in cause.waits))} " \
               f"at least{others}"

    def windows(self, cause):
        if all(graph_module.has_windows(self._graph.processes[number]) for number in cause.ranks):
            text = "have open windows and make calls, but get no message: each may hold a lock for which the other waits"
        else:
            text = "make calls, but have nothing in progress: each may wait for the other inside its MPI library, as for the lock of a window"
        return f"{self.names(cause.ranks)} {text}" + self._waiting(cause)

    def repeating(self, cause):
        targets = sorted({wait.target for wait in cause.waits})
        whose = "each other's memory" if targets == sorted(cause.ranks) else f"the memory of {self.names(targets)}"
        return f"{self.names(cause.ranks)} repeat atomic operations on {whose}: each may hold a lock for which the other waits" + self._waiting(cause)

    def idle(self, cause):
        if not cause.waits:
            return f"{self.names(cause.ranks)} {'makes' if len(cause.ranks) == 1 else 'make'} calls, but has nothing in progress" + self._waiting(cause)
        wait = cause.waits[0]
        if wait.operation.waits_for == graph_module.TO_RECEIVE:
            return f"{self.name(wait.target)} makes calls, but has posted no receive that matches a message of {self.name(wait.source)} " \
                   f"({self._what(wait.operation)})" + self._waiting(cause)
        return f"{self.names(cause.ranks)} {'makes' if len(cause.ranks) == 1 else 'make'} calls, but what {self.name(wait.source)} needs does not " \
               f"come: {wait.operation.waits_for} ({self._what(wait.operation)})" + self._waiting(cause)

    def unseen(self, cause):
        node = self._graph.node_of(self._graph.processes[cause.ranks[0]].addresses[0])
        silent = node and (node.down or node.trouble)
        why = f"peers hear from there, but {node.name} gives no report{f' ({node.trouble})' if node.trouble else ''}" if silent else \
            "the command may not look there, or has not asked there"
        return f"nothing is known about {self._absent(cause)}{self.names(cause.ranks)}: {why}" + self._waiting(cause)

    def busy(self, cause):
        return f"{self.names(cause.ranks)} {'makes' if len(cause.ranks) == 1 else 'make'} progress, later than others" + self._waiting(cause)

    # --- the whole answer

    def sentence(self, cause):
        text = getattr(self, cause.kind)(cause)
        return text[0].upper() + text[1:] + ("" if text.endswith("?") else ".")

    def remedy(self, cause):
        """What the user can type; empty if there is nothing."""
        if cause.kind != "stopped":
            return ""
        by_node = {}
        for number in cause.ranks:
            process = self._graph.processes[number]
            if process.state != _DEBUGGER:
                by_node.setdefault(process.node, []).append(str(process.pid))
        return "; ".join(f"on {node}: kill -CONT {' '.join(pids[:NAMED_MAX])}" for node, pids in list(by_node.items())[:NAMED_MAX])

    def lines(self, cause):
        """How ranks wait for a cause: the cycle, or the longest waits."""
        shown = cause.waits if cause.kind in ("deadlock", "repeating") else [] if cause.kind == "parted" else cause.waits[:LINES_MAX]
        return [self.wait(wait) for wait in shown[:4 * LINES_MAX]] + (["..."] if len(cause.waits) > len(shown[:4 * LINES_MAX]) and shown else [])

    def absent(self, found):
        """A line if ranks were found nowhere and no cause says why."""
        absent, nodes = self._graph.absent_ranks(), sorted({process.node for process in self._graph.processes if process.pid})
        if not absent or any(cause.kind in ("node", "ended") for cause in found):
            return []
        return [f"{'Rank' if len(absent) == 1 else 'Ranks'} {ranges(absent)} {'was' if len(absent) == 1 else 'were'} found on none of "
                f"{', '.join(nodes[:NAMED_MAX])}{'...' if len(nodes) > NAMED_MAX else ''}: --nodes names more."]

    def nobody_waits(self):
        graph = self._graph
        launchers = sorted({(process.launcher.command, process.launcher.pid) for process in graph.processes if process.launcher.pid})
        ranks = [f"{number_of} {words}" for state, words in _NOBODY_WAITS.items() if (number_of := graph.states.count(state))]
        longest = max((process.no_call_s for process in graph.processes), default=0.0)
        text = f"No rank waits for another ({counted(graph.seen, 'rank')}: {', '.join(ranks)}"
        text += f"; the longest without a call for {seconds(longest)})" if longest else ")"
        return text + (f". If the job hangs, its ranks compute, or wait for {launchers[0][0]} (process {launchers[0][1]})." if launchers else
                       ". If the job hangs, its ranks compute, or wait for something other than messages.")


def _signal(number):
    try:
        return signal.Signals(number).name
    except ValueError:
        return f"signal {number}"


def doing(process):
    """What the kernel shows of a process that makes no call."""
    if process.state == "R":
        return "it computes"
    if process.state == "D":
        return f"it waits for a disk or a file server{_in(process)}"
    if process.state == "Z":
        return "it has ended"
    return f"it sleeps in the kernel{_in(process)}"


def _in(process):
    return f" ({process.sleeps_in})" if process.sleeps_in else ""


def answer(graph, found):
    """The lines of the answer, the first one names the culprit."""
    text = Text(graph)
    if not found:
        return [text.nobody_waits(), *text.absent(found)]
    first, *others = found
    lines = [text.sentence(first)]
    if text.remedy(first):
        lines.append(f"To continue: {text.remedy(first)}")
    lines += [f"  {line}" for line in text.lines(first)]
    lines += [f"Also: {text.sentence(cause)}" for cause in others[:3]]
    return lines + text.absent(found)
