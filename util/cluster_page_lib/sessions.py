"""Users that are logged in. A secret in a cookie identifies a session; the page keeps only its hash. Each session has a
token that every form must carry. It ends with a logout, half an hour after its user was last active, or after half a
day."""
import hashlib
import hmac
import secrets
import time

IDLE_SECONDS = 1800
AGE_SECONDS = 43200
SESSIONS_OF_USER_MAX = 16


class Session:
    def __init__(self, user, now):
        self.user, self.token = user, secrets.token_urlsafe(32)
        self.began = self.active = now
        self.chosen = []  # names of nodes, for a new machine

    def accepts(self, token):
        return hmac.compare_digest(self.token.encode(), token.encode(errors="replace"))


def _hash(secret):
    return hashlib.sha256(secret.encode(errors="replace")).digest()


class Sessions:
    def __init__(self, clock=time.monotonic):
        self._clock, self._sessions = clock, {}

    def begin(self, user):
        """Opens a session and returns its secret."""
        now = self._clock()
        self._sessions = {key: one for key, one in self._sessions.items() if self._lives(one, now)}
        own = [key for key, one in self._sessions.items() if one.user == user]
        for key in own[:len(own) - SESSIONS_OF_USER_MAX + 1]:
            del self._sessions[key]
        secret = secrets.token_urlsafe(32)
        self._sessions[_hash(secret)] = Session(user, now)
        return secret

    @staticmethod
    def _lives(session, now):
        return now - session.active < IDLE_SECONDS and now - session.began < AGE_SECONDS

    def find(self, secret, active):
        """The session, or None. `active`: the user did something; a page that refreshes itself does not count."""
        session = self._sessions.get(_hash(secret)) if secret else None
        now = self._clock()
        if session is None or not self._lives(session, now):
            return None
        if active:
            session.active = now
        return session

    def end(self, secret):
        self._sessions.pop(_hash(secret), None)
