#include "os/next_hop.h"

#include <arpa/inet.h>
#include <linux/neighbour.h>
#include <netinet/in.h>

#include <array>
#include <optional>
#include <span>

#include "os/netlink.h"

namespace cluster::os {
namespace {

/// In these states the kernel does not wait for the address: it has one, or needs none.
constexpr unsigned kKnown = NUD_REACHABLE | NUD_STALE | NUD_DELAY | NUD_PROBE | NUD_PERMANENT | NUD_NOARP;
constexpr std::uint16_t kDiscardPort = 9;  // RFC 863
constexpr std::size_t kIpMax = 16;

/// A request with an IP address, and maybe an interface, behind its head.
template <typename Head>
struct Question {
  Head head{};
  std::array<std::byte, 2 * RTA_SPACE(kIpMax)> attributes{};
};

template <typename Head>
void append(Request<Question<Head>>& request, unsigned short type, ConstBytes value) {
  const rtattr attribute{static_cast<unsigned short>(RTA_LENGTH(value.size())), type};
  std::byte* const at = reinterpret_cast<std::byte*>(&request) + request.header.nlmsg_len;
  std::memcpy(at, &attribute, sizeof attribute);
  std::copy(value.begin(), value.end(), at + RTA_LENGTH(0));
  request.header.nlmsg_len += static_cast<std::uint32_t>(RTA_SPACE(value.size()));
}

template <typename Head>
Request<Question<Head>> question(std::uint16_t type) {
  Request<Question<Head>> request(type, 0);
  request.header.nlmsg_len = static_cast<std::uint32_t>(NLMSG_LENGTH(sizeof(Head)));
  return request;
}

unsigned char family_of(ConstBytes ip) { return ip.size() == 4 ? AF_INET : AF_INET6; }

/// The host that gets the packets to an IP address.
struct NextHop {
  std::array<std::byte, kIpMax> ip{};
  std::size_t size = 0;
  bool local = false;  ///< packets to the address stay in this host
};

/// Returns nothing if there is no route.
std::optional<NextHop> next_hop(const Descriptor& socket, ConstBytes ip, std::uint32_t interface) {
  auto request = question<rtmsg>(RTM_GETROUTE);
  request.body.head.rtm_family = family_of(ip);
  request.body.head.rtm_dst_len = static_cast<unsigned char>(8 * ip.size());
  append(request, RTA_DST, ip);
  append(request, RTA_OIF, std::as_bytes(std::span(&interface, 1)));
  NextHop hop;
  const auto set = [&hop](ConstBytes address) {
    hop.size = std::min(address.size(), kIpMax);
    std::copy_n(address.begin(), hop.size, hop.ip.begin());
  };
  set(ip);
  const int error = ask(socket, request, [&](ConstBytes message) {
    hop.local = head_of<rtmsg>(message).rtm_type == RTN_LOCAL;
    each_attribute_behind<rtmsg>(message, [&](unsigned type, ConstBytes value) {
      if (type == RTA_GATEWAY) set(value);
    });
  });
  return error == 0 ? std::optional(hop) : std::nullopt;
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
  sockaddr_in to4{};
  to4.sin_family = AF_INET;
  sockaddr_in6 to6{};
  to6.sin6_family = AF_INET6;
  to4.sin_port = to6.sin6_port = htons(kDiscardPort);
  std::memcpy(v4 ? static_cast<void*>(&to4.sin_addr) : &to6.sin6_addr, ip.data(), ip.size());
  const auto* const to =
      v4 ? reinterpret_cast<const sockaddr*>(&to4) : reinterpret_cast<const sockaddr*>(&to6);
  ::sendto(socket.number(), nullptr, 0, 0, to, v4 ? sizeof to4 : sizeof to6);
}

}  // namespace

bool hardware_address_known(ConstBytes ip, std::uint32_t interface) {
  const Descriptor socket = netlink_socket(NETLINK_ROUTE);
  const std::optional<NextHop> hop = next_hop(socket, ip, interface);
  if (!hop || hop->local) return true;
  const ConstBytes next = ConstBytes(hop->ip).first(hop->size);
  auto request = question<ndmsg>(RTM_GETNEIGH);
  request.body.head.ndm_family = family_of(next);
  request.body.head.ndm_ifindex = static_cast<int>(interface);
  append(request, NDA_DST, next);
  unsigned state = 0;
  const int error =
      ask(socket, request, [&state](ConstBytes message) { state = head_of<ndmsg>(message).ndm_state; });
  const bool known = error == 0 ? (state & kKnown) != 0 : error != ENOENT;
  if (!known) resolve(ip, interface);
  return known;
}

}  // namespace cluster::os
