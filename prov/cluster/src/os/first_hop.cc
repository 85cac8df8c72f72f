#include "os/first_hop.h"

#include <linux/neighbour.h>
#include <linux/rtnetlink.h>
#include <sys/socket.h>

#include <algorithm>
#include <array>
#include <cstdint>
#include <cstring>

#include "base/end_of_memory.h"
#include "os/netlink.h"

namespace cluster::os {
namespace {

constexpr unsigned kValid = NUD_PERMANENT | NUD_NOARP | NUD_REACHABLE | NUD_PROBE | NUD_STALE | NUD_DELAY;

/// An IP address in a question, and its family.
struct Hop {
  std::uint8_t family = 0;
  std::size_t size = 0;
  std::array<std::byte, 16> ip{};

  Hop() = default;
  Hop(std::uint8_t of, ConstBytes bytes) : family(of), size(std::min(bytes.size(), ip.size())) {
    std::copy_n(bytes.begin(), size, ip.begin());
  }
};

/// The body of a question with one or two attributes: an address, and the index of an interface.
template <typename Head>
struct Question {
  Head head{};
  std::array<std::byte, RTA_SPACE(16) + RTA_SPACE(4)> attributes{};
};

template <typename Head>
void add(Request<Question<Head>>& request, std::size_t& used, unsigned short type, ConstBytes value) {
  rtattr attribute{};
  attribute.rta_type = type;
  attribute.rta_len = static_cast<unsigned short>(RTA_LENGTH(value.size()));
  std::byte* const at = request.body.attributes.data() + used;
  std::memcpy(at, &attribute, sizeof attribute);
  std::memcpy(at + sizeof attribute, value.data(), value.size());
  used += RTA_SPACE(value.size());
  request.header.nlmsg_len = static_cast<std::uint32_t>(NLMSG_LENGTH(sizeof(Head) + used));
}

/// Returns the next host on the way to this address: a router or the address itself. Its size is 0 if there
/// is no route.
Hop next_host(const Descriptor& socket, const Hop& to, int interface) {
  Request<Question<rtmsg>> request(RTM_GETROUTE, 0);
  request.body.head.rtm_family = to.family;
  request.body.head.rtm_dst_len = static_cast<unsigned char>(8 * to.size);
  std::size_t used = 0;
  add(request, used, RTA_DST, ConstBytes(to.ip).first(to.size));
  add(request, used, RTA_OIF, as_bytes(&interface, sizeof interface));
  Hop hop;
  ask(socket, request, [&](ConstBytes route) {
    if (head_of<rtmsg>(route).rtm_type != RTN_UNICAST) return;
    hop = to;
    each_attribute_behind<rtmsg>(route, [&](unsigned type, ConstBytes value) {
      if (type == RTA_GATEWAY) hop = Hop(to.family, value);
      if (type != RTA_VIA) return;
      sa_family_t family = 0;
      read_number(value, family);
      hop = Hop(static_cast<std::uint8_t>(family), value.subspan(std::min(sizeof family, value.size())));
    });
  });
  return hop;
}

std::optional<HardwareAddress> hardware_address(const Descriptor& socket, const Hop& hop, int interface) {
  Request<Question<ndmsg>> request(RTM_GETNEIGH, 0);
  request.body.head.ndm_family = hop.family;
  request.body.head.ndm_ifindex = interface;
  std::size_t used = 0;
  add(request, used, NDA_DST, ConstBytes(hop.ip).first(hop.size));
  std::optional<HardwareAddress> found;
  ask(socket, request, [&](ConstBytes neighbour) {
    if ((head_of<ndmsg>(neighbour).ndm_state & kValid) == 0) return;
    each_attribute_behind<ndmsg>(neighbour, [&](unsigned type, ConstBytes value) {
      HardwareAddress mac;
      if (type != NDA_LLADDR || value.size() != mac.size()) return;
      std::ranges::copy(value, mac.begin());
      found = mac;
    });
  });
  return found;
}

}  // namespace

std::optional<HardwareAddress> first_hop(const SocketAddress& to, int interface) {
  std::optional<HardwareAddress> found;
  // Without memory for the answers, the kernel counts as silent.
  enough_memory_for([&] {
    const Descriptor socket = netlink_socket(NETLINK_ROUTE);
    const int family = to.family() == SocketAddress::Family::v6 ? AF_INET6 : AF_INET;
    const Hop hop = next_host(socket, Hop(static_cast<std::uint8_t>(family), to.ip()), interface);
    if (hop.size != 0) found = hardware_address(socket, hop, interface);
  });
  return found;
}

/// If there is no memory for an entry, the hardware address of the path is used.
bool FirstHops::agrees(Time now, const link::Path& path, int interface) {
  const SocketAddress host = path.to.with_port(0);
  auto found = entries_.find(host);
  if (found == entries_.end()) {
    if (entries_.size() == kPeersMax) entries_.clear();
    if (!enough_memory_for([&] { found = entries_.try_emplace(host).first; })) return true;
  }
  Entry& its = found->second;
  if (its.agrees || now < its.ask_at) return its.agrees;
  const std::optional<HardwareAddress> hop = ask_(path.to, interface);
  its.unknown = hop ? 0 : its.unknown + 1;
  its.agrees = hop ? *hop == path.mac : its.unknown == kUnknownMax;
  its.ask_at = now + (hop ? kAskSeldom : kAskAgain);
  return its.agrees;
}

}  // namespace cluster::os
