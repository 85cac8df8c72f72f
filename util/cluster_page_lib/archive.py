"""Entries that outlive the page: a file of JSON, a line each, of which the newest `kept` stay."""
import json
import os

from clusterd_lib.errors import AgentError


class Archive:
    def __init__(self, path, kept):
        self._path, self._kept = path, kept
        self.entries = self._load()

    def _load(self):
        try:
            with open(self._path, encoding="utf-8") as file:
                return [json.loads(line) for line in file][-self._kept:]
        except FileNotFoundError:
            return []
        except (OSError, ValueError) as error:
            raise AgentError(f"{self._path} cannot be read: {error}") from error

    def add(self, entries):
        """Appends; writes the file anew once it is twice as long as what is kept."""
        if not entries:
            return
        self.entries += entries
        anew = len(self.entries) >= 2 * self._kept
        if anew:
            self.entries = self.entries[-self._kept:]
        os.makedirs(os.path.dirname(self._path), mode=0o711, exist_ok=True)
        path = self._path + ".new" if anew else self._path
        with open(os.open(path, os.O_WRONLY | os.O_CREAT | (os.O_TRUNC if anew else os.O_APPEND), 0o600), "w", encoding="utf-8") as file:
            file.write("".join(json.dumps(entry) + "\n" for entry in (self.entries if anew else entries)))
        if anew:
            os.replace(path, self._path)
