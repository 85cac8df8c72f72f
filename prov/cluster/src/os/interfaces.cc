#include "os/interfaces.h"

#include <linux/ethtool.h>
#include <linux/if.h>
#include <linux/if_addr.h>
#include <linux/if_arp.h>
#include <linux/if_link.h>
#include <linux/sockios.h>
#include <linux/wireless.h>
#include <netinet/in.h>
#include <sys/ioctl.h>
#include <sys/socket.h>

#include <algorithm>
#include <string_view>

#include "os/descriptor.h"
#include "os/netlink.h"

namespace cluster::os {
namespace {

std::string_view text_of(ConstBytes value) {
  const std::string_view text(reinterpret_cast<const char*>(value.data()), value.size());
  return text.substr(0, text.find('\0'));
}

Interface::Kind kind_named(std::string_view name) {
  using Kind = Interface::Kind;
  if (name == "veth" || name == "netkit") return Kind::veth;
  if (name == "bridge" || name == "openvswitch") return Kind::bridge;
  if (name == "bond" || name == "team") return Kind::bond;
  if (name == "vlan") return Kind::vlan;
  if (name == "dummy" || name == "nlmon") return Kind::dummy;
  if (name == "macvlan" || name == "ipvlan") return Kind::macvlan;
  for (const char* tunnel : {"tun", "gre", "gretap", "ip6gre", "ip6gretap", "erspan", "ipip", "ip6tnl", "sit",
                             "vti", "vti6", "vxlan", "geneve", "wireguard", "xfrm", "gtp", "bareudp"}) {
    if (name == tunnel) return Kind::tunnel;
  }
  return Kind::virtual_other;
}

/// Queueing disciplines that limit, delay or drop.
bool is_shaper(std::string_view discipline) {
  for (const char* shaper : {"tbf", "htb", "hfsc", "cbq", "cake", "netem", "drr", "qfq"}) {
    if (discipline == shaper) return true;
  }
  return false;
}

void read_link_info(ConstBytes info, Interface& interface) {
  each_attribute(info, [&](unsigned type, ConstBytes value) {
    if (type == IFLA_INFO_KIND) interface.kind = kind_named(text_of(value));
  });
}

Interface read_link(ConstBytes message) {
  Interface interface;
  ifinfomsg head;
  if (message.size() < NLMSG_ALIGN(sizeof head)) return interface;
  std::memcpy(&head, message.data(), sizeof head);
  if (head.ifi_family != AF_UNSPEC) return interface;
  interface.index = head.ifi_index;
  interface.up = (head.ifi_flags & IFF_UP) != 0;
  interface.running = (head.ifi_flags & IFF_RUNNING) != 0 && (head.ifi_flags & IFF_LOWER_UP) != 0;
  interface.loopback = (head.ifi_flags & IFF_LOOPBACK) != 0;
  interface.has_ethernet = head.ifi_type == ARPHRD_ETHER;
  each_attribute(message.subspan(NLMSG_ALIGN(sizeof head)), [&](unsigned type, ConstBytes value) {
    if (type == IFLA_IFNAME) interface.name = text_of(value);
    if (type == IFLA_MTU && value.size() >= sizeof interface.mtu) {
      std::memcpy(&interface.mtu, value.data(), sizeof interface.mtu);
    }
    if (type == IFLA_ADDRESS && value.size() == interface.mac.size()) {
      std::copy(value.begin(), value.end(), interface.mac.begin());
    }
    if (type == IFLA_QDISC) interface.shaped = is_shaper(text_of(value));
    if (type == IFLA_MASTER && value.size() >= sizeof interface.master) {
      std::memcpy(&interface.master, value.data(), sizeof interface.master);
    }
    if (type == IFLA_LINKINFO) read_link_info(value, interface);
  });
  if (interface.loopback) interface.kind = Interface::Kind::loopback;
  return interface;
}

Descriptor ioctl_socket() { return Descriptor(::socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0)); }

template <typename Answer>
bool ask_driver(const Descriptor& socket, const std::string& interface, std::uint32_t command,
                Answer& answer) {
  answer.cmd = command;
  ifreq request{};
  interface.copy(request.ifr_name, IFNAMSIZ - 1);
  request.ifr_data = reinterpret_cast<char*>(&answer);
  return socket && ioctl(socket.number(), SIOCETHTOOL, &request) == 0;
}

/// What netlink does not report: the speed, and whether it is a radio.
void read_device(const Descriptor& socket, Interface& interface) {
  iwreq wireless{};
  interface.name.copy(wireless.ifr_ifrn.ifrn_name, IFNAMSIZ - 1);
  if (ioctl(socket.number(), SIOCGIWNAME, &wireless) == 0) interface.kind = Interface::Kind::wireless;
  ethtool_cmd command{};
  if (!ask_driver(socket, interface.name, ETHTOOL_GSET, command)) return;
  const std::uint32_t speed = (static_cast<std::uint32_t>(command.speed_hi) << 16) | command.speed;
  // SPEED_UNKNOWN is all ones; old drivers fill only 16 bits of it.
  if (speed != 0 && speed != 0xffffffff && speed != 0xffff) interface.speed_mbit = static_cast<long>(speed);
}

/// A bridge with a port that leads out of this node does more than join containers and virtual machines.
void note_hardware_ports(std::vector<Interface>& interfaces) {
  using Kind = Interface::Kind;
  for (const Interface& port : interfaces) {
    if (port.master == 0 ||
        (port.kind != Kind::physical && port.kind != Kind::bond && port.kind != Kind::vlan))
      continue;
    for (Interface& interface : interfaces) {
      if (interface.index == port.master) interface.hardware_port = true;
    }
  }
}

int rank_of(const SocketAddress& address) {
  if (address.family() == SocketAddress::Family::v4) return 0;
  return address.link_local() ? 2 : 1;
}

SocketAddress make_address(unsigned char family, ConstBytes ip, unsigned index) {
  if (family == AF_INET && ip.size() == 4) return SocketAddress::v4(ip.data(), 0);
  if (family != AF_INET6 || ip.size() != 16) return {};
  const SocketAddress address = SocketAddress::v6(ip.data(), 0);
  // Only link-local addresses need the interface as their scope.
  return address.link_local() ? SocketAddress::v6(ip.data(), 0, index) : address;
}

/// An address that cannot be used yet, or no longer, counts as removed. False if nothing changes.
bool read_address(ConstBytes message, bool removed, std::vector<Interface>& interfaces) {
  ifaddrmsg head;
  if (message.size() < NLMSG_ALIGN(sizeof head)) return false;
  std::memcpy(&head, message.data(), sizeof head);
  std::uint32_t flags = head.ifa_flags;
  ConstBytes own;
  each_attribute(message.subspan(NLMSG_ALIGN(sizeof head)), [&](unsigned type, ConstBytes value) {
    if (type == IFA_FLAGS && value.size() >= sizeof flags) std::memcpy(&flags, value.data(), sizeof flags);
    // On point-to-point links IFA_ADDRESS is the other end and IFA_LOCAL is this one.
    if (type == IFA_LOCAL || (type == IFA_ADDRESS && own.empty())) own = value;
  });
  removed = removed || (flags & (IFA_F_TENTATIVE | IFA_F_DADFAILED | IFA_F_DEPRECATED)) != 0;
  const SocketAddress address = make_address(head.ifa_family, own, head.ifa_index);
  if (address.empty() || address.wildcard()) return false;
  for (Interface& interface : interfaces) {
    if (interface.index != static_cast<int>(head.ifa_index)) continue;
    auto& addresses = interface.addresses;
    const auto known = std::find(addresses.begin(), addresses.end(), address);
    if (removed != (known != addresses.end())) return false;
    if (removed) {
      interface.prefix_bits.erase(interface.prefix_bits.begin() + (known - addresses.begin()));
      addresses.erase(known);
      return true;
    }
    const auto at = std::upper_bound(addresses.begin(), addresses.end(), address,
                                     [](auto& a, auto& b) { return rank_of(a) < rank_of(b); }) -
                    addresses.begin();
    addresses.insert(addresses.begin() + at, address);
    interface.prefix_bits.insert(interface.prefix_bits.begin() + at, head.ifa_prefixlen);
    return true;
  }
  return false;
}

}  // namespace

bool note_change(std::uint16_t type, ConstBytes message, std::vector<Interface>& interfaces) {
  if (type == RTM_NEWADDR || type == RTM_DELADDR)
    return read_address(message, type == RTM_DELADDR, interfaces);
  if (type != RTM_NEWLINK && type != RTM_DELLINK) return false;
  Interface now = read_link(message);
  if (now.name.empty() || now.mtu == 0)
    return false;  // a message only about a port of a bridge, or about a radio
  const auto known = std::find_if(interfaces.begin(), interfaces.end(),
                                  [&](const Interface& each) { return each.index == now.index; });
  if (type == RTM_DELLINK) {
    if (known == interfaces.end()) return false;
    interfaces.erase(known);
    return true;
  }
  if (known == interfaces.end()) {
    interfaces.push_back(std::move(now));
    return true;
  }
  now.kind = known->kind;
  now.hardware_port = known->hardware_port;
  now.speed_mbit = known->speed_mbit;
  now.addresses = known->addresses;
  now.prefix_bits = known->prefix_bits;
  if (now == *known) return false;
  *known = std::move(now);
  return true;
}

std::vector<Interface> list_interfaces(int* error) {
  std::vector<Interface> interfaces;
  const int no_links = netlink_dump(RTM_GETLINK, [&](ConstBytes message) {
    Interface interface = read_link(message);
    if (!interface.name.empty()) interfaces.push_back(std::move(interface));
  });
  const int no_addresses =
      netlink_dump(RTM_GETADDR, [&](ConstBytes message) { read_address(message, false, interfaces); });
  if (error != nullptr) *error = no_links != 0 ? no_links : no_addresses;
  const Descriptor socket = ioctl_socket();
  for (Interface& interface : interfaces) read_device(socket, interface);
  note_hardware_ports(interfaces);
  return interfaces;
}

std::size_t receive_queues(const std::string& interface) {
  const Descriptor socket = ioctl_socket();
  ethtool_channels channels{};
  ethtool_rxnfc rings{};  // older drivers answer this one only
  std::size_t count = 0;
  if (ask_driver(socket, interface, ETHTOOL_GCHANNELS, channels)) {
    count = std::size_t{channels.rx_count} + channels.combined_count;
  } else if (ask_driver(socket, interface, ETHTOOL_GRXRINGS, rings)) {
    count = static_cast<std::size_t>(rings.data);
  }
  return std::max<std::size_t>(1, count);
}

std::optional<LocalRoute> local_route(const SocketAddress& address) {
  std::optional<LocalRoute> found;
  if (address.empty()) return found;
  netlink_route(address.ip(), [&found](ConstBytes message) {
    rtmsg head;
    if (message.size() < NLMSG_ALIGN(sizeof head)) return;
    std::memcpy(&head, message.data(), sizeof head);
    if (head.rtm_type != RTN_LOCAL) return;
    found = LocalRoute{0, head.rtm_dst_len};
    each_attribute(message.subspan(NLMSG_ALIGN(sizeof head)), [&found](unsigned type, ConstBytes value) {
      if (type == RTA_OIF && value.size() >= sizeof found->interface) {
        std::memcpy(&found->interface, value.data(), sizeof found->interface);
      }
    });
  });
  return found;
}

std::optional<SocketAddress> source_for(const SocketAddress& peer) {
  if (peer.empty()) return std::nullopt;
  sockaddr_storage storage;
  // Connecting a datagram socket sends nothing; port 0 would be refused by some kernels.
  const std::size_t size = peer.with_port(peer.port() == 0 ? 9 : peer.port()).to(storage);
  const Descriptor socket(::socket(storage.ss_family, SOCK_DGRAM | SOCK_CLOEXEC, 0));
  if (!socket ||
      connect(socket.number(), reinterpret_cast<sockaddr*>(&storage), static_cast<socklen_t>(size)) != 0) {
    return std::nullopt;
  }
  socklen_t length = sizeof storage;
  if (getsockname(socket.number(), reinterpret_cast<sockaddr*>(&storage), &length) != 0) return std::nullopt;
  const SocketAddress source = SocketAddress::from(reinterpret_cast<sockaddr*>(&storage), length);
  if (source.empty() || source.wildcard()) return std::nullopt;
  return source.with_port(0);
}

}  // namespace cluster::os
