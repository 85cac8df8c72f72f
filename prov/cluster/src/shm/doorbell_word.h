// A word in shared memory, in which one side (the sleeper) asks the other side (the waker) to ring the
// sleeper's doorbell (os/local_socket.h). A sleeping reader waits for the next segment, and a sleeping writer
// waits for space.
//
// No wake is missed. The sleeper calls request() and os::fence_processes(), checks once more that there is
// nothing to do, and sleeps. The waker writes the segment or the space for which the sleeper waits, then
// calls take_request(). Each side must execute a full fence between its write and its read. Then either the
// sleeper finds what the waker has written, or the waker finds the request. If both processes have registered
// with os/process_fence.h, the sleeper's fence is a fence for both of them. (kFenced tells the waker that the
// sleeper has registered.) If one of them has not registered, take_request() executes a fence, too.
//
// A waker that finds a request clears the request before it rings the doorbell, so the waker rings only once
// per request. The sleeper clears its doorbell only before it makes a new request. So a doorbell that was
// rung stays readable until the next request. Therefore one of three things is true while a thread sleeps:
// the request is set, the descriptor is readable, or the waker is about to ring the doorbell. (LocalDeaths
// notices if the waker has died.)
#pragma once

#include <atomic>
#include <cstdint>

#include "os/process_fence.h"

namespace cluster::shm {

class DoorbellWord {
 public:
  explicit DoorbellWord(std::uint32_t& word) : word_(word), fenced_(os::register_process_fence()) {}

  /// Called by the sleeper once, before it sleeps for the first time.
  void announce_fence() {
    if (fenced_) word_.fetch_or(kFenced, std::memory_order_seq_cst);
  }
  /// Called by the sleeper to request its doorbell. Returns true if this is a new request. If so, the sleeper
  /// must execute a fence.
  bool request() {
    const std::uint32_t wanted = kRequested | (fenced_ ? kFenced : 0);
    return (word_.exchange(wanted, std::memory_order_seq_cst) & kRequested) == 0;
  }

  /// Called by the waker to clear the request. Returns true if a request was set. If so, the waker must ring
  /// the doorbell.
  bool take_request() {
    std::atomic_signal_fence(std::memory_order_seq_cst);
    const std::uint32_t word = word_.load(std::memory_order_relaxed);
    if (fenced_ && (word & kFenced)) [[likely]] {
      if (!(word & kRequested)) [[likely]]
        return false;
    }
    return (word_.fetch_and(~kRequested, std::memory_order_seq_cst) & kRequested) != 0;  // a full fence
  }

 private:
  static constexpr std::uint32_t kRequested = 1;
  static constexpr std::uint32_t kFenced = 2;  ///< the sleeper's fence covers both processes

  std::atomic_ref<std::uint32_t> word_;
  bool fenced_;
};

}  // namespace cluster::shm
