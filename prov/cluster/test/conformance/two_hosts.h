// Two hosts joined by one cable: two network namespaces and a veth pair between them. The namespaces
// have no name and vanish with the test, however it ends. Needs root.
#pragma once

#include <functional>
#include <memory>
#include <string>

#include "base/address.h"
#include "os/descriptor.h"
#include "os/interfaces.h"

namespace cluster::test {

class TwoHosts {
 public:
  static constexpr unsigned kMtu = 1500;

  /// Null with a reason if this machine (or user) cannot have namespaces.
  static std::unique_ptr<TwoHosts> make(std::string& reason);

  /// Runs `action` on the host (0 or 1); sockets made there stay there.
  void on(int host, const std::function<void()>& action) const;
  /// Port 0.
  SocketAddress address(int host, SocketAddress::Family family) const;
  /// From now on the host's end of the cable takes no super-frames, like many a simple card.
  bool forbid_segmentation(int host) const;
  /// Pulls the cable out of the host, or puts it in again: the other end loses its carrier. Addresses stay.
  bool plug(int host, bool in) const;
  /// Gives the host's end of the cable what `ip link set` calls so ("mtu 1400"), while it is up.
  bool set(int host, const std::string& what) const;
  /// From now on the kernel of the host refuses each frame that does not bypass the queue of its end, with
  /// ENOBUFS.
  bool fill_queue(int host) const;
  /// What `ip ARGUMENTS` changes on the host.
  bool ip(int host, const std::string& arguments) const;
  /// True as soon as the kernel of the host knows a neighbour by this hardware address; false after some
  /// seconds.
  bool await_neighbour(int host, const std::string& hardware_address) const;
  /// The host's end of the cable.
  os::Interface interface(int host) const;

 private:
  os::Descriptor hosts_[2];
};

/// The test's address of 127.0.0.1 or ::1, port 0.
SocketAddress loopback(SocketAddress::Family family);

}  // namespace cluster::test
