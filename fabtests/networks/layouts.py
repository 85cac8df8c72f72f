"""The networks of the table (networks.py). Each function makes one of virtual nodes and real routers, which are nodes that forward.

A function returns a Network: how many nodes run ranks (the first ones), what the row needs in the environment, and what happens in
mid-job. The cluster begins with one interface a node (eth0) on one switch; most functions replace it by cables and switches of
their own.
"""
import dataclasses
import os
import subprocess
import sys
import time
from collections.abc import Callable

HERE = os.path.dirname(os.path.realpath(__file__))
for part in ("..", os.path.join("..", "life")):
    sys.path.insert(0, os.path.join(HERE, part))
import life_process  # noqa: E402
import virtual_nodes  # noqa: E402

KEYED = {"FI_CLUSTER_KEY": "0123456789abcdef" * 2}
FORGOTTEN_TIMES, FORGOTTEN_EACH_SECONDS = 5, 0.5
PORTS = "40000-40007"
TUNNEL_MTU = 1420  # as WireGuard chooses it
SUBNETS = {number: f"10.77.{number}" for number in range(1, 10)}


class NotHere(Exception):
    """This machine cannot make the network; the text says why."""


@dataclasses.dataclass
class Network:
    cluster: object
    ranks: int  # one on each of the first nodes
    settings: dict = dataclasses.field(default_factory=dict)  # environment of the provider
    mca: tuple = ()  # parameters of Open MPI for every way
    tcp_mca: tuple = ()  # those for its TCP, which correspond to `settings`
    interface: str = "eth0"  # of the first node, to which the other nodes connect; for MPICH's launcher, which knows only IPv4
    rxm_settings: dict = dataclasses.field(default_factory=dict)  # environment of libfabric's tcp, which corresponds to `settings`
    cut: Callable = None  # happens in mid-job
    mend: Callable = None  # undoes it
    family: int = 4  # of the addresses
    away: float = 0  # seconds from cut to mend; 0: until the job has ended
    helpers: list = dataclasses.field(default_factory=list)  # processes that are part of the network

    def down(self):
        for helper in self.helpers:
            helper.kill()
            helper.wait()
        self.cluster.down()


class Builder:
    """Cables and switches between the nodes of a cluster."""

    def __init__(self, nodes, name):
        self.cluster = virtual_nodes.make(nodes, suffix=f"-{name}")
        self.bare_nodes = set()

    def sh(self, node, script):
        return self.cluster.run(node, "sh", "-ec", script)

    def add_link(self, node, words):
        """Adds an interface, if the kernel has its kind."""
        result = subprocess.run(self.cluster.command(node, "ip", "link", "add", *words.split()), capture_output=True, text=True,
                                check=False)
        if result.returncode != 0:
            raise NotHere(f"the kernel makes no such interface: ip link add {words}: {result.stderr.splitlines()[0]}")

    def bare(self, *nodes):
        """Takes eth0 away."""
        for node in nodes:
            self.sh(node, "ip link del eth0")

    def cable(self, one, one_name, other, other_name, mtu=1500):
        """Joins two nodes. No super-frames: each hop sees every packet as it is on the wire."""
        whole = f"mtu {mtu} gso_max_segs 1"
        pid = self.cluster.namespace(other).split("/")[2]
        self.sh(one, f"ip link add {one_name} {whole} type veth peer name {other_name} {whole} netns {pid}")
        for node, name in ((one, one_name), (other, other_name)):
            self.sh(node, f"ip link set {name} up")

    def address(self, node, interface, *addresses):
        for address in addresses:
            self.sh(node, f"ip addr add {address} dev {interface} " + ("nodad" if ":" in address else ""))

    def forwards(self, *nodes):
        for node in nodes:
            self.sh(node, "echo 1 > /proc/sys/net/ipv4/ip_forward; echo 1 > /proc/sys/net/ipv6/conf/all/forwarding")

    def rules(self, node, hook, *rules, kind="filter", table="test"):
        lines = [f"add table inet {table}", f"add chain inet {table} {hook} {{ type {kind} hook {hook} priority 0; }}",
                 *(f"add rule inet {table} {hook} {rule}" for rule in rules)]
        self.cluster.run(node, "nft", "; ".join(lines))

    def joined_by_router(self, one, other, router, mtu=1500):
        """Two nodes in two networks: `one` in 10.77.1.0/24, `other` in 10.77.2.0/24."""
        self.bare(one, other, router)
        for node, subnet in ((one, 1), (other, 2)):
            self.cable(node, "eth0", router, f"to{subnet}", mtu)
            self.address(node, "eth0", f"{SUBNETS[subnet]}.1/24")
            self.address(router, f"to{subnet}", f"{SUBNETS[subnet]}.254/24")
            self.sh(node, f"ip route add default via {SUBNETS[subnet]}.254")
        self.forwards(router)

    def switched(self, name, *nodes):
        """A switch of its own for the ports NAME of these nodes: in the namespace `switch`, ports NAME.NODE."""
        self.sh("switch", f"ip link add {name} type bridge stp_state 0 forward_delay 0 mcast_snooping 0; ip link set {name} up")
        for node in nodes:
            self.cable("switch", f"{name}.{node}", node, name)
            self.sh("switch", f"ip link set {name}.{node} master {name}")


def plain():
    return Network(Builder(2, "plain").cluster, 2)


def twenty_interfaces():
    """eth0 and 19 others of six kinds: all of them lead nowhere, and most have the same address on both nodes."""
    made = Builder(2, "twenty")
    for node in (1, 2):
        for number in range(5):  # of containers: the same addresses everywhere
            made.sh(node, f"ip link add docker{number} type bridge; ip addr add 172.{17 + number}.0.1/16 dev docker{number}; "
                          f"ip link add pod{number} type veth peer name inside{number}; ip link set pod{number} master docker{number}; "
                          f"ip link set docker{number} up; ip link set pod{number} up; ip link set inside{number} up")
        made.sh(node, "ip link add link eth0 name guest0 type macvlan mode bridge; ip link set guest0 up; "
                      "ip tuntap add tun0 mode tun; ip addr add 10.8.0.1/24 dev tun0; ip link set tun0 up; "
                      "ip tuntap add tap0 mode tap; ip addr add 10.8.1.1/24 dev tap0; "
                      f"ip link add overlay0 type vxlan id 9 remote {made.cluster.address(3 - node)} dstport 4789; "
                      "ip addr add 10.244.0.1/16 dev overlay0; ip link set overlay0 up")
    return Network(made.cluster, 2, tcp_mca=("btl_tcp_if_include=eth0",), rxm_settings={"FI_TCP_IFACE": "eth0"})


def vlan():
    made = Builder(2, "vlan")
    for node in (1, 2):
        made.add_link(node, "link eth0 name eth0.5 type vlan id 5")
        made.sh(node, "ip addr flush dev eth0; ip link set eth0.5 up")
        made.address(node, "eth0.5", f"{SUBNETS[5]}.{node}/24")
    return Network(made.cluster, 2, interface="eth0.5")


def macvlan():
    """Two containers, each with an interface on top of that of its host, which has no address."""
    made = Builder(2, "macvlan")
    for node in (1, 2):
        made.add_link(node, "link eth0 name guest type macvlan mode bridge")
        made.sh(node, "ip addr flush dev eth0; ip link set guest up")
        made.address(node, "guest", f"{SUBNETS[5]}.{node}/24")
    return Network(made.cluster, 2, interface="guest")


def ipv6_only():
    """Two networks without any IPv4, joined by a router."""
    made = Builder(3, "ipv6")
    made.bare(1, 2, 3)
    made.forwards(3)
    for node in (1, 2):
        made.cable(node, "eth0", 3, f"to{node}")
        made.address(node, "eth0", f"fd77:{node}::1/64")
        made.address(3, f"to{node}", f"fd77:{node}::fe/64")
        made.sh(node, f"ip -6 route add default via fd77:{node}::fe")
    return Network(made.cluster, 2, mca=("oob_tcp_disable_ipv6_family=0", "oob_tcp_disable_ipv4_family=1"),
                   tcp_mca=("btl_tcp_disable_family=4",), family=6)


def vxlan():
    """Hosts in two networks, and a tunnel of the kernel between them; the router lets only the tunnel pass."""
    made = Builder(3, "vxlan")
    made.joined_by_router(1, 2, 3)
    for node, (local, remote) in ((1, (1, 2)), (2, (2, 1))):
        made.add_link(node, f"overlay0 type vxlan id 9 local {SUBNETS[local]}.1 remote {SUBNETS[remote]}.1 dstport 4789")
        made.sh(node, "ip link set overlay0 up")
        made.address(node, "overlay0", f"{SUBNETS[9]}.{node}/24")
    made.rules(3, "forward", "udp dport 4789 accept", "drop")
    return Network(made.cluster, 2, {"FI_CLUSTER_IFACE": "overlay0"}, ("oob_tcp_if_include=overlay0",),
                   ("btl_tcp_if_include=overlay0",), "overlay0", {"FI_TCP_IFACE": "overlay0"})


def tunnel_without_hardware_addresses():
    """As WireGuard: packets of IP in UDP, MTU 1420, no Ethernet. A program carries them, since few test machines have WireGuard."""
    made = Builder(3, "tunnel")
    made.joined_by_router(1, 2, 3)
    made.rules(3, "forward", "udp dport 51820 accept", "drop")
    helpers = []
    for node in (1, 2):
        helper = virtual_nodes.start(made.cluster.command(node, sys.executable, "-B", os.path.join(HERE, "tunnel.py"), "wg0",
                                                          f"{SUBNETS[node]}.1", f"{SUBNETS[3 - node]}.1"), stdout=subprocess.PIPE)
        helpers.append(helper)
        if helper.stdout.readline() != b"ready\n":
            raise NotHere("the kernel makes no tun device")
        made.sh(node, f"ip link set wg0 mtu {TUNNEL_MTU} up")
        made.address(node, "wg0", f"{SUBNETS[9]}.{node}/24")
    return Network(made.cluster, 2, {"FI_CLUSTER_IFACE": "wg0"}, ("oob_tcp_if_include=wg0",), ("btl_tcp_if_include=wg0",),
                   "wg0", {"FI_TCP_IFACE": "wg0"}, helpers=helpers)


def narrow_silent_hop():
    """The nodes have MTU 9000; between two routers it is 1500, and what is too long vanishes without a word. TCP needs a setting of the kernel
    to notice it, without which no launcher works either."""
    made = Builder(4, "narrow")
    made.bare(1, 2, 3, 4)
    for node, router in ((1, 3), (2, 4)):
        made.cable(node, "eth0", router, "near", 9000)
        made.address(node, "eth0", f"{SUBNETS[node]}.1/24")
        made.address(router, "near", f"{SUBNETS[node]}.254/24")
        made.sh(node, f"ip route add default via {SUBNETS[node]}.254; echo 1 > /proc/sys/net/ipv4/tcp_mtu_probing")
    made.cable(3, "far", 4, "far", 1500)
    for router, other, node in ((3, 4, 2), (4, 3, 1)):
        made.address(router, "far", f"{SUBNETS[3]}.{router}/24")
        made.sh(router, f"ip route add {SUBNETS[node]}.0/24 via {SUBNETS[3]}.{other}")
        made.rules(router, "output", "icmp type destination-unreachable drop")
    made.forwards(3, 4)
    return Network(made.cluster, 2)


def asymmetric_routes():
    """There through one router, back through the other."""
    made = Builder(4, "asymmetric")
    made.bare(1, 2, 3, 4)
    for name, node in (("left", 1), ("right", 2)):
        made.switched(name, node, 3, 4)
        subnet = SUBNETS[node]
        made.address(node, name, f"{subnet}.1/24")
        for router in (3, 4):
            made.address(router, name, f"{subnet}.{router}/24")
        made.sh(node, f"ip route add default via {subnet}.{2 + node}")
    made.forwards(3, 4)
    for router in (3, 4):  # each forwards one direction only
        made.rules(router, "forward", f"iifname {'left' if router == 3 else 'right'} accept", "drop")
    return Network(made.cluster, 2, interface="left")


def one_way_firewall():
    """A router that keeps state: only the network of the second node may begin."""
    made = Builder(3, "oneway")
    made.joined_by_router(1, 2, 3)
    made.rules(3, "forward", "ct state established,related accept", "iifname to2 accept", "drop")
    return Network(made.cluster, 2)


def range_of_ports(link):
    """Each node lets UDP pass only at the ports of the endpoints. TCP passes, for the launcher."""
    made = Builder(2, f"ports-{link}")
    for node in (1, 2):
        for hook in ("input", "output"):
            made.rules(node, hook, "meta l4proto tcp accept", f"udp sport {PORTS} udp dport {PORTS} accept", "meta l4proto udp drop")
    return Network(made.cluster, 2, {"FI_CLUSTER_PORTS": PORTS, "FI_CLUSTER_LINK": link})


def range_of_ports_by_packet():
    return range_of_ports("packet")


def range_of_ports_by_udp():
    return range_of_ports("udp")


def translation_on_one_side(settings=None, ports=""):
    """The second node is behind a router that gives it the router's own address. `ports`: how the router chooses ports of UDP."""
    made = Builder(3, "translation")
    made.joined_by_router(1, 2, 3)
    made.rules(3, "postrouting", f"oifname to1 meta l4proto udp masquerade {ports}", "oifname to1 masquerade", kind="nat")
    made.rules(3, "forward", "ct state established,related accept", "iifname to2 accept", "drop", table="gate")
    return made, Network(made.cluster, 2, settings=settings or {})


def translation_without_a_key():
    return translation_on_one_side()[1]


def translation_with_a_key():
    return translation_on_one_side(KEYED)[1]


def translator_changes_its_ports():
    """The router forgets its translations several times, so the second node gets other ports while the job runs."""
    made, network = translation_on_one_side(KEYED, "random")

    def forget():
        for _ in range(FORGOTTEN_TIMES):
            made.cluster.run(3, sys.executable, os.path.join(HERE, "forget_translations.py"))
            time.sleep(FORGOTTEN_EACH_SECONDS)

    network.cut, network.mend = forget, lambda: None
    return network


def rebooting_switch(seconds):
    """All ports lose their carrier for so long."""
    made = Builder(2, "switch")

    def ports(state):
        for node in (1, 2):
            made.sh("switch", f"ip link set n{node}r0 {state}")

    return Network(made.cluster, 2, cut=lambda: ports("down"), mend=lambda: ports("up"), away=seconds)


def killed_router():
    """Three networks, each with one node, joined by two routers. One router dies, and a second later the other one takes over
    its addresses and tells the nodes, as VRRP does."""
    made = Builder(5, "killed")
    made.bare(1, 2, 3, 4, 5)
    for node in (1, 2, 3):
        made.switched(f"net{node}", node, 4, 5)
        made.address(node, f"net{node}", f"{SUBNETS[node]}.1/24")
        made.address(4, f"net{node}", f"{SUBNETS[node]}.254/24")
        made.sh(node, f"ip route add default via {SUBNETS[node]}.254")
    made.forwards(4, 5)

    def take_over(router, other):
        for node in (1, 2, 3):
            made.sh(other, f"ip link set net{node} down; ip addr flush dev net{node}")
        time.sleep(1)
        for node in (1, 2, 3):  # the request for the node's hardware address announces that of the router
            made.sh(router, f"ip addr add {SUBNETS[node]}.254/24 dev net{node}; ip link set net{node} up; "
                            f"until ping -q -c 1 -W 1 {SUBNETS[node]}.1; do :; done")

    return Network(made.cluster, 3, cut=lambda: take_over(5, 4), mend=lambda: take_over(4, 5), interface="net1")


class Relays:
    """Processes of the job that are relays, one on each of these nodes."""

    def __init__(self, made, *nodes):
        self.made, self.processes = made, {}
        for node in nodes:
            self.begin(node)

    def begin(self, node):
        settings = KEYED | {"FI_CLUSTER_RELAY": "yes", "FI_LOG_LEVEL": "info"}
        self.processes[node] = life_process.Process(self.made.cluster.command(node), **settings)

    def kill(self, node=None):
        for each in [node] if node else list(self.processes):
            process = self.processes.pop(each)
            process.kill()
            process.close()

    def wait(self):
        """As a helper of a Network: nothing is left after kill()."""


def relays_between_networks():
    """Three networks, each with one node, and two machines that are in all of them. A router forwards only TCP, for the launcher.
    One of the relays on the two machines dies. Their service addresses are the same for all nodes."""
    made = Builder(6, "relays")
    made.bare(1, 2, 3, 4, 5, 6)
    for relay in (4, 5):
        made.sh(relay, f"ip link add service type bridge; ip addr add {SUBNETS[9]}.{relay}/32 dev service; ip link set service up")
    for node in (1, 2, 3):
        made.switched(f"net{node}", node, 4, 5, 6)
        made.address(node, f"net{node}", f"{SUBNETS[node]}.1/24")
        made.address(6, f"net{node}", f"{SUBNETS[node]}.254/24")
        made.sh(node, f"ip route add default via {SUBNETS[node]}.254")
        for relay in (4, 5):
            made.address(relay, f"net{node}", f"{SUBNETS[node]}.{relay}/24")
            made.sh(node, f"ip route add {SUBNETS[9]}.{relay} via {SUBNETS[node]}.{relay}")
    made.forwards(6)
    made.rules(6, "forward", "meta l4proto tcp accept", "drop")
    relays = Relays(made, 4, 5)
    return Network(made.cluster, 3, KEYED | {"FI_CLUSTER_RELAYS": f"{SUBNETS[9]}.4,{SUBNETS[9]}.5"}, cut=lambda: relays.kill(4),
                   mend=lambda: relays.begin(4), helpers=[relays], interface="net1")


def relay_between_translators():
    """Two nodes, each behind a router that gives its UDP the router's own address, and a relay that both routers see. TCP passes
    unchanged, for the launcher."""
    made = Builder(5, "translators")
    made.bare(1, 2, 3, 4, 5)
    made.switched("outside", 3, 4, 5)
    for node, router in ((1, 3), (2, 4)):
        made.cable(node, "eth0", router, "inside")
        made.address(node, "eth0", f"{SUBNETS[node]}.1/24")
        made.address(router, "inside", f"{SUBNETS[node]}.254/24")
        made.address(router, "outside", f"{SUBNETS[5]}.{router}/24")
        made.sh(node, f"ip route add default via {SUBNETS[node]}.254")
        made.sh(router, f"ip route add {SUBNETS[3 - node]}.0/24 via {SUBNETS[5]}.{7 - router}")
        made.rules(router, "postrouting", "oifname outside meta l4proto udp masquerade", kind="nat")
        made.rules(router, "forward", "ct state established,related accept", "meta l4proto tcp accept", "iifname inside accept", "drop",
                   table="gate")
    made.address(5, "outside", f"{SUBNETS[5]}.5/24")
    made.forwards(3, 4)
    return Network(made.cluster, 2, KEYED | {"FI_CLUSTER_RELAYS": f"{SUBNETS[5]}.5"}, helpers=[Relays(made, 5)])
