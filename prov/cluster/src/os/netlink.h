// Questions to the kernel by rtnetlink: a dump of all links or all addresses, handed to the caller message by message; their changes from
// then on; the route to one address.
#pragma once

#include <linux/netlink.h>
#include <linux/rtnetlink.h>

#include <cstddef>
#include <cstdint>
#include <functional>

#include "base/bytes.h"
#include "os/descriptor.h"

namespace cluster::os {

/// Asks for `request` (RTM_GETLINK, RTM_GETADDR) and calls `visit` with every answer's payload.
/// 0, or an errno if the dump was cut short; what was visited before is valid.
int netlink_dump(std::uint16_t request, const std::function<void(ConstBytes)>& visit);

/// Calls `visit` with the entry of the routing tables that applies to this address (4 or 16 bytes). 0 or an errno.
int netlink_route(ConstBytes ip, const std::function<void(ConstBytes)>& visit);

/// A socket, readable when a link or an address of this network namespace has changed. None: errno says why.
Descriptor open_netlink_events();

enum class NetlinkEvents { all, some_lost };
/// Calls visit(type, payload) with each message that waits. some_lost: the kernel had no space for some, so the caller needs a dump:
/// ask_netlink() for links, then for addresses.
NetlinkEvents read_netlink_events(int socket, const std::function<void(std::uint16_t, ConstBytes)>& visit);
/// The answers are events of the same socket; NLMSG_DONE is the last.
bool ask_netlink(int socket, std::uint16_t request);

/// Calls visit(type, value) for each attribute in `attributes`.
template <typename Visitor>
void each_attribute(ConstBytes attributes, Visitor&& visit) {
  while (attributes.size() >= sizeof(rtattr)) {
    rtattr head;
    std::memcpy(&head, attributes.data(), sizeof head);
    if (head.rta_len < sizeof head || head.rta_len > attributes.size()) return;
    visit(static_cast<unsigned>(head.rta_type & NLA_TYPE_MASK),
          attributes.subspan(sizeof head, head.rta_len - sizeof head));
    const std::size_t step = RTA_ALIGN(head.rta_len);
    if (step >= attributes.size()) return;
    attributes = attributes.subspan(step);
  }
}

}  // namespace cluster::os
