#include "os/neighbour_table.h"

#include <linux/neighbour.h>
#include <sys/socket.h>

#include <atomic>
#include <cstring>

#include "os/netlink.h"

namespace cluster::os {

std::uint64_t neighbour_overflows(SocketAddress::Family family) {
  const int wanted = family == SocketAddress::Family::v6 ? AF_INET6 : AF_INET;
  Request<ndtmsg> request(RTM_GETNEIGHTBL, NLM_F_DUMP);
  request.body.ndtm_family = static_cast<std::uint8_t>(wanted);
  std::uint64_t overflows = 0;
  ask(netlink_socket(NETLINK_ROUTE), request, [&](ConstBytes message) {
    if (head_of<ndtmsg>(message).ndtm_family != wanted) return;
    each_attribute_behind<ndtmsg>(message, [&](unsigned type, ConstBytes value) {
      ndt_stats stats{};
      if (type != NDTA_STATS || value.size() < sizeof stats) return;
      std::memcpy(&stats, value.data(), sizeof stats);
      overflows = stats.ndts_table_fulls;
    });
  });
  return overflows;
}

/// The kernel counts each refusal that a full table causes. Therefore, if the table has just been full, the
/// count has risen since the last question.
bool NeighbourTable::is_full(Time now) {
  if (seen_ && now - asked_ < kAskAgain) return full_;
  asked_ = now;
  const std::uint64_t count = overflows_(family_);
  full_ = seen_ && count > *seen_;
  seen_ = count;
  if (full_) full_until_ = now + kFullFor;
  if (full_) warn();
  return full_;
}

void NeighbourTable::warn() {
  static std::atomic<bool> told = false;
  if (told.exchange(true)) return;
  const char* const version = family_ == SocketAddress::Family::v6 ? "ipv6" : "ipv4";
  log_.warn(
      "the kernel's table of hardware addresses is full, so the first message to a peer takes longer: raise "
      "net.%s.neigh.default.gc_thresh3 above the number of hosts in the network (sysctl)",
      version);
}

}  // namespace cluster::os
