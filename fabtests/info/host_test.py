#!/usr/bin/env python3
"""A host with a dozen interfaces of all kinds: the provider always chooses the right one, explains why not the others,
and offers what cluster-info predicts."""
import subprocess
import unittest

import endpoint_program
from endpoint_program import query, virtual_nodes

# In the order in which they are to be taken: name, how it is made, its address. What a kernel cannot make is left out.
WANTED = (
    ("macvlan0", ("link", "add", "link", "carrier0", "name", "macvlan0", "type", "macvlan"), "10.1.0.1/24"),
    ("veth0", ("link", "add", "veth0", "type", "veth", "peer", "name", "veth0far"), "10.2.0.1/24"),
    ("veth6", ("link", "add", "veth6", "type", "veth", "peer", "name", "veth6far"), "fd00:3::1/64"),
    ("ifb0", ("link", "add", "ifb0", "type", "ifb"), "10.4.0.1/24"),
    ("docker0", ("link", "add", "docker0", "type", "bridge"), "10.5.0.1/24"),
    ("vxlan0", ("link", "add", "vxlan0", "type", "vxlan", "id", "7", "dstport", "4789", "remote", "10.9.9.9"),
     "10.6.0.1/24"),
    ("nocarrier0", ("link", "add", "nocarrier0", "type", "veth", "peer", "name", "cut0"), "10.7.0.1/24"),
)
# Up or not, these are never taken: no address, only a link-local one, down.
REFUSED = (
    ("bare0", ("link", "add", "bare0", "type", "veth", "peer", "name", "bare0far"), "has no address"),
    ("local0", ("link", "add", "local0", "type", "veth", "peer", "name", "local0far"), "only a link-local address"),
    ("down0", ("link", "add", "down0", "type", "veth", "peer", "name", "down0far"), "is down"),
)


class Host(unittest.TestCase):
    """Each test has a node of its own, without the interface that a node of a cluster has."""

    @classmethod
    def setUpClass(cls):
        cls.cluster = virtual_nodes.make(len(unittest.defaultTestLoader.getTestCaseNames(cls)))
        cls.unused_nodes = iter(range(1, 100))

    def setUp(self):
        self.node = next(self.unused_nodes)
        self.assertTrue(self.ip("link", "delete", "eth0"))

    def command(self, *words):
        return self.cluster.command(self.node, *words)

    def ip(self, *words):
        return subprocess.run(self.command("ip", *words), capture_output=True, text=True, check=False).returncode == 0

    def write(self, text, path):
        self.cluster.run(self.node, "sh", "-c", f"echo {text} >{path}")

    def up(self, name):
        self.assertTrue(self.ip("link", "set", name, "up"), name)

    def make(self, name, how):
        # No other host has these addresses, so duplicate address detection is not needed.
        if not self.ip(*how):
            return False
        self.write(0, f"/proc/sys/net/ipv6/conf/{name}/accept_dad")
        return True

    def build(self):
        """Every interface that this kernel can make, up; returns the names of those that can be taken."""
        self.ip("link", "add", "carrier0", "type", "veth", "peer", "name", "carrier0far")
        for name in ("carrier0", "carrier0far"):
            self.up(name)
        taken = []
        for name, how, address in WANTED:
            if not self.make(name, how):
                continue
            taken.append(name)
            if how[-1].endswith("far"):
                self.up(how[-1])
            if name == "docker0":  # a bridge has a carrier by its ports
                self.ip("link", "set", "carrier0far", "master", name)
            self.write(1, f"/proc/sys/net/ipv6/conf/{name}/addr_gen_mode")
            self.ip("address", "add", address, "dev", name)
            self.up(name)
        for name, how, _ in REFUSED:
            self.make(name, how)
            self.up(how[-1])
            if name == "bare0":
                self.write(1, "/proc/sys/net/ipv6/conf/bare0/disable_ipv6")
            if name == "down0":
                self.ip("address", "add", "10.8.0.1/24", "dev", name)
            else:
                self.up(name)
        return taken

    def report(self, *words, **settings):
        return query("--host", *words, before=self.command(), **settings)

    def interfaces(self, **settings):
        return self.report(**settings)["interfaces"]

    def chosen(self, **settings):
        return [entry["interface"] for entry in self.interfaces(**settings) if entry["use"] == "chosen"]

    def offered(self):
        """What the provider itself offers to an application."""
        result = subprocess.run(self.command("fi_info", "-p", "cluster", "-t", "FI_EP_RDM"),
                                env=endpoint_program.environment(), capture_output=True, text=True, timeout=60, check=False)
        return [line.split(":", 1)[1].strip() for line in result.stdout.splitlines() if "domain:" in line]

    def test_the_best_is_taken_each_time(self):
        names = self.build()
        self.assertGreaterEqual(len(names), 4)
        self.assertGreaterEqual(len(self.interfaces()), 12, "a dozen, with the far ends")
        for name in names:
            with self.subTest(name):
                self.assertEqual(self.chosen(), [name])
                self.assertEqual(self.offered(), [name])
            self.ip("link", "set", name, "down")
        self.assertEqual(self.chosen(), ["lo"], "loopback, if there is nothing else")

    def test_each_refusal_has_its_reason(self):
        self.build()
        found = {entry["interface"]: entry for entry in self.interfaces()}
        for name, _, reason in REFUSED:
            self.assertEqual(found[name]["use"], "refused", name)
            self.assertIn(reason, found[name]["why"])
        self.assertIn("no carrier", found["nocarrier0"]["why"])
        self.assertIn("loopback", found["lo"]["why"])
        self.assertIn("bridge", found.get("docker0", {"why": "bridge"})["why"])

    def test_an_option_that_names_one(self):
        self.build()
        self.assertEqual(self.chosen(FI_CLUSTER_IFACE="veth6"), ["veth6"])
        self.assertEqual(self.chosen(FI_CLUSTER_IFACE="down0"), [])
        refusals = self.report(FI_CLUSTER_IFACE="down0")["refusals"]
        self.assertIn("FI_CLUSTER_IFACE=down0", refusals[0]["why"])

    def test_links_and_options(self):
        self.build()
        said = self.report(FI_CLUSTER_LINK="udp", FI_CLUSTER_NET_EAGER="4000", FI_CLUSTER_SHM="no")
        links = {entry["link"]: entry for entry in said["links"]}
        self.assertEqual(links["udp"]["use"], "chosen")
        self.assertEqual(links["packet"]["use"], "possible")
        self.assertEqual((links["shm"]["use"], links["shm"]["why"]), ("refused", "FI_CLUSTER_SHM=no"))
        options = {entry["option"]: entry for entry in said["options"]}
        self.assertEqual((options["FI_CLUSTER_NET_EAGER"]["value"], options["FI_CLUSTER_NET_EAGER"]["from"]),
                         ("4000", "environment"))
        self.assertEqual((options["FI_CLUSTER_SHM_EAGER"]["value"], options["FI_CLUSTER_SHM_EAGER"]["from"]),
                         ("32k", "default"))
        refusals = self.report(FI_CLUSTER_PEER_TIMEOUT="7")["refusals"]
        self.assertIn("FI_CLUSTER_PEER_TIMEOUT=7 is refused", refusals[0]["why"])

    def test_rules_for_firewalls(self):
        """life.ports applies them."""
        def ports(written):
            return endpoint_program.run("--ports", before=["env", f"FI_CLUSTER_PORTS={written}"])

        said = ports("40000-40063").stdout
        for rule in ("nft add rule inet filter input udp dport 40000-40063 accept", "nft add rule inet filter output tcp dport 40000-40063 accept",
                     "firewall-cmd --permanent --add-port=40000-40063/udp", "--protocol tcp --port 40000-40063"):
            self.assertIn(rule, said)
        self.assertIn("--add-port=9228/tcp", ports("9228").stdout)
        self.assertIn("FI_CLUSTER_PORTS is not set", ports("").stdout)
        wrong = ports("40063-40000")
        self.assertEqual(wrong.returncode, 1)
        self.assertIn("FI_CLUSTER_PORTS=40063-40000 is refused", wrong.stderr)

    def test_an_option_that_is_misspelt(self):
        self.assertEqual([entry["option"] for entry in self.report(FI_CLUSTER_LINKS="udp", FI_CLUSTER_LINK="udp")["ignored_options"]],
                         ["FI_CLUSTER_LINKS"])
        self.assertNotIn("ignored_options", self.report(FI_CLUSTER_LINK="udp"))

    def test_settings_that_cannot_have_their_effect(self):
        self.build()
        for words, settings in ((("FI_PROVIDER names clustr",), {"FI_PROVIDER": "clustr"}),
                                (("FI_PROVIDER_PATH=/nowhere", "libcluster-fi.so"), {"FI_PROVIDER_PATH": "/nowhere"}),
                                (("the key file /nowhere/key is refused", "to generate one"), {"FI_CLUSTER_KEY_FILE": "/nowhere/key"}),
                                (("FI_CLUSTER_SECURITY=encrypt demands a key",), {"FI_CLUSTER_SECURITY": "encrypt"}),
                                (("FI_CLUSTER_RAILS names eth77",), {"FI_CLUSTER_RAILS": "eth77"})):
            warnings = self.report(**settings)["warnings"]
            self.assertEqual(len(warnings), 1, warnings)
            for word in words:
                self.assertIn(word, warnings[0]["why"])
        self.assertNotIn("warnings", self.report())

    def test_without_the_capability(self):
        self.build()
        bounded = self.command("setpriv", "--bounding-set", "-net_raw", "--inh-caps", "-net_raw")
        links = {entry["link"]: entry for entry in query("--host", before=bounded)["links"]}
        self.assertEqual((links["packet"]["use"], links["udp"]["use"]), ("refused", "chosen"))
        self.assertIn("CAP_NET_RAW", links["packet"]["why"])

    def test_text_is_readable(self):
        self.build()
        text = endpoint_program.run("--host", before=self.command()).stdout
        self.assertTrue(text)
        self.assertEqual([line for line in text.splitlines() if len(line) > 100], [])
        self.assertIn("FI_CLUSTER_NET_EAGER", text)
        for words, status in ((["--what"], 2), (["--pid", "x"], 2), (["--pid", "1", "--json"], 1), (["--help"], 0)):
            result = endpoint_program.run(*words, before=self.command())
            self.assertEqual(result.returncode, status, result.stderr)
            self.assertEqual(result.stderr.count("\n"), 0 if status == 0 else 1, result.stderr)


if __name__ == "__main__":
    unittest.main(argv=endpoint_program.parse(__doc__), verbosity=2)
