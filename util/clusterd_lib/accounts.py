"""What a program needs to run as a user: ids, groups, environment, directory."""
import os
import pwd

from .errors import AgentError

PATH = "/usr/local/bin:/usr/bin:/bin"
_PASSED_ON = ("LANG", "TMPDIR", "VCLUSTER_ID", "VCLUSTER_NAME", "VCLUSTER_NODE", "SGE_ROOT", "SGE_CELL", "SGE_QMASTER_PORT", "SGE_EXECD_PORT")


def find(user):
    """The account; AgentError if there is none, or if it is root's."""
    try:
        account = pwd.getpwnam(user)
    except KeyError as error:
        raise AgentError(f"there is no account '{user}' on this node") from error
    if account.pw_uid == 0:
        raise AgentError("jobs do not run as root: use another account")
    return account


def options(account, **environment):
    """Arguments of subprocess.Popen."""
    home = account.pw_dir if os.path.isdir(account.pw_dir) else "/"
    values = {name: os.environ[name] for name in _PASSED_ON if name in os.environ}
    values.update(PATH=PATH, HOME=home, USER=account.pw_name, LOGNAME=account.pw_name, SHELL=account.pw_shell or "/bin/sh")
    return {"user": account.pw_uid, "group": account.pw_gid, "cwd": home, "start_new_session": True, "umask": 0o077,
            "extra_groups": os.getgrouplist(account.pw_name, account.pw_gid), "env": {**values, **environment}}
