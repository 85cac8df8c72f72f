"""What users have asked for, as they wrote it: the page of a job shows it, and fills the form with it for another run.

Queues know jobs in words of their own; this is the same for all of them. Only root reads the files, since environments can
hold secrets.
"""
import contextlib
import json
import os

KEPT_MAX = 2000
FIELDS = ("name", "nodes", "ranks", "minutes", "program", "arguments", "environment", "script", "machine")


class Records:
    def __init__(self, directory):
        self._directory = directory

    def _path(self, kind, number):
        return os.path.join(self._directory, f"{kind}-{number}.json")

    def keep(self, kind, number, user, form):
        os.makedirs(self._directory, mode=0o700, exist_ok=True)
        entry = {"user": user, **{name: form.get(name, "") for name in FIELDS}}
        with open(os.open(self._path(kind, number), os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600), "w", encoding="utf-8") as file:
            json.dump(entry, file)
        self._remove_old()

    def _remove_old(self):
        entries = list(os.scandir(self._directory))
        for entry in sorted(entries, key=lambda entry: entry.stat().st_mtime)[:max(0, len(entries) - KEPT_MAX)]:
            os.remove(entry.path)

    def find(self, kind, job, called=str):
        """The fields of the form that made this job; None if this page has not submitted it. The number of a queue that was
        set up anew may mean another job, so its user and name have to be the same. `called(name)`: what the queue makes of a name."""
        with contextlib.suppress(OSError, ValueError), open(self._path(kind, job.number), encoding="utf-8") as file:
            entry = json.load(file)
            if (entry["user"], called(entry["name"].strip())) == (job.user, job.name):
                return entry
        return None
