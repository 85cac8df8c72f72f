"""The Ethernet interfaces of this node: its rails, in the order of their names."""
import ipaddress
import os
import re
import socket

import psutil

_DUPLEX = {psutil.NIC_DUPLEX_FULL: "full", psutil.NIC_DUPLEX_HALF: "half"}
RAILS_MAX = 8


def _natural(name):
    return [int(part) if part.isdigit() else part for part in re.split(r"(\d+)", name)]


def _is_rail(name, wanted):
    if wanted:
        return name in wanted
    base = f"/sys/class/net/{name}"
    return name != "lo" and not any(os.path.exists(f"{base}/{kind}") for kind in ("bridge", "bonding_slave", "tun_flags"))


def read(wanted=()):
    """One dict a rail: device, address, network, mtu, speed in Mbit/s (0 if unknown), duplex, up."""
    stats = psutil.net_if_stats()
    addresses = psutil.net_if_addrs()
    rails = []
    for device in [name for name in wanted if name in addresses] if wanted else sorted(addresses, key=_natural):
        address = next((entry for entry in addresses[device] if entry.family == socket.AF_INET), None)
        if address is None or device not in stats or not _is_rail(device, wanted):
            continue
        network = ipaddress.ip_interface(f"{address.address}/{address.netmask or '255.255.255.255'}").network
        rails.append({"device": device, "address": address.address, "network": str(network), "mtu": stats[device].mtu,
                      "speed": stats[device].speed, "duplex": _DUPLEX.get(stats[device].duplex, "unknown"),
                      "up": stats[device].isup})
    return rails[:RAILS_MAX]
