// Detects that a peer on this node has ended. These are the signs:
//
//   the peer closes        it says so in its ring, and rings this endpoint's doorbell
//   its process ends       a handle of the process shows it, or a check every kUnwatchedCheck
//   its connection ends    a sign only before the peer has attached the ring
//   its doorbell is gone   the process has ended or executes another program; checked every kExecCheck, and
//                          every kUnwatchedCheck if a handle cannot tell (os/peer_process.h: observable)
//
// The ring of a dead peer still contains its last segments. All of them are read before the peer counts as
// failed.
//
// A peer that ends without closing is reported only after kReportDelay (docs/design/10-death-and-outage.md).
// If its job has crashed or aborted, the launcher kills the other processes within some 400 ms. If these
// processes reported errors before that, the errors would hide the cause. Until the report, operations with
// the peer wait. The ring to the peer seems full meanwhile, because a posted segment would count as sent
// although nobody reads it.
//
// Each check makes a system call. So a peer is checked when one of its descriptors becomes ready (Waiter).
// Otherwise peers are checked only from time to time (ShmTransport), a part of them each time.
#pragma once

#include "shm/local_peers.h"

namespace cluster::shm {

class LocalDeaths {
 public:
  LocalDeaths(const ShmParts& parts, LocalPeers& local) : parts_(parts), local_(local) {}

  /// Returns true if check_some() must be called. `ticks`: the current time. `turn`: number of the engine's
  /// turn.
  bool due(std::uint64_t ticks, std::uint32_t turn) const {
    return ticks - checked_at_tick_ > kTicksPerCheck || turn % kTurnsPerCheck == 0;
  }
  /// Checks all peers, or only the next part of them if there are many.
  void check_some(std::uint64_t ticks, Time now);
  void check(LocalPeer& peer);
  /// Checks the peers with LocalPeer::suspect.
  void check_suspects();
  /// Checks the peers that say in their rings that they have closed. Called when the doorbell rings.
  void check_closed();
  /// Returns the time at which check_some() must be called even if nothing else happens.
  Time next_check() const;

 private:
  /// A tick is a nanosecond or a fraction of a nanosecond (Clock::ticks), so this interval is 4 to 17 ms.
  static constexpr std::uint64_t kTicksPerCheck = 1 << 24;
  static constexpr std::uint32_t kTurnsPerCheck = 1 << 14;

  /// One call of check_some() checks kPerCheck peers, or more if kChecksMax calls would otherwise not reach
  /// all peers.
  static constexpr std::size_t kPerCheck = 32;
  static constexpr int kChecksMax = 4;

  void settle_connection(LocalPeer& peer);
  bool may_report(LocalPeer& peer);
  void check_doorbells(Time now);

  const ShmParts& parts_;
  LocalPeers& local_;
  std::uint64_t checked_at_tick_ = 0;
  Time checked_at_{};
  std::size_t next_ = 0;       ///< index of the peer with which the next check begins
  Time next_report_ = kNever;  ///< the earliest time at which a noticed death may be reported
  Time doorbells_checked_at_{};
  Time all_doorbells_checked_at_{};
  /// True if the last pass over all peers, or the current one, has found a process without a handle.
  bool unwatched_ = false;
  bool unwatched_found_ = false;  ///< true if the current pass has found a process without a handle
};

}  // namespace cluster::shm
