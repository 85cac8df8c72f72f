// The hardware addresses of hosts on an interface's cable, as the kernel knows them: for a link that writes
// Ethernet headers and does not see those of what arrives.
//
// What the kernel knows is true as long as it is asked to send there itself: only then it makes sure that
// the neighbour still is where it was. So once a second each host is left to it: find() looks its address up
// anew and tells nothing, and what is sent then goes the kernel's way. A host that moved is found again
// as for every other program. Where the kernel does not know one (or reaches it through a router) it is
// asked again soon.
//
// A limited table: of hosts that share a place, one has it until it is due again, the others are not found.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>

#include "base/address.h"
#include "base/units.h"
#include "os/descriptor.h"
#include "os/frame_headers.h"

namespace cluster::os {

class Neighbours {
 public:
  static constexpr Duration kTrusted = 1s;
  static constexpr Duration kUnknown = 10ms;

  /// On the interface with that index.
  explicit Neighbours(int index);

  /// Null: leave it to the kernel this time. What it points to holds until the next call.
  const HardwareAddress* find(const SocketAddress& host, Time now);

 private:
  struct Entry {
    SocketAddress host;
    std::optional<HardwareAddress> address;
    Time due{};
  };

  std::optional<HardwareAddress> ask(const SocketAddress& host);

  static constexpr std::size_t kPlaces = 128;

  int index_;
  Descriptor socket_;
  std::uint32_t questions_ = 0;
  std::array<Entry, kPlaces> entries_;
};

}  // namespace cluster::os
