// The interfaces of this network namespace as plain values, from which provider/ chooses rails. They come
// from netlink, because /sys may belong to another namespace.
#pragma once

#include <optional>
#include <span>
#include <string>
#include <vector>

#include "base/address.h"
#include "link/interface.h"
#include "os/descriptor.h"

namespace cluster::os {

using link::Interface;

/// Returns the interfaces in the kernel's order. If netlink fails, some are missing, and `error` becomes an
/// errno.
std::vector<Interface> list_interfaces(int* error = nullptr);

/// Follows the interfaces of the network namespace in which it was made; any thread may call.
class InterfaceChanges {
 public:
  InterfaceChanges();
  /// False if there was no descriptor, or the kernel reports no changes.
  explicit operator bool() const { return questions_ && events_; }

  /// Readable once a link or an address has changed, until any() is called.
  int descriptor() const { return events_.number(); }
  bool any();
  /// Returns what list_interfaces() returns, except for facts that only a driver knows. Returns nothing if
  /// netlink fails.
  std::optional<std::vector<Interface>> look() const;

 private:
  Descriptor questions_;
  Descriptor events_;
};

/// Returns true if one of the addresses has the IP address of `host`.
bool has_host(std::span<const SocketAddress> addresses, const SocketAddress& host);

/// Returns the number of queues into which the interface sorts what it receives; 1 if the driver reports
/// none. A device with several queues spreads IP traffic over them by addresses and ports, and puts unknown
/// EtherTypes into the first one. There, such frames overtake others or are overtaken, and one processor
/// receives them all.
std::size_t receive_queues(const std::string& interface);

/// A route that makes an address local though no interface lists it: 127.0.1.1, for example, which many hosts
/// use for their own name, or an entry of `ip route add local`.
struct LocalRoute {
  int interface = 0;         ///< index
  unsigned prefix_bits = 0;  ///< of the addresses that the entry covers
};
/// Returns the local route to the address; nothing if the address is not local.
std::optional<LocalRoute> local_route(const SocketAddress& address);

/// Returns the local address (port 0) that the kernel uses towards `peer`; nothing if there is no route.
std::optional<SocketAddress> source_for(const SocketAddress& peer);

}  // namespace cluster::os
