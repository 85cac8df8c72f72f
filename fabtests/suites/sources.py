"""The sources of suites that are fetched and built: at one revision each, by commands that are shown."""
import subprocess
import sys


def run(*words):
    """Ends the program if the command fails, with the end of what it said."""
    print("+ " + " ".join(map(str, words)), flush=True)
    done = subprocess.run(list(map(str, words)), stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, check=False)
    if done.returncode != 0:
        sys.exit("\n".join(done.stdout.splitlines()[-20:]) + f"\n{words[0]} failed")


def check_out(url, revision, target):
    """Fetches it once. `url` may be a directory with a git repository."""
    if not (target / ".git").exists():
        run("git", "clone", "--quiet", "--no-checkout", url, target)
        run("git", "-C", target, "checkout", "--quiet", "--detach", revision)
