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
#include <sys/stat.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <string_view>

#include "os/ethtool.h"
#include "os/netlink.h"

namespace cluster::os {
namespace {

template <typename Visitor>
int dump(const Descriptor& socket, std::uint16_t type, Visitor&& visit) {
  return ask(socket, Request<rtgenmsg>(type, NLM_F_DUMP), visit);
}

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

/// Returns true for a queueing discipline that limits, delays or drops frames.
bool is_shaper(std::string_view discipline) {
  for (const char* shaper : {"tbf", "htb", "hfsc", "cbq", "cake", "netem", "drr", "qfq"}) {
    if (discipline == shaper) return true;
  }
  return false;
}

Interface read_link(ConstBytes message) {
  Interface interface;
  const auto head = head_of<ifinfomsg>(message);
  interface.index = head.ifi_index;
  interface.up = (head.ifi_flags & IFF_UP) != 0;
  interface.running = (head.ifi_flags & IFF_RUNNING) != 0 && (head.ifi_flags & IFF_LOWER_UP) != 0;
  interface.loopback = (head.ifi_flags & IFF_LOOPBACK) != 0;
  interface.has_ethernet = head.ifi_type == ARPHRD_ETHER;
  each_attribute_behind<ifinfomsg>(message, [&](unsigned type, ConstBytes value) {
    if (type == IFLA_IFNAME) interface.name = text_of(value);
    if (type == IFLA_MTU) read_number(value, interface.mtu);
    if (type == IFLA_ADDRESS && value.size() == interface.mac.size()) {
      std::copy(value.begin(), value.end(), interface.mac.begin());
    }
    if (type == IFLA_QDISC) interface.shaped = is_shaper(text_of(value));
    if (type == IFLA_MASTER) read_number(value, interface.master);
    if (type == IFLA_LINKINFO) {
      each_attribute(value, [&](unsigned kind, ConstBytes name) {
        if (kind == IFLA_INFO_KIND) interface.kind = kind_named(text_of(name));
      });
    }
  });
  if (interface.loopback) interface.kind = Interface::Kind::loopback;
  return interface;
}

/// Reads what netlink does not report: the speed, and whether the interface is wireless.
void read_device(const Descriptor& socket, Interface& interface) {
  iwreq wireless{};
  interface.name.copy(wireless.ifr_ifrn.ifrn_name, IFNAMSIZ - 1);
  if (ioctl(socket.number(), SIOCGIWNAME, &wireless) == 0) interface.kind = Interface::Kind::wireless;
  ethtool_cmd command{};
  if (!ask_driver(socket, interface.name, ETHTOOL_GSET, command)) return;
  const std::uint32_t speed = (static_cast<std::uint32_t>(command.speed_hi) << 16) | command.speed;
  // In SPEED_UNKNOWN all bits are 1. Old drivers set only the lower 16 bits.
  if (speed != 0 && speed != 0xffffffff && speed != 0xffff) interface.speed_mbit = static_cast<long>(speed);
}

/// Sets `hardware_port` of each bridge and bond that has a port to the outside of this node. Other bridges
/// only connect containers and virtual machines.
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

/// Adds the address in the message to its interface. Leaves out a deprecated address, and an address that is
/// not usable because the kernel still looks for duplicates or has found one.
void read_address(ConstBytes message, std::vector<Interface>& interfaces) {
  const auto head = head_of<ifaddrmsg>(message);
  std::uint32_t flags = head.ifa_flags;
  ConstBytes own;
  each_attribute_behind<ifaddrmsg>(message, [&](unsigned type, ConstBytes value) {
    if (type == IFA_FLAGS) read_number(value, flags);
    // On point-to-point links, IFA_ADDRESS is the address of the other end, and IFA_LOCAL is the address of
    // this end.
    if (type == IFA_LOCAL || (type == IFA_ADDRESS && own.empty())) own = value;
  });
  const SocketAddress address = make_address(head.ifa_family, own, head.ifa_index);
  const bool unusable = (flags & (IFA_F_TENTATIVE | IFA_F_DADFAILED | IFA_F_DEPRECATED)) != 0;
  if (unusable || address.empty() || address.wildcard()) return;
  for (Interface& interface : interfaces) {
    if (interface.index != static_cast<int>(head.ifa_index)) continue;
    auto& addresses = interface.addresses;
    const auto at = std::upper_bound(addresses.begin(), addresses.end(), address,
                                     [](auto& a, auto& b) { return rank_of(a) < rank_of(b); }) -
                    addresses.begin();
    addresses.insert(addresses.begin() + at, address);
    interface.prefix_bits.insert(interface.prefix_bits.begin() + at, head.ifa_prefixlen);
  }
}

std::vector<Interface> read_interfaces(const Descriptor& socket, int& error) {
  std::vector<Interface> interfaces;
  error = dump(socket, RTM_GETLINK, [&](ConstBytes message) {
    Interface interface = read_link(message);
    if (!interface.name.empty()) interfaces.push_back(std::move(interface));
  });
  const int no_addresses =
      dump(socket, RTM_GETADDR, [&](ConstBytes message) { read_address(message, interfaces); });
  if (error == 0) error = no_addresses;
  return interfaces;
}

}  // namespace

InterfaceChanges::InterfaceChanges()
    : questions_(netlink_socket(NETLINK_ROUTE)), events_(netlink_socket(NETLINK_ROUTE)) {
  sockaddr_nl address{};
  address.nl_family = AF_NETLINK;
  address.nl_groups = RTMGRP_LINK | RTMGRP_IPV4_IFADDR | RTMGRP_IPV6_IFADDR;
  if (events_ && bind(events_.number(), reinterpret_cast<sockaddr*>(&address), sizeof address) != 0)
    events_.reset();
}

/// Removes all events from the socket. Returns true if there was at least one. Ignores the content of events,
/// because look() returns the current state, even if the kernel had no space for all events.
bool InterfaceChanges::any() {
  std::byte ignored;
  bool found = false;
  for (;;) {
    if (recv(events_.number(), &ignored, sizeof ignored, MSG_DONTWAIT) < 0 && errno != ENOBUFS) {
      if (errno != EINTR) return found;
    } else {
      found = true;
    }
  }
}

std::optional<std::vector<Interface>> InterfaceChanges::look() const {
  int error = 0;
  std::vector<Interface> interfaces = read_interfaces(questions_, error);
  return error == 0 ? std::optional(std::move(interfaces)) : std::nullopt;
}

std::vector<Interface> list_interfaces(int* error) {
  int failure = 0;
  std::vector<Interface> interfaces = read_interfaces(netlink_socket(NETLINK_ROUTE), failure);
  if (error != nullptr) *error = failure;
  const Descriptor socket = ethtool_socket();
  for (Interface& interface : interfaces) read_device(socket, interface);
  note_hardware_ports(interfaces);
  return interfaces;
}

bool has_host(std::span<const SocketAddress> addresses, const SocketAddress& host) {
  return std::ranges::any_of(addresses, [&](const SocketAddress& each) { return each.same_host(host); });
}

std::size_t receive_queues(const std::string& interface) {
  const Descriptor socket = ethtool_socket();
  ethtool_channels channels{};
  ethtool_rxnfc rings{};  // older drivers answer only ETHTOOL_GRXRINGS
  std::size_t count = 0;
  if (ask_driver(socket, interface, ETHTOOL_GCHANNELS, channels)) {
    count = std::size_t{channels.rx_count} + channels.combined_count;
  } else if (ask_driver(socket, interface, ETHTOOL_GRXRINGS, rings)) {
    count = static_cast<std::size_t>(rings.data);
  }
  return std::max<std::size_t>(1, count);
}

std::optional<LocalRoute> local_route(const SocketAddress& address) {
  struct Question {
    rtmsg route{};
    rtattr attribute{};
    std::byte ip[16]{};
  };
  std::optional<LocalRoute> found;
  if (address.empty()) return found;
  const ConstBytes ip = address.ip();
  Request<Question> request(RTM_GETROUTE, 0);
  request.header.nlmsg_len = static_cast<std::uint32_t>(NLMSG_LENGTH(sizeof(rtmsg)) + RTA_LENGTH(ip.size()));
  Question& question = request.body;
  question.route.rtm_family = ip.size() == 4 ? AF_INET : AF_INET6;
  question.route.rtm_dst_len = static_cast<unsigned char>(8 * ip.size());
  // Requests the matching entry of the routing table, because only the entry contains the prefix.
  question.route.rtm_flags = RTM_F_FIB_MATCH;
  question.attribute.rta_type = RTA_DST;
  question.attribute.rta_len = static_cast<unsigned short>(RTA_LENGTH(ip.size()));
  std::copy(ip.begin(), ip.end(), question.ip);
  ask(netlink_socket(NETLINK_ROUTE), request, [&found](ConstBytes message) {
    const auto head = head_of<rtmsg>(message);
    if (head.rtm_type != RTN_LOCAL) return;
    found = LocalRoute{0, head.rtm_dst_len};
    each_attribute_behind<rtmsg>(message, [&found](unsigned type, ConstBytes value) {
      if (type == RTA_OIF) read_number(value, found->interface);
    });
  });
  return found;
}

std::uint64_t network_namespace() {
  struct stat status {};
  return stat("/proc/thread-self/ns/net", &status) == 0 ? status.st_ino : 0;
}

std::optional<SocketAddress> source_for(const SocketAddress& peer) {
  if (peer.empty()) return std::nullopt;
  sockaddr_storage storage;
  // connect() on a datagram socket sends nothing. Some kernels refuse port 0.
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
