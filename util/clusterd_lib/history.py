"""What has happened, as this agent saw it: the last thousand events."""
import time
from collections import Counter, deque

EVENTS_MAX = 1000


class History:
    def __init__(self):
        self._events = deque(maxlen=EVENTS_MAX)
        self._number = 0
        self.counted = Counter()  # by kind

    def add(self, kind, node, text):
        self._number += 1
        self.counted[kind] += 1
        self._events.append({"number": self._number, "at": round(time.time(), 1), "kind": kind, "node": node, "text": text})

    def latest(self, count=100):
        """The newest first."""
        return list(self._events)[-count:][::-1]
