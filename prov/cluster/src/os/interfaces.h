// Reads the interfaces of this network namespace into plain values. multipath/interface_choice.h chooses the
// rails from these interfaces. The functions use netlink, because /sys may show another namespace.
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

/// Returns the interfaces in the kernel's order. If netlink fails, some interfaces or addresses are missing.
/// Sets `error`, if not null, to an errno or 0.
std::vector<Interface> list_interfaces(int* error = nullptr);

/// Reports changes of the interfaces in the network namespace where the object was constructed. Any thread
/// may call its methods.
class InterfaceChanges {
 public:
  InterfaceChanges();
  /// Returns false if a socket could not be opened, or if the kernel does not report changes.
  explicit operator bool() const { return questions_ && events_; }

  /// Returns a descriptor that is readable from the first change of an interface or an address until the next
  /// call of any().
  int descriptor() const { return events_.number(); }
  bool any();
  /// Returns what list_interfaces() returns, but leaves out the values that come from drivers and does not
  /// set `hardware_port`. Returns nullopt if netlink fails.
  std::optional<std::vector<Interface>> look() const;

 private:
  Descriptor questions_;
  Descriptor events_;
};

/// Returns true if one of the addresses has the IP address of `host`.
bool has_host(std::span<const SocketAddress> addresses, const SocketAddress& host);

/// Returns the number of receive queues of the interface, or 1 if the driver reports none. A device with
/// several queues distributes IP traffic by addresses and ports, but puts all frames of an unknown EtherType
/// into the first queue. This has two results: a frame of this EtherType may overtake an IP frame or fall
/// behind it, and one processor receives all frames of this EtherType.
std::size_t receive_queues(const std::string& interface);

/// Returns a number that identifies the network namespace of this thread, or 0 if /proc does not show it.
std::uint64_t network_namespace();

/// A route that makes an address local. It can do this although no interface lists the address. Examples are
/// the routes to 127.0.1.1, to which many hosts map their own name, and to the addresses of
/// `ip route add local`.
struct LocalRoute {
  int interface = 0;         ///< index of the interface
  unsigned prefix_bits = 0;  ///< length of the prefix that the route covers
};
/// Returns the local route to the address, or nullopt if the address is not local.
std::optional<LocalRoute> local_route(const SocketAddress& address);

/// Returns the local address that the kernel uses as the source of packets to `peer`, with port 0. Returns
/// nullopt if there is no route.
std::optional<SocketAddress> source_for(const SocketAddress& peer);

}  // namespace cluster::os
