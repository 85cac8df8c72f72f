#include "os/next_hop.h"

#include <arpa/inet.h>
#include <linux/neighbour.h>
#include <linux/rtnetlink.h>
#include <netinet/in.h>
#include <sys/socket.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>

#include "base/address.h"
#include "base/end_of_memory.h"
#include "os/netlink.h"

namespace cluster::os {
namespace {

/// In these states the kernel does not wait for the address: it has one, or needs none.
constexpr unsigned kResolved = NUD_REACHABLE | NUD_STALE | NUD_DELAY | NUD_PROBE | NUD_PERMANENT | NUD_NOARP;
constexpr std::uint16_t kDiscardPort = 9;  // RFC 863
constexpr std::size_t kIpMax = 16;

/// An IP address in a question, and its family.
struct Hop {
  unsigned char family = 0;
  std::size_t size = 0;
  std::array<std::byte, kIpMax> ip{};

  Hop() = default;
  Hop(unsigned char of, ConstBytes bytes) : family(of), size(std::min(bytes.size(), kIpMax)) {
    std::copy_n(bytes.begin(), size, ip.begin());
  }
  explicit Hop(ConstBytes bytes) : Hop(bytes.size() == 4 ? AF_INET : AF_INET6, bytes) {}
};

/// A question with one or two attributes: an address, and the index of an interface.
template <typename Head>
struct Question {
  Head head{};
  std::array<std::byte, RTA_SPACE(kIpMax) + RTA_SPACE(sizeof(std::uint32_t))> attributes{};
};

template <typename Head>
Request<Question<Head>> question(std::uint16_t type) {
  Request<Question<Head>> request(type, 0);
  request.header.nlmsg_len = static_cast<std::uint32_t>(NLMSG_LENGTH(sizeof(Head)));
  return request;
}

template <typename Head>
void append(Request<Question<Head>>& request, unsigned short type, ConstBytes value) {
  const rtattr attribute{static_cast<unsigned short>(RTA_LENGTH(value.size())), type};
  std::byte* const at = reinterpret_cast<std::byte*>(&request) + request.header.nlmsg_len;
  std::memcpy(at, &attribute, sizeof attribute);
  std::copy(value.begin(), value.end(), at + RTA_LENGTH(0));
  request.header.nlmsg_len += static_cast<std::uint32_t>(RTA_SPACE(value.size()));
}

struct KernelRoute {
  bool found = false;
  bool local = false;  ///< packets to the address stay in this host
  Hop hop{};
};

KernelRoute route_to(const Descriptor& socket, const Hop& to, std::uint32_t interface) {
  auto request = question<rtmsg>(RTM_GETROUTE);
  request.body.head.rtm_family = to.family;
  request.body.head.rtm_dst_len = static_cast<unsigned char>(8 * to.size);
  append(request, RTA_DST, ConstBytes(to.ip).first(to.size));
  append(request, RTA_OIF, as_bytes(&interface, sizeof interface));
  KernelRoute route{.hop = to};
  ask(socket, request, [&](ConstBytes answer) {
    const auto type = head_of<rtmsg>(answer).rtm_type;
    route.local = type == RTN_LOCAL;
    route.found = route.local || type == RTN_UNICAST;
    each_attribute_behind<rtmsg>(answer, [&](unsigned attribute, ConstBytes value) {
      if (attribute == RTA_GATEWAY) route.hop = Hop(to.family, value);
      if (attribute != RTA_VIA) return;
      sa_family_t family = 0;
      read_number(value, family);
      route.hop =
          Hop(static_cast<unsigned char>(family), value.subspan(std::min(sizeof family, value.size())));
    });
  });
  return route;
}

NextHop neighbour(const Descriptor& socket, const Hop& hop, std::uint32_t interface) {
  auto request = question<ndmsg>(RTM_GETNEIGH);
  request.body.head.ndm_family = hop.family;
  request.body.head.ndm_ifindex = static_cast<int>(interface);
  append(request, NDA_DST, ConstBytes(hop.ip).first(hop.size));
  NextHop found{NextHop::State::unresolved};
  const int error = ask(socket, request, [&](ConstBytes answer) {
    if ((head_of<ndmsg>(answer).ndm_state & kResolved) == 0) return;
    found.state = NextHop::State::resolved;
    each_attribute_behind<ndmsg>(answer, [&](unsigned type, ConstBytes value) {
      HardwareAddress mac;
      if (type != NDA_LLADDR || value.size() != mac.size()) return;
      std::ranges::copy(value, mac.begin());
      found.hardware_address = mac;
    });
  });
  return error == 0 || error == ENOENT ? found : NextHop{};
}

/// Sends an empty datagram, before which the kernel resolves the address. Failures do no harm: the caller
/// asks again later.
void resolve(ConstBytes ip, std::uint32_t interface) {
  const bool v4 = ip.size() == 4;
  const Descriptor socket(::socket(v4 ? AF_INET : AF_INET6, SOCK_DGRAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
  if (!socket) return;
  const std::uint32_t index = htonl(interface);
  setsockopt(socket.number(), v4 ? IPPROTO_IP : IPPROTO_IPV6, v4 ? IP_UNICAST_IF : IPV6_UNICAST_IF, &index,
             sizeof index);
  const SocketAddress address =
      v4 ? SocketAddress::v4(ip.data(), kDiscardPort) : SocketAddress::v6(ip.data(), kDiscardPort, interface);
  sockaddr_storage to{};
  const std::size_t size = address.to(to);
  ::sendto(socket.number(), nullptr, 0, 0, reinterpret_cast<const sockaddr*>(&to),
           static_cast<socklen_t>(size));
}

}  // namespace

/// Without memory for the answers, the kernel counts as silent.
NextHop next_hop(ConstBytes ip, std::uint32_t interface) {
  NextHop found;
  enough_memory_for([&] {
    const Descriptor socket = netlink_socket(NETLINK_ROUTE);
    const KernelRoute route = route_to(socket, Hop(ip), interface);
    if (route.local)
      found.state = NextHop::State::resolved;
    else if (route.found)
      found = neighbour(socket, route.hop, interface);
  });
  return found;
}

bool hardware_address_known(ConstBytes ip, std::uint32_t interface) {
  const bool known = next_hop(ip, interface).state != NextHop::State::unresolved;
  if (!known) resolve(ip, interface);
  return known;
}

}  // namespace cluster::os
