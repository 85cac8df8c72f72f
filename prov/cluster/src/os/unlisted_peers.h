// What a packet link knows about peers for which the kernel's table of hardware addresses has no space. The
// first frame to such a peer goes to all hosts of the network, and each host must process it. If the link
// sent each retransmission to all hosts, many nodes that begin to talk at once would keep each other too busy
// to answer. So this class limits the number of such frames, and remembers the hardware addresses that peers
// have shown (os/address_trailer.h).
#pragma once

#include <cstddef>
#include <cstdint>
#include <unordered_map>

#include "base/address.h"
#include "base/units.h"
#include "os/address_trailer.h"

namespace cluster::os {

class UnlistedPeers {
 public:
  /// After a frame to a peer has gone to all hosts, the next may do so after this time. The time doubles with
  /// each frame, up to kAskAgainMax.
  static constexpr Duration kAskAgain = 200ms;
  static constexpr Duration kAskAgainMax = 3200ms;
  /// One frame in this time may go to all hosts, whatever its destination. kBurst frames can be saved up.
  static constexpr Duration kInterval = 32ms;
  static constexpr int kBurst = 16;
  /// For this time after a peer has shown its hardware address, its kernel may have no space for another.
  static constexpr Duration kShownFor = 10s;

  /// Called when a frame has arrived that shows the hardware address of the peer.
  void note(Time now, const SocketAddress& peer, const HardwareAddress& mac);
  /// Returns true if no peer was noted or asked.
  bool empty() const { return entries_.empty(); }
  /// Returns true if the peer was noted, or if a frame to it was meant for all hosts.
  bool contains(const SocketAddress& peer) const { return entries_.contains(peer); }
  /// Returns the hardware address that the peer has shown since `since`, or null.
  const HardwareAddress* find(const SocketAddress& peer, Time since) const;
  /// Returns true for every second frame to a peer that was noted.
  bool takes_turn(const SocketAddress& peer);
  /// Returns true if a frame to some peer may go to all hosts now.
  bool allows(Time now) const { return next_ <= now; }
  enum class Verdict : std::uint8_t {
    now,    ///< the frame may go to all hosts; it counts as sent
    later,  ///< too many frames have gone to all hosts
    no,     ///< a frame to this peer has just gone to all hosts
  };
  /// Says whether a frame to this peer may go to all hosts.
  Verdict ask_all(Time now, const SocketAddress& peer);

 private:
  static constexpr std::size_t kPeersMax = 4096;
  static constexpr Time kNotShown{-1ns};

  struct Entry {
    HardwareAddress mac{};
    Time shown_at = kNotShown;
    Time ask_at{};  ///< when a frame may go to all hosts again
    Duration ask_again = kAskAgain;
    bool turn = false;  ///< whose turn the last frame was
  };

  Entry* entry_of(const SocketAddress& peer);

  std::unordered_map<SocketAddress, Entry, SocketAddressHash> entries_;
  /// When the next frame may go to all hosts; a past time if some are saved.
  Time next_{-kBurst * kInterval};
};

}  // namespace cluster::os
