"""A page over TLS on loopback, with an agent and accounts that a test made up, and a browser's part of HTTP."""
import contextlib
import http.client
import os
import re
import socket
import ssl
import sys
import tempfile
import threading
import time
from urllib.parse import urlencode

sys.path.insert(0, os.path.join(os.path.dirname(os.path.realpath(__file__)), "..", "..", "util"))
from clusterd_lib import interpreter, roles  # noqa: E402
from clusterd_lib.errors import AgentError  # noqa: E402

ROLES = {"eve": roles.NONE, "lea": roles.LOOK, "sam": roles.SUBMIT, "nat": roles.SUBMIT, "ole": roles.OPERATE}


def with_packages(*needed):
    """Goes on as Debian's python3 if only that has the packages; returns whether they are there."""
    needed = needed or ("starlette", "uvicorn", "jinja2", "websockets")
    with contextlib.suppress(AgentError):
        interpreter.with_packages(install=False, needed=needed)
    return not interpreter.missing(needed)


class Agent:
    """Answers as the agent of a node of a cluster of so many nodes."""

    def __init__(self, nodes=4):
        self.orders, self.ended, self.left = [], [], []
        self.nodes = [{"name": f"node{number}", "state": "up", "reason": "", "order": "", "order_reason": "", "since": time.time(),
                       "rails": [{"device": "eth0", "address": "10.64.0.1", "mtu": 1500}], "cpu": 3.0, "memory": 20.0, "load": 0.1,
                       "endpoints": 0, "links_down": 0} for number in range(1, nodes + 1)]
        names = [node["name"] for node in self.nodes[:64]]
        self.links = [{"from": one, "peer": other, "rail": 0, "state": "up", "loss": 0.0, "rtt_us": 90.0, "rtt_min_us": 80.0,
                       "path_mtu": 1500, "mtu": 1500} for one in names for other in names if one != other]
        self.history, self.endpoints = [], []
        self.down = False
        self.processes = []  # of the first node, as cluster-why has them

    def ask(self, operation, arguments):
        if self.down:
            raise AgentError("no agent is running on this node")
        if operation == "status":
            # A value of its own each time, as an answer is.
            return {"cluster": {"seen_from": "node1", "nodes": len(self.nodes)}, "nodes": self.nodes, "links": self.links,
                    "findings": [], "endpoints": self.endpoints, "history": self.history}
        if operation == "order":
            self.orders.append(arguments)
            return f"{arguments['order']} by {arguments['by']}"
        if operation == "end-job-on":
            self.ended.append(arguments)
            return self.left
        if operation == "why":
            return "endpoint 1 waits for node3 <script>alert(1)</script>"
        if operation == "ranks":
            return {"seen_from": "node1", "nodes": [{"name": "node1", "addresses": ["10.64.0.1"], "processes": self.processes}]}
        return [{"at": time.time(), "cpu": 5.0, "memory": 20.0, "rates": {"eth0": [1000, 2000]}}]


class Page:
    """A running page. Passwords are "right"."""

    def __init__(self, agent, jobs=None):
        from cluster_page_lib import accounts, cluster, gate, server, settings  # pylint: disable=import-outside-toplevel
        self._state = tempfile.TemporaryDirectory()
        options = settings.read(["--state", self._state.name, "--port", "1", "--jobs", "none"])
        self._accounts = accounts.Accounts
        self.context = server.context_of(options, cluster.Cluster(lambda *words: self.agent.ask(*words)), None,
                                         lambda user: ROLES.get(user, roles.NONE), jobs)
        self.renew(agent)
        cluster.FRESH_SECONDS = 0.0
        self._server = server.configured(options, self.context)
        self._server.install_signal_handlers = lambda: None
        listener = gate.Listener(fileno=socket.create_server(("127.0.0.1", 0)).detach())
        self.port = listener.getsockname()[1]
        self._thread = threading.Thread(target=self._server.run, kwargs={"sockets": [listener]}, daemon=True)
        self._thread.start()

    def renew(self, agent):
        """Another agent; no password was ever wrong."""
        self.agent, self.passwords_asked = agent, 0
        self.context.accounts = self._accounts(self._password_is_right)

    def _password_is_right(self, _user, password):
        self.passwords_asked += 1
        return password == "right"

    def browser(self, user=None):
        found = Browser(self.port)
        if user:
            assert found.log_in(user, "right").status == 303
        return found

    def stop(self):
        self._server.should_exit = True
        self._thread.join(10)
        self._state.cleanup()


class Answer:
    def __init__(self, response):
        self.status, self.headers, self.text = response.status, response.headers, response.read().decode()


class Browser:
    """Keeps the cookie, sends what a browser sends."""

    def __init__(self, port, source="127.0.0.1"):
        self.source = source
        self.host = f"127.0.0.1:{port}"
        self.cookie, self.token = "", ""

    def request(self, method, path, body=None, headers=None):
        context = ssl.create_default_context()
        context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
        connection = http.client.HTTPSConnection(self.host, timeout=10, context=context, source_address=(self.source, 0))
        sent = {"cookie": self.cookie} if self.cookie else {}
        connection.request(method, path, body, {**sent, **(headers or {})})
        answer = Answer(connection.getresponse())
        connection.close()
        if "set-cookie" in answer.headers:
            self.cookie = answer.headers["set-cookie"].partition(";")[0]
        return answer

    def get(self, path, **headers):
        answer = self.request("GET", path, headers=headers)
        token = re.search(r'name="token" value="([^"]+)"', answer.text)
        self.token = token.group(1) if token else self.token
        return answer

    def post(self, path, fields, headers=None):
        return self.request("POST", path, urlencode({"token": self.token, **fields}), {
            "content-type": "application/x-www-form-urlencoded", "origin": f"https://{self.host}", **(headers or {})})

    def log_in(self, user, password):
        answer = self.post("/login", {"user": user, "password": password})
        if answer.status == 303:
            self.get("/")
        return answer
