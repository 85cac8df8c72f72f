// Finds out whether frames to a peer in another network may go to the hardware address that the peer's frames
// have shown. It is the address of the router by which those frames came. Routes may be asymmetric: this
// router need not forward frames to the peer. So before a link sends to this address for the first time, it
// asks the kernel which router the routes choose. If that is another router, the kernel sends the frames. If
// the kernel has no route, only the shown address can help.
#pragma once

#include <cstddef>
#include <cstdint>
#include <unordered_map>

#include "base/address.h"
#include "base/environment.h"
#include "base/units.h"
#include "link/link.h"
#include "os/next_hop.h"

namespace cluster::os {

class FirstHops {
 public:
  /// Time until the next question about a peer if the kernel did not know the hardware address. Meanwhile, the
  /// frames that the kernel sends make it learn the address.
  static constexpr Duration kAskAgain = 10ms;
  /// After this many such answers in a row, the hardware address that the peer's frames show is used.
  static constexpr unsigned kUnresolvedMax = 5;
  /// Time until the next question if the routes choose another router. An administrator may change routes.
  static constexpr Duration kAskSeldom = 10s;
  using Ask = NextHop (*)(ConstBytes ip, std::uint32_t interface);

  explicit FirstHops(Ask ask = next_hop) : ask_(ask) {}

  /// Returns true if frames may go to the hardware address of the path. Once this is so, it remains so for
  /// all paths to this peer: a router that takes the place of another one shows its own hardware address.
  bool agrees(Clock& clock, const link::Path& path, std::uint32_t interface);
  /// Called after the interface has changed.
  void forget() { entries_.clear(); }

 private:
  static constexpr std::size_t kPeersMax = 4096;

  struct Entry {
    bool agrees = false;
    unsigned unresolved = 0;  ///< answers in a row that the kernel did not know the address
    Time ask_at{};
  };

  Ask ask_;
  std::unordered_map<SocketAddress, Entry, SocketAddressHash> entries_;
};

}  // namespace cluster::os
