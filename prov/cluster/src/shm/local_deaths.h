// Notices the end of a peer on this node, by one of these signs:
//
//   the peer closes        it says so in its ring, and rings this endpoint's doorbell
//   its process ends       a handle of the process tells; without one, this side asks every kUnwatchedCheck
//   its connection ends    before the peer has attached the ring
//   its doorbell is gone   the process has executed another program (checked every kExecCheck), or has ended
//                          and the kernel does not tell (os/peer_process.h: observable; each kUnwatchedCheck)
//
// The ring of a dead peer still holds its last segments. They are read to the end before the peer counts as
// failed.
//
// Each check is a system call. So peers are checked when a descriptor says so (Waiter). Otherwise they are
// checked only now and then (ShmTransport), some of them at a time.
#pragma once

#include "shm/local_peers.h"

namespace cluster::shm {

class LocalDeaths {
 public:
  LocalDeaths(const ShmParts& parts, LocalPeers& local) : parts_(parts), local_(local) {}

  bool due(std::uint64_t ticks, std::uint32_t turn) const {
    return ticks - checked_at_tick_ > kTicksPerCheck || turn % kTurnsPerCheck == 0;
  }
  /// Checks the peers, or the next part of them.
  void check_some(std::uint64_t ticks, Time now);
  void check(LocalPeer& peer);
  /// Checks the peers that have closed. Called when the doorbell rings.
  void check_closed();
  /// When check_some() is due even if nothing happens.
  Time next_check() const;

 private:
  /// A tick is a nanosecond or a fraction of it (Clock::ticks): this many ticks are 4 to 17 ms.
  static constexpr std::uint64_t kTicksPerCheck = 1 << 24;
  static constexpr std::uint32_t kTurnsPerCheck = 1 << 14;

  /// One check looks at kPerCheck peers, or at more if kChecksMax checks would not reach all peers.
  static constexpr std::size_t kPerCheck = 32;
  static constexpr int kChecksMax = 4;

  void settle_connection(LocalPeer& peer);
  void check_doorbells(Time now);

  const ShmParts& parts_;
  LocalPeers& local_;
  std::uint64_t checked_at_tick_ = 0;
  Time checked_at_{};
  std::size_t next_ = 0;  ///< index of the peer that the next check begins with
  Time doorbells_checked_at_{};
  Time all_doorbells_checked_at_{};
  bool unwatched_ = false;        ///< the last check of all peers found a process without a handle...
  bool unwatched_found_ = false;  ///< ...or the check under way has found one
};

}  // namespace cluster::shm
