"""The page without a browser: logins, the rights of each role, refused requests, the view of a large cluster."""
import asyncio.constants
import contextlib
import json
import socket
import ssl
import sys
import time
import unittest
from unittest import mock

import doubles

if not doubles.with_packages():
    print("skipped: Starlette, uvicorn or Jinja2 is missing")
    sys.exit(77)

from cluster_page_lib import gate  # noqa: E402
from cluster_page_lib.web import forms  # noqa: E402


class Served(unittest.TestCase):
    nodes = 4

    @classmethod
    def setUpClass(cls):
        cls.page = doubles.Page(doubles.Agent())
        cls.addClassCleanup(cls.page.stop)

    def setUp(self):
        self.agent = doubles.Agent(self.nodes)
        self.page.renew(self.agent)


class Login(Served):
    def test_nothing_is_shown_without_a_login(self):
        newcomer = self.page.browser()
        for route in self.page.context.routes:
            if route.endpoint.needed_role is not None and "GET" in getattr(route, "methods", ()):  # of the WebSocket: desk_test.py
                answer = newcomer.get(route.path.replace("{name}", "node1").replace("{job}", "1"))
                self.assertEqual((answer.status, answer.headers["location"]), (303, "/login"), route.path)
        self.assertEqual(newcomer.get("/static/page.css").status, 200)
        self.assertEqual(newcomer.get("/static/../settings.py").status, 404)

    def test_wrong_passwords_are_refused_and_then_not_even_asked(self):
        newcomer = self.page.browser()
        answers = [newcomer.log_in("lea", "wrong").status for _ in range(7)]
        self.assertEqual(answers, [401] * 5 + [429] * 2)
        self.assertEqual(self.page.passwords_asked, 5)
        self.assertEqual(newcomer.log_in("lea", "right").status, 429)
        self.assertEqual(newcomer.log_in("ole", "right").status, 303)  # another account, from the same address

    def test_an_account_without_a_role_does_not_get_in(self):
        self.assertEqual(self.page.browser().log_in("eve", "right").status, 403)

    def test_a_session_ends_with_the_logout(self):
        lea = self.page.browser("lea")
        kept = lea.cookie
        self.assertEqual(lea.post("/logout", {}).status, 303)
        lea.cookie = kept
        self.assertEqual(lea.get("/").status, 303)

    def test_the_cookie_and_the_headers_are_strict(self):
        newcomer = self.page.browser()
        cookie = newcomer.post("/login", {"user": "lea", "password": "right"}).headers["set-cookie"]
        for word in ("__Host-", "HttpOnly", "Secure", "SameSite=strict", "Path=/"):
            self.assertIn(word, cookie)
        headers = newcomer.get("/").headers
        self.assertNotIn("unsafe", headers["content-security-policy"])
        self.assertIn("default-src 'none'", headers["content-security-policy"])
        self.assertEqual(headers["x-frame-options"], "DENY")
        self.assertEqual(headers["cache-control"], "no-store")


class Forgery(Served):
    def test_forms_of_others_are_refused(self):
        lea = self.page.browser("lea")
        cases = [({}, {"origin": "https://evil.example"}), ({}, {"origin": "null"}), ({"token": "x"}, {}), ({"token": ""}, {}),
                 ({}, {"sec-fetch-site": "cross-site"}), ({"token": self.page.browser("sam").token}, {})]
        for fields, headers in cases:
            self.assertEqual(lea.post("/logout", fields, headers).status, 403, (fields, headers))
        self.assertEqual(lea.get("/").status, 200)

    def test_what_is_no_form_is_refused(self):
        lea = self.page.browser("lea")
        self.assertEqual(lea.post("/logout", {}, {"content-type": "text/plain"}).status, 400)
        self.assertEqual(lea.post("/logout", {"x": "y" * 300_000}).status, 413)
        self.assertEqual(lea.request("DELETE", "/").status, 405)


class Connections(Served):
    def connected(self, source="127.0.0.2"):
        opened = socket.create_connection(("127.0.0.1", self.page.port), timeout=20, source_address=(source, 0))
        self.addCleanup(opened.close)
        return opened

    def encrypted(self):
        context = ssl.create_default_context()
        context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
        opened = context.wrap_socket(self.connected())
        self.addCleanup(opened.close)
        return opened

    def is_closed(self, opened):
        try:
            return opened.recv(1000) == b""
        except ConnectionResetError:
            return True

    def test_silent_connections_of_one_address_keep_out_no_other(self):
        opened = [self.connected() for _ in range(300)]
        self.assertTrue(self.is_closed(opened[-1]))
        self.assertEqual(self.page.browser().get("/login").status, 200)
        for one in opened:
            one.close()
        silent = [self.encrypted() for _ in range(gate.FROM_ONE_ADDRESS_MAX)]
        self.assertTrue(self.is_closed(self.connected()))
        self.assertEqual(self.page.browser().get("/login").status, 200)
        for one in silent:
            one.close()
        for _ in range(400):  # places are given back
            with contextlib.suppress(OSError):
                if doubles.Browser(self.page.port, "127.0.0.2").get("/login").status == 200:
                    return
            time.sleep(0.01)
        self.fail("the places of closed connections are not given back")

    def test_silent_and_slow_ones_are_closed_soon(self):
        with mock.patch.object(gate, "HEAD_SECONDS", 0.3), mock.patch.object(asyncio.constants, "SSL_HANDSHAKE_TIMEOUT", 0.3):
            self.assertTrue(self.is_closed(self.connected()))
            self.assertTrue(self.is_closed(self.encrypted()))
            slow = self.encrypted()
            slow.sendall(b"GET /login HTTP/1.1\r\n")
            self.assertTrue(self.is_closed(slow))
            second = self.encrypted()
            second.sendall(b"GET /login HTTP/1.1\r\nhost: a\r\n\r\n")
            self.assertTrue(second.recv(1000).startswith(b"HTTP/1.1 200"))
            second.sendall(b"GET ")
            while not self.is_closed(second):
                pass
        with mock.patch.object(forms, "SECONDS_MAX", 0.3):
            slow = self.encrypted()
            host = f"127.0.0.1:{self.page.port}"
            slow.sendall(f"POST /login HTTP/1.1\r\nhost: {host}\r\norigin: https://{host}\r\ncontent-length: 9\r\n\r\na".encode())
            self.assertTrue(slow.recv(1000).startswith(b"HTTP/1.1 408"))


class Overview(Served):
    def test_four_nodes_their_links_and_the_picture(self):
        text = self.page.browser("lea").get("/").text
        for number in range(1, 5):
            self.assertIn(f'data-node="node{number}"', text)
        self.assertIn("<svg", text)
        self.assertEqual(text.count('<td class="good"'), 12)

    def test_nothing_is_wrong_only_if_nothing_is(self):
        lea = self.page.browser("lea")
        self.assertIn("Nothing is wrong with cables", lea.get("/").text)
        self.agent.nodes[1]["state"] = "down"
        self.assertNotIn("Nothing is wrong", lea.get("/").text)
        self.agent.nodes[1]["state"], self.agent.links[0]["loss"] = "up", 0.5
        self.assertNotIn("Nothing is wrong", lea.get("/").text)

    def test_a_part_is_sent_again_only_when_it_changed(self):
        lea = self.page.browser("lea")
        have = lea.get("/part/links").text.partition("have=")[2].partition('"')[0]
        self.assertEqual(lea.get(f"/part/links?have={have}").status, 204)
        self.agent.links[0]["state"] = "down"
        answer = lea.get(f"/part/links?have={have}")
        self.assertEqual((answer.status, answer.text.count('<td class="down"')), (200, 1))

    def test_text_from_the_network_is_text(self):
        self.agent.nodes[0]["reason"] = self.agent.nodes[1]["name"] = "<script>alert(1)</script>"
        self.agent.history.append({"number": 1, "at": 0.0, "kind": "state", "node": "<b>", "text": "\"><img src=x>"})
        text = self.page.browser("lea").get("/").text
        for markup in ("<script>alert", "<b>", "<img"):
            self.assertNotIn(markup, text)

    def test_the_picture_gives_no_orders_to_htmx(self):
        self.assertRegex(self.page.browser("lea").get("/").text, r"<div class=\"picture\" hx-disable [^>]*><svg")

    def test_an_agent_that_is_gone_is_said(self):
        lea = self.page.browser("lea")
        self.agent.down = True
        answer = lea.get("/part/nodes", **{"hx-request": "true"})
        self.assertEqual(answer.status, 503)
        self.assertIn("no agent is running", answer.text)


class Node(Served):
    def test_a_node_has_its_links_and_its_past(self):
        lea = self.page.browser("lea")
        self.assertEqual(lea.get("/node/node2").text.count('<th scope="row">node'), 3)
        self.assertEqual(json.loads(lea.get("/node/node2/series").text)["devices"], ["eth0 in", "eth0 out"])
        self.assertIn("&lt;script&gt;", lea.get("/node/node2/why").text)
        self.assertEqual(lea.get("/node/node9").status, 503)

    def test_only_operators_give_orders_and_in_their_own_name(self):
        for user in ("lea", "sam"):
            self.assertEqual(self.page.browser(user).post("/node/node2/order", {"order": "drain"}).status, 403)
            self.assertNotIn("Isolate</button>", self.page.browser(user).get("/node/node2").text)
        ole = self.page.browser("ole")
        self.assertEqual(ole.post("/node/node2/order", {"order": "drain", "reason": "new  disk", "by": "root"}).status, 303)
        self.assertEqual(self.agent.orders, [{"by": "ole", "node": "node2", "order": "drain", "reason": "new disk"}])
        for fields in ({"order": "forget"}, {"order": "drain", "reason": "x" * 41}):
            self.assertEqual(ole.post("/node/node2/order", fields).status, 400)
        self.assertEqual(ole.post("/node/node9/order", {"order": "drain"}).status, 503)
        self.assertEqual(len(self.agent.orders), 1)


    def test_isolating_a_node_asks_first(self):
        text = self.page.browser("ole").get("/node/node2").text
        self.assertRegex(text, r'<button [^>]*value="isolate"[^>]* data-ask="Isolate node2\?')
        self.assertNotRegex(text, r'<button [^>]*value="(drain|resume)"[^>]* data-ask')


class Large(Served):
    nodes = 1000

    def test_states_from_the_agent_are_text(self):
        self.agent.nodes[3]["state"] = "</title></rect></svg><form hx-post='/jobs/new' hx-trigger='load'></form>"
        self.assertNotIn("<form hx-post", self.page.browser("lea").get("/").text)

    def test_a_thousand_nodes_come_by_pages(self):
        self.agent.nodes[777]["state"] = "down"
        lea = self.page.browser("lea")
        text = lea.get("/").text
        self.assertEqual(text.count("data-node="), 50)
        self.assertIn("page 1 of 20", text)
        self.assertIn('data-node="node1000"', lea.get("/?page=19").text)
        self.assertEqual(lea.get("/?state=down").text.count("data-node="), 1)
        self.assertLess(len(text), 400_000)


if __name__ == "__main__":
    unittest.main()
