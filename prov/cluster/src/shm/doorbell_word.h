// A word in shared memory with which one end of a ring (the sleeper) asks the other (the waker) to ring its
// doorbell (os/local_socket.h): the reader asks for the next segment, the writer for space.
//
// No wake is missed. The sleeper calls request() and os::fence_processes(), looks once more, and sleeps. The
// waker writes what the sleeper waits for, then calls take_request(). Both sides need a full fence between
// writing and looking. Then either the sleeper finds what was written, or the waker finds the request. If
// both processes take part in os/process_fence.h, the sleeper's fence covers both; kFenced says that the
// sleeper takes part. Otherwise take_request() executes a fence, too.
//
// A waker that finds a request takes it back before it rings: one ring per request. The sleeper clears its
// doorbell only before a new request, so until then the doorbell stays readable. Therefore, while a thread
// sleeps on the descriptor, a request stands, or the descriptor is readable, or the waker is about to ring.
// (LocalDeaths notices if the waker has died.)
#pragma once

#include <atomic>
#include <cstdint>

#include "os/process_fence.h"

namespace cluster::shm {

class DoorbellWord {
 public:
  explicit DoorbellWord(std::uint32_t& word) : word_(word), fenced_(os::register_process_fence()) {}

  /// The sleeper calls this once, before it sleeps for the first time.
  void announce_fence() {
    if (fenced_) word_.fetch_or(kFenced, std::memory_order_seq_cst);
  }
  /// The sleeper asks for a ring. Returns true if there was no request yet: then the sleeper must execute a
  /// fence.
  bool request() {
    const std::uint32_t wanted = kRequested | (fenced_ ? kFenced : 0);
    return (word_.exchange(wanted, std::memory_order_seq_cst) & kRequested) == 0;
  }

  /// The waker takes the request back. Returns true if there was one: then the waker must ring now.
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
