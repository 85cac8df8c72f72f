"""Processor, memory and traffic of this node, with a short past for graphs."""
import os
from collections import deque

import psutil

SAMPLES_MAX = 300  # ten minutes, one sample every two seconds


class Load:
    def __init__(self):
        self._samples = deque(maxlen=SAMPLES_MAX)
        self._traffic = {}
        self._taken_at = None
        psutil.cpu_percent()

    def take(self, wall, devices):
        counters = psutil.net_io_counters(pernic=True)
        passed = wall - self._taken_at if self._taken_at else 0
        rates = {}
        for device in devices:
            if device in counters:
                now = (counters[device].bytes_recv, counters[device].bytes_sent)
                before = self._traffic.get(device, now)
                rates[device] = [max(0, round((new - old) / passed)) if passed > 0 else 0 for new, old in zip(now, before)]
                self._traffic[device] = now
        self._taken_at = wall
        memory = psutil.virtual_memory()
        self._samples.append({"at": round(wall, 1), "cpu": psutil.cpu_percent(), "memory": memory.percent, "rates": rates})

    @property
    def latest(self):
        sample = dict(self._samples[-1]) if self._samples else {"at": 0, "cpu": 0.0, "memory": 0.0, "rates": {}}
        sample["load1"] = os.getloadavg()[0]
        return sample

    def series(self):
        return list(self._samples)
