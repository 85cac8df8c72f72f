"""Bridges, ports, addresses and shaping.

The bridges live in the switch's namespace, one per rail, named rail0, rail1... Port `n3r1` of the switch is the far
end of `eth1` in node3. Address of node n on rail r: 10.<subnet>.<r>.<n>/24.
"""
import json

from . import namespaces, units

_MILLISECOND_BURST = 1000  # bytes of burst = rate in bytes per second / this
_BURST_BYTES_MIN = 70_000  # one super-frame of 64 KB must fit, or the shaper must cut it
_SHORT_BURST = 10_000  # a tenth of a millisecond: a kernel timer can be that late
_PORT_BUFFER_BYTES = 512 * 1024  # the buffer per port of a modest switch


def address(subnet, rail, node):
    return f"10.{subnet}.{rail}.{node}"


def hosts_text(subnet, nodes, rails):
    """Text of /etc/hosts in every node: node3 is its address on rail 0, node3-rail1 the one on rail 1."""
    lines = ["127.0.0.1 localhost", "::1 localhost ip6-localhost ip6-loopback"]
    for node in range(1, nodes + 1):
        lines.append(f"{address(subnet, 0, node)} node{node} node{node}-rail0")
        for rail in range(1, rails):
            lines.append(f"{address(subnet, rail, node)} node{node}-rail{rail}")
    return "\n".join(lines) + "\n"


def _ip_batch(holder, lines):
    namespaces.run_in(holder, ["ip", "-batch", "-"], kinds=("net",), stdin_text="\n".join(lines) + "\n")


def _quiet_ipv6(holder):
    """Turns off duplicate address detection and router solicitations, so that a fresh node is silent and ready at
    once."""
    script = "for f in accept_dad router_solicitations accept_ra; do " \
             "p=/proc/sys/net/ipv6/conf/default/$f; [ ! -w $p ] || echo 0 > $p; done"
    namespaces.run_in(holder, ["sh", "-c", script], kinds=("net",))


def _plain_switch(switch):
    """Keeps the host's firewall (br_netfilter) away from the frames: a switch has none."""
    script = "for f in iptables ip6tables arptables; do " \
             "p=/proc/sys/net/bridge/bridge-nf-call-$f; [ ! -w $p ] || echo 0 > $p || exit; done"
    namespaces.run_in(switch, ["sh", "-c", script], kinds=("net",))


def shape(holder, device, rate, buffer=None, mtu=0):
    """Limits what leaves a device to `rate` bits per second. With `buffer` the queue in front of it has exactly that
    many bytes, and a burst is hardly larger. Without, super-frames of 64 KB pass whole and the queue is that of a
    modest switch."""
    if buffer:
        burst, limit = max(2 * (mtu + 18), rate // 8 // _SHORT_BURST), buffer
    else:
        burst = max(_BURST_BYTES_MIN, rate // 8 // _MILLISECOND_BURST)
        limit = _PORT_BUFFER_BYTES + burst
    namespaces.run_in(
        holder, ["tc", "qdisc", "replace", "dev", device, "root", "tbf", "rate", f"{rate}bit", "burst", str(burst),
                 "limit", str(limit)], kinds=("net",))


def restore_shape(holder, device, settings):
    """Undoes shape(): restores what `up` set."""
    if settings["rate"]:
        shape(holder, device, units.rate("--rate", settings["rate"]))
    else:
        namespaces.run_in(holder, ["tc", "qdisc", "del", "dev", device, "root"], kinds=("net",))


def make_segmenter(switch, mtu):
    """Makes the pair of interfaces `cutter` and `cut`, which cuts every super-frame; returns the index of the first."""
    # Above gso_max_size the kernel cuts in software, whatever the device could do.
    pair = f"link add cutter mtu {mtu} gso_max_size {mtu + 15} type veth peer name cut mtu {mtu}"
    ends = [f"link set {end} addrgenmode none up" for end in ("cutter", "cut")]
    _ip_batch(switch, [pair, *ends])
    shown = namespaces.run_in(switch, ["ip", "-json", "link", "show", "dev", "cutter"], kinds=("net",))
    return json.loads(shown)[0]["ifindex"]


def remove_segmenter(switch):
    _ip_batch(switch, ["link del cutter"])


def make_rails(switch, rails, mtu):
    """Makes one bridge per rail."""
    _quiet_ipv6(switch)
    _plain_switch(switch)
    lines = ["link set lo up"]
    for rail in range(rails):
        lines.append(f"link add rail{rail} mtu {mtu} type bridge stp_state 0 forward_delay 0 mcast_snooping 0")
        lines.append(f"link set rail{rail} up")
    _ip_batch(switch, lines)


def connect_node(switch, holder, number, settings):
    """Connects a node to every rail, gives it its addresses and shapes both directions of its ports."""
    _quiet_ipv6(holder)
    rails, mtu = settings["rails"], settings["mtu"]
    ports, inside = [], ["link set lo up"]
    for rail in range(rails):
        port = f"n{number}r{rail}"
        ports.append(f"link add {port} mtu {mtu} type veth peer name eth{rail} mtu {mtu} netns {holder['pid']}")
        ports.append(f"link set {port} master rail{rail} up")
        inside.append(f"addr add {address(settings['subnet'], rail, number)}/24 brd + dev eth{rail}")
        inside.append(f"link set eth{rail} up")
    _ip_batch(switch, ports)
    _ip_batch(holder, inside)
    if settings["rate"]:
        rate = units.rate("--rate", settings["rate"])
        for rail in range(rails):
            shape(switch, f"n{number}r{rail}", rate)
            shape(holder, f"eth{rail}", rate)
