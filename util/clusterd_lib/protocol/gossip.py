"""News that this agent still has to pass on: the newest record of each node.

Each record leaves a number of times that grows with the logarithm of the number of nodes: an epidemic needs that to
reach all (SWIM, section 4.1). Records that have left least often go first.
"""
import math

TRANSMISSIONS_FACTOR = 3


class Gossip:
    def __init__(self):
        self._left = {}  # name -> (record, how often it may still leave)

    def __len__(self):
        return len(self._left)

    def add(self, record, nodes):
        self._left[record.name] = (record, TRANSMISSIONS_FACTOR * math.ceil(math.log2(nodes + 1)))

    def take(self, count):
        """Up to `count` records for one message."""
        if not self._left:
            return ()
        names = self._left
        if len(names) > count:
            names = sorted(names, key=lambda name: -self._left[name][1])[:count]
        chosen = []
        for name in list(names):
            record, left = self._left.pop(name)
            chosen.append(record)
            if left > 1:
                self._left[name] = (record, left - 1)
        return tuple(chosen)
