// How the end of a peer on this node is noticed: it says in its ring that it closes, and rings; or its process ends, of which
// there is a handle; or its connection ends before it has attached the ring.
//
// What is read to the end before the peer counts as failed: the ring of a dead peer still holds what it sent last.
//
// All of these need system calls, so they are looked for only now and then (ShmTransport), in some of many peers at a time, or when
// a descriptor says so (Waiter).
// Peers of whose processes there is no handle are checked every kUnwatchedCheck, also while nothing else happens; where the kernel
// says nothing of the process at all (os/peer_process.h: observable), whether its doorbell is there. A peer that has executed
// another program lives under its handle, and its doorbell is gone: that is looked for every kExecCheck.
#pragma once

#include "shm/local_peers.h"

namespace cluster::shm {

class LocalDeaths {
 public:
  LocalDeaths(const ShmParts& parts, const transport::TransportContext& context, LocalPeers& local)
      : parts_(parts), peers_(context.peers), local_(local), waiter_(context.waiter) {}

  bool due(std::uint64_t ticks, std::uint32_t turn) const {
    return ticks - checked_at_tick_ > kTicksPerCheck || turn % kTurnsPerCheck == 0;
  }
  /// Checks the peers, or the next part of them.
  void check_some(std::uint64_t ticks, Time now);
  void check(LocalPeer& peer);
  /// The doorbell rang: perhaps since a peer closes.
  void check_closed();
  /// When check_some() is due, though nothing happens.
  Time next_check() const;

 private:
  /// A tick is a nanosecond or a fraction of it (Clock::ticks): these are 4 to 17 ms.
  static constexpr std::uint64_t kTicksPerCheck = 1 << 24;
  static constexpr std::uint32_t kTurnsPerCheck = 1 << 14;

  /// Peers looked at in one turn: many take several turns.
  static constexpr std::size_t kPerCheck = 32;
  static constexpr int kChecksMax = 4;

  void settle_connection(LocalPeer& peer);
  void check_doorbells(Time now);

  const ShmParts& parts_;
  PeerTable& peers_;
  LocalPeers& local_;
  transport::Waiter& waiter_;
  std::uint64_t checked_at_tick_ = 0;
  Time checked_at_{};
  std::size_t next_ = 0;  ///< of the peers, at the next check
  Time doorbells_checked_at_{};
  Time all_doorbells_checked_at_{};
  bool unwatched_ = false;        ///< there is no handle of some process, at the last check of all...
  bool unwatched_found_ = false;  ///< ...and at that under way
};

}  // namespace cluster::shm
