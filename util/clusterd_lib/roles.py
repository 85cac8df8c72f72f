"""The roles of users: look, submit jobs, operate; each includes those before it."""
import grp
import pwd

NONE, LOOK, SUBMIT, OPERATE = range(4)
NAMES = ("none", "look", "submit", "operate")


class Roles:
    """Lists of user names, @groups, and * for every account."""

    def __init__(self, look, submit, operate):
        self._lists = ((OPERATE, operate), (SUBMIT, submit), (LOOK, look))

    def of(self, user):
        try:
            account = pwd.getpwnam(user)
        except KeyError:
            return NONE
        groups = {group.gr_name for group in grp.getgrall() if user in group.gr_mem}
        try:
            groups.add(grp.getgrgid(account.pw_gid).gr_name)
        except KeyError:
            pass  # an account whose group has no name
        for role, wanted in self._lists:
            if any(word == "*" or word == user or word[:1] == "@" and word[1:] in groups for word in wanted):
                return role
        return NONE
