"""PAM checks passwords (service `cluster-page`; without /etc/pam.d/cluster-page PAM uses `other`).

The page counts wrong passwords by user and address, and by address alone. After too many it refuses the caller for a
while without checking the password. The number of counters is bounded.
"""
import asyncio
import time
from collections import OrderedDict
from concurrent.futures import ThreadPoolExecutor

SERVICE = "cluster-page"
WRONG_MAX = {"user": 5, "address": 30}
FORGET_SECONDS = 900.0
COUNTED_MAX = 10_000
TEXT_MAX = 256


class TooManyWrong(Exception):
    """The caller has to wait for `seconds`."""

    def __init__(self, seconds):
        super().__init__(f"wait {seconds:.0f} s")
        self.seconds = seconds


class WrongPasswords:
    """Counts wrong passwords by key; each one beyond the limit doubles the wait, up to FORGET_SECONDS."""

    def __init__(self):
        self._counts = OrderedDict()  # key -> (count, time of the last)

    def wait(self, key, limit, now):
        """Seconds until the next password is checked."""
        count, last = self._counts.get(key, (0, now))
        if count < limit:
            return 0.0
        return max(0.0, last + min(FORGET_SECONDS, 10.0 * 2 ** min(count - limit, 10)) - now)

    def add(self, key, now):
        count, last = self._counts.pop(key, (0, now))
        self._counts[key] = (1 if now - last > FORGET_SECONDS else count + 1, now)
        while len(self._counts) > COUNTED_MAX:
            self._counts.popitem(last=False)

    def forget(self, key):
        self._counts.pop(key, None)

    def take_back(self, key):
        """Takes back one count: the password was right."""
        count, last = self._counts.get(key, (0, 0.0))
        if count > 1:
            self._counts[key] = (count - 1, last)
        else:
            self.forget(key)


def ask_pam(user, password):
    import pam  # pylint: disable=import-outside-toplevel
    return pam.pam().authenticate(user, password, service=SERVICE)


class Accounts:
    """`ask(user, password)` may block; it runs in a thread of its own."""

    def __init__(self, ask=ask_pam, clock=time.monotonic):
        self._ask, self._clock = ask, clock
        self._wrong = WrongPasswords()
        self._threads = ThreadPoolExecutor(4, thread_name_prefix="pam")

    async def check(self, user, password, address):
        """True if the password is right; raises TooManyWrong before it checks the password."""
        now = self._clock()
        keys = (("user", (user[:TEXT_MAX], address)), ("address", address))
        wait = max(self._wrong.wait(key, WRONG_MAX[kind], now) for kind, key in keys)
        if wait > 0:
            raise TooManyWrong(wait)
        for _, key in keys:  # counts before it asks PAM, so that many concurrent tries count as many
            self._wrong.add(key, now)
        good = bool(user) and not set("\0\n") & set(user + password) and len(user) <= TEXT_MAX and len(password) <= TEXT_MAX \
            and await asyncio.get_running_loop().run_in_executor(self._threads, self._ask, user, password)
        if good:
            self._wrong.forget(keys[0][1])
            self._wrong.take_back(keys[1][1])  # wrong passwords of other users from that address still count
        return bool(good)
