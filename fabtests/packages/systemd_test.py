#!/usr/bin/env python3
"""The units in a systemd that boots over a copy of this system: logins and jobs work, jobs are outside of what restricts the
services and end whole, and no user takes the names of the agent.

Root only, with systemd-nspawn (Debian: systemd-container). Nothing of this system is changed: an overlay takes all writes.
"""
import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
import unittest

TOP = os.path.realpath(os.path.join(os.path.dirname(os.path.realpath(__file__)), "..", ".."))
BOOT_SECONDS = 240
AGENT = "name n1\nkey-file /etc/clusterd.key\nsubmit *\ninterfaces d0\n"
PAGE = "submit *\njobs mpirun\nprovider /opt/cluster\n"
UNIT = """[Unit]
DefaultDependencies=no
[Service]
Type=oneshot
TimeoutStartSec=200
ExecStart=/usr/bin/python3 -B /opt/cluster/inside.py
StandardOutput=file:/result
StandardError=file:/errors
ExecStopPost=/bin/systemctl --force --force poweroff
"""
# Runs inside, as root, and prints what the test looks at.
INSIDE = r"""
import asyncio, http.client, json, os, pwd, re, ssl, subprocess, sys, tempfile, time, websockets
from urllib.parse import urlencode
sys.path.insert(0, "/opt/cluster/util")
from clusterd_lib import query
found, public = {}, tempfile.gettempdir()

def sh(command):
    return subprocess.run(command, shell=True, capture_output=True, text=True).stdout

def taken():
    return sh('''setpriv --reuid 65534 --clear-groups python3 -c '
import socket
for family, kind, where in ((1, 1, "\\0clusterd-1"), (2, 1, ("0.0.0.0", 7947)), (2, 2, ("10.9.0.1", 7947)), (2, 2, ("239.255.79.47", 7947))):
    one = socket.socket(family, kind)
    for option in (2, 15) if family == 2 else ():
        one.setsockopt(1, option, 1)
    try:
        one.bind(where)
        print(where, end=" ")
    except OSError:
        pass
' ''')

def alive():
    return len(sh("pgrep -x sleep").split())

class Browser:
    cookie = token = ""

    def ask(self, method, path, fields=None):
        context = ssl.create_default_context()
        context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
        connection = http.client.HTTPSConnection("127.0.0.1:8443", context=context, timeout=20)
        connection.request(method, path, urlencode({"token": self.token, **fields}) if fields is not None else None, {
            "cookie": self.cookie, "origin": "https://127.0.0.1:8443", "content-type": "application/x-www-form-urlencoded"})
        answer = connection.getresponse()
        text = answer.read().decode()
        if answer.headers["set-cookie"]:
            self.cookie = answer.headers["set-cookie"].partition(";")[0]
        token = re.search(r'name="token" value="([^"]+)"', text)
        self.token = token.group(1) if token else self.token
        return answer.status, text, answer.headers["location"]

    def submit(self, script):
        return self.ask("POST", "/jobs/new", {"name": "a", "nodes": "1", "ranks": "1", "minutes": "5", "program": "", "arguments": "",
                                              "environment": 'V=a "q" $x `y` \\ z', "script": script})[2]

    def until(self, job, *states):
        for _ in range(200):
            state = re.search(r'id="job-state"[^>]* class="state ([a-z]+)"', self.ask("GET", job + "/part")[1]).group(1)
            if state in states:
                break
            time.sleep(0.1)
        return state

sh("useradd -m -s /bin/sh sam; echo sam:right | chpasswd; useradd -m old; echo old:right | chpasswd; chage -E 0 old")
sh("ip link set lo up; ip link add d0 type veth peer name d1; ip link set d1 up; ip addr add 10.9.0.1/24 dev d0; ip link set d0 up")
sh("systemctl start dbus.socket dbus systemd-tmpfiles-setup; rm -f /run/nologin; systemctl start clusterd.socket clusterd cluster-page")
for _ in range(300):
    if "cluster-page: https" in sh("journalctl -u cluster-page") and "1 rails" in sh("journalctl -u clusterd"):
        break
    time.sleep(0.2)
else:
    sys.exit("the services have not started: " + sh("journalctl -o cat -u cluster-page -u clusterd"))
found["taken"] = taken()
sh("systemctl stop clusterd")
found["taken while no agent runs"] = taken()
sh("systemctl start clusterd")
found["nodes"] = [node["name"] for node in query.ask_locally("status", {})["nodes"]]
sh("setpriv --reuid sam --regid sam --init-groups env CLUSTER_JOB=7 python3 -B /opt/cluster/util/cluster-remote n1 "
   "'setsid sleep 1111 & echo $CLUSTER_JOB $(id -un) $(grep NoNewPrivs /proc/self/status) > $HOME/out'")
out = os.path.join(os.path.expanduser("~sam"), "out")
for _ in range(100):
    if os.path.exists(out) and os.path.getsize(out):
        break
    time.sleep(0.1)
found["command"] = open(out).read().split()
found["left by a command"] = alive()
found["nodes with processes"] = query.ask_locally("end-job-on", {"user": "sam", "job": "7", "nodes": ["n1"]})
found["left after its end"] = alive()
page = Browser()
found["expired"] = page.ask("POST", "/login", {"user": "old", "password": "right"})[0]
found["login"] = page.ask("POST", "/login", {"user": "sam", "password": "right"})[0]
page.ask("GET", "/")
job = page.submit('''#!/bin/sh
echo "$V"; id -un; grep NoNewPrivs /proc/self/status; touch ''' + public + '''/mine; env -i setsid sleep 1222 & sleep 2; exit 3''')
found["job"] = page.until(job, "failed", "ended")
found["output"] = re.sub("<[^>]+>", "", page.ask("GET", job + "/output?from=0")[1]).split("\n")
found["public"] = os.path.exists(public + "/mine")
found["left by a job"] = alive()
job = page.submit("#!/bin/sh\nenv -i setsid sleep 1333 & sleep 1444\n")
found["running"] = page.until(job, "running")
page.ask("POST", job + "/cancel", {})
found["cancelled"] = page.until(job, "cancelled")
found["left by a cancelled job"] = alive()
page.ask("POST", "/choose", {"node": "n1"})
page.ask("POST", "/machines/save", {"name": "lab"})
page.ask("POST", "/files/edit", {"path": "", "name": "note", "text": "a $HOME b"})
for name, path in (("machine", ".config/cluster/machines.json"), ("file", "note")):
    path = os.path.join(os.path.expanduser("~sam"), path)
    found[name] = [open(path).read().split(), pwd.getpwuid(os.stat(path).st_uid).pw_name] if os.path.exists(path) else None

async def talk():
    context = ssl.create_default_context()
    context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
    async with websockets.connect("wss://127.0.0.1:8443/terminal/socket", ssl=context, origin="https://127.0.0.1:8443",
                                  extra_headers={"cookie": page.cookie}) as terminal:
        await terminal.send(json.dumps({"token": page.token, "machine": "lab", "rows": 24, "columns": 80}))
        await terminal.send(b"env -i setsid sleep 1555 & grep NoNewPrivs /proc/self/status; echo $CLUSTER_MACHINE-$(id -un).\n")
        said = ""
        while "lab-sam." not in said:
            piece = await asyncio.wait_for(terminal.recv(), 30)
            said += piece if isinstance(piece, str) else piece.decode()
        for _ in range(100):
            if alive():
                break
            await asyncio.sleep(0.1)
        return said, alive()

found["terminal"], found["left in a terminal"] = asyncio.run(talk())
for _ in range(100):
    if "terminal closed" in sh("journalctl -o cat -u cluster-page -g ^audit:"):
        break
    time.sleep(0.1)
found["left by a terminal"] = alive()
found["audit"] = [json.loads(line.partition("audit: ")[2])["event"] for line in sh("journalctl -o cat -u cluster-page -g ^audit:").splitlines()]
print(json.dumps(found))
"""


def skip(why):
    print(f"skipped: {why}")
    sys.exit(77)


class Booted(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        place = tempfile.mkdtemp(prefix="systemd-test-", dir="/var/tmp")
        cls.addClassCleanup(shutil.rmtree, place, ignore_errors=True)
        space, root = os.path.join(place, "space"), os.path.join(place, "root")
        os.mkdir(root)
        os.mkdir(space)
        cls.mount("tmpfs", "tmpfs", space)
        for name in ("upper", "work"):
            os.mkdir(os.path.join(space, name))
        cls.mount("overlay", "-o", f"lowerdir=/,upperdir={space}/upper,workdir={space}/work", "overlay", root)
        cls.fill(root)
        subprocess.run(["systemd-nspawn", "-q", "--register=no", "--keep-unit", f"--directory={root}", "--private-network", "--boot",
                        "systemd.unit=test.service"], stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, timeout=BOOT_SECONDS, check=False)
        try:
            with open(os.path.join(root, "result"), encoding="utf-8") as file:
                cls.found = json.load(file)
        except (OSError, ValueError):
            with open(os.path.join(root, "errors"), encoding="utf-8") as file:
                raise AssertionError(file.read()) from None

    @classmethod
    def mount(cls, kind, *words):
        subprocess.run(["mount", "-t", kind, *words], check=True)
        cls.addClassCleanup(subprocess.run, ["umount", words[-1]], check=True)

    @staticmethod
    def fill(root):
        def write(path, text, mode=0o644):
            with open(os.open(os.path.join(root, path), os.O_WRONLY | os.O_CREAT | os.O_TRUNC, mode), "w", encoding="utf-8") as file:
                file.write(text)

        copied = os.path.join(root, "opt", "cluster")
        shutil.copytree(os.path.join(TOP, "util"), os.path.join(copied, "util"))
        subprocess.run([sys.executable, "-B", "-m", "cluster_page_lib.assets", os.path.join(copied, "build", "page-assets")], check=True,
                       stdout=subprocess.DEVNULL, env={**os.environ, "PYTHONPATH": os.path.join(TOP, "util")})
        shutil.copy(os.path.join(TOP, "CMakeLists.txt"), copied)
        for name in ("clusterd.service", "clusterd.socket", "cluster-page.service"):
            shutil.copy(os.path.join(TOP, "packaging", name), os.path.join(root, "etc", "systemd", "system"))
        for name in ("clusterd", "cluster-page"):
            target = os.path.join(root, "usr", "sbin", name)
            if os.path.lexists(target):
                os.unlink(target)
            os.symlink(f"/opt/cluster/util/{name}", target)
        shutil.copy(os.path.join(TOP, "packaging", "pam", "debian"), os.path.join(root, "etc", "pam.d", "cluster-page"))
        write("etc/clusterd.conf", AGENT)
        write("etc/cluster-page.conf", PAGE)
        write("etc/clusterd.key", "k" * 32, 0o600)
        write("opt/cluster/inside.py", INSIDE)
        write("etc/systemd/system/test.service", UNIT)

    def test_no_user_takes_the_names_of_the_agent(self):
        self.assertEqual((self.found["taken"], self.found["taken while no agent runs"], self.found["nodes"]), ("", "", ["n1"]))

    def test_a_command_runs_without_restrictions_and_ends_with_its_job(self):
        self.assertEqual(self.found["command"], ["7", "sam", "NoNewPrivs:", "0"])
        self.assertEqual([self.found[name] for name in ("left by a command", "nodes with processes", "left after its end")], [1, [], 0])

    def test_an_account_that_has_expired_does_not_get_in(self):
        self.assertEqual((self.found["expired"], self.found["login"]), (401, 303))

    def test_a_job_runs_without_restrictions_and_ends_whole(self):
        self.assertEqual(self.found["job"], "failed")
        self.assertIn("a &#34;q&#34; $x `y` \\ z", "\n".join(self.found["output"]))
        self.assertRegex("\n".join(self.found["output"]), re.compile(r"^sam\nNoNewPrivs:\t0$", re.MULTILINE))
        self.assertEqual((self.found["public"], self.found["left by a job"]), (True, 0))
        self.assertEqual([self.found[name] for name in ("running", "cancelled", "left by a cancelled job")], ["running", "cancelled", 0])

    def test_machines_and_files_are_those_of_the_user(self):
        self.assertEqual(self.found["machine"], [["{", '"lab":', "[", '"n1"', "]", "}"], "sam"])
        self.assertEqual(self.found["file"], [["a", "$HOME", "b"], "sam"])

    def test_a_terminal_runs_without_restrictions_and_ends_whole(self):
        self.assertRegex(self.found["terminal"], r"NoNewPrivs:\s+0")
        self.assertEqual((self.found["left in a terminal"], self.found["left by a terminal"]), (1, 0))

    def test_the_journal_has_the_audit_log(self):
        for event in ("login refused", "login", "job submitted", "job started", "job over", "job cancelled", "file written", "terminal opened", "terminal closed"):
            self.assertIn(event, self.found["audit"])


if __name__ == "__main__":
    if os.geteuid() != 0:
        skip("only root boots a system")
    for program in ("systemd-nspawn", "dbus-daemon", "openssl"):
        if shutil.which(program) is None:
            skip(f"no {program}")
    with open("/etc/os-release", encoding="utf-8") as release:
        if "ID=debian" not in release.read():
            skip("the PAM file is that of Debian")
    if subprocess.run(["/usr/bin/python3", "-c", "import starlette, uvicorn, jinja2, pam, psutil, prometheus_client, websockets"],
                      capture_output=True, check=False).returncode:
        skip("Python packages are missing (util/setup --for page)")
    unittest.main()
