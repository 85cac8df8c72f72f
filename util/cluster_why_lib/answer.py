"""From what was collected to the answer: as lines, or as a value for programs."""
from . import graph, jobs, report, sentence


class Answer:
    """Why a job makes no progress."""

    def __init__(self, job, collected):
        self.job, self.graph = job, graph.Graph(job.processes, collected.nodes)
        self.causes = graph.causes(self.graph, collected.span_s)
        self._text = sentence.Text(self.graph)
        named = {cause.node.name for cause in self.causes if cause.node}
        self._unanswered = [f"{node.name} gave no answer: {node.trouble}" for node in collected.nodes
                            if node.trouble and not node.down and node.name not in named]

    def lines(self, every_wait=False):
        """The first line names the culprit."""
        lines = sentence.answer(self.graph, self.causes)
        if every_wait:
            lines += ["", *(self._text.wait(one) for one in sorted(self.graph.waits, key=lambda one: -one.operation.age_s))]
        return lines + self._unanswered

    def _wait(self, one):
        return {"from": one.source, "to": one.target if one.target >= 0 else None, "operation": report.write(one.operation),
                "text": self._text.wait(one)}

    def value(self):
        ranks = [{"number": number, "does": state, **report.write(self.graph.processes[number])} for number, state in enumerate(self.graph.states)]
        causes = [{"kind": cause.kind, "text": self._text.sentence(cause), "ranks": cause.ranks, "waiting": cause.waiting,
                   "longest_s": cause.longest_s, "waits": [self._wait(one) for one in cause.waits if one.operation.kind]}
                  for cause in self.causes]
        return {"job": self.job.names, "causes": causes, "ranks": ranks, "waits": [self._wait(one) for one in self.graph.waits]}


def jobs_of(collected):
    return jobs.group([process for node in collected.nodes for process in node.processes])


def explain(collected, wanted):
    """The answer for the job that a user means; jobs.NoJob if there is none."""
    return Answer(jobs.find(jobs_of(collected), wanted, collected.local), collected)


def explain_called(collected, name, uid):
    """The answer for the job of that name of a user, whatever processes have this number."""
    return Answer(jobs.called(jobs_of(collected), name, uid), collected)
