"""What is wrong with the wiring or the settings, judged by the nodes' cards and by the rails on which hellos arrive.

A card is what a node says of itself: name and rails (rails.py). Pure functions; each finding is a dict with node,
rail (or None), kind and text, the text with the cure.
"""
from collections import Counter


def _finding(node, rail, kind, text):
    return {"node": node, "rail": rail, "kind": kind, "text": text}


def _common(values):
    """The value that most nodes have; None if there is nothing to compare."""
    counted = Counter(value for value in values if value)
    return counted.most_common(1)[0][0] if counted else None


def of_cards(cards):
    """Rails that differ from the same rail of most nodes."""
    found = []
    for rail in range(max((len(card["rails"]) for card in cards), default=0)):
        having = [(card["name"], card["rails"][rail]) for card in cards if len(card["rails"]) > rail]
        mtu, speed = (_common(entry[key] for _, entry in having) for key in ("mtu", "speed"))
        network = _common(entry["network"] for _, entry in having)
        for name, entry in having:
            device = entry["device"]
            if entry["mtu"] != mtu:
                found.append(_finding(name, rail, "mtu", f"MTU of {device} is {entry['mtu']}, that of most nodes on rail "
                                                        f'{rail} {mtu}: "ip link set {device} mtu {mtu}" sets it'))
            if entry["speed"] and speed and entry["speed"] != speed:
                found.append(_finding(name, rail, "speed", f"{device} runs at {entry['speed']} Mbit/s, most nodes at {speed}: "
                                                          "look at cable and switch port"))
            if entry["duplex"] == "half":
                found.append(_finding(name, rail, "duplex", f"{device} runs half-duplex: look at the switch port's negotiation"))
            if not entry["up"]:
                found.append(_finding(name, rail, "carrier", f"{device} has no carrier: look at cable and switch port"))
            others = {other["network"]: number for number, other in enumerate(_majority_rails(cards))}
            if entry["network"] != network and entry["network"] in others:
                found.append(_finding(name, rail, "order", f"{device} is in network {entry['network']}, which is rail "
                                                          f"{others[entry['network']]} of most nodes: name the interfaces in "
                                                          "the order of the others (--interfaces, FI_CLUSTER_IFACE)"))
    return found


def _majority_rails(cards):
    count = max((len(card["rails"]) for card in cards), default=0)
    return [{"network": _common(card["rails"][rail]["network"] for card in cards if len(card["rails"]) > rail)}
            for rail in range(count)]


def of_hellos(me, cards, heard):
    """Wrong cables: `heard` has (peer, its rail) -> the rails of this node on which its hello arrived."""
    found = []
    for (peer, theirs), mine in sorted(heard.items()):
        card = cards.get(peer)
        if card is None or theirs >= len(card["rails"]):
            continue
        network = card["rails"][theirs]["network"]
        for rail in sorted(mine):
            if rail < len(me["rails"]) and me["rails"][rail]["network"] != network and \
                    network in [entry["network"] for entry in me["rails"]]:
                found.append(_finding(peer, theirs, "cable", f"{card['rails'][theirs]['device']} is wired to the network of "
                                                            f"rail {rail} of {me['name']} ({me['rails'][rail]['device']}): "
                                                            "cables are crossed at one of the two"))
    return found


def of_links(links):
    return [_finding(link["peer"], link["rail"], "path-mtu", f"frames of {link['mtu']} bytes do not arrive, {link['path_mtu']} "
                     "do: a switch port between has a smaller MTU") for link in links
            if 0 < link["path_mtu"] < link["mtu"] and link["state"] == "up"]
