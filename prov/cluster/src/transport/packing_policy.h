// Decides when small messages share a frame. A frame costs a system call, however little it holds. While
// earlier frames to the peer are unanswered, the next message may wait for others in the open frame. A lone
// message therefore never waits. The frame leaves when it is full or when the engine takes a turn, as it does
// whenever the application reads or waits. This is Nagle's algorithm (RFC 896) without its deadlock against
// delayed acknowledgements: an application that looks for an answer sends what waits.
//
// An application may also make no call for long, because it computes or waits for its peer by other means. So
// a message waits only if the progress thread runs often enough to send it (background_runner.h). The thread
// runs that often only while a stream of messages profits. A stream begins when kStreamMin messages could
// have waited between two ordinary runs. It ends when fewer could have waited in kRunsPerReview runs.
//
// may_wait() and apply_review() need the engine lock. The progress thread calls review_due() without it.
#pragma once

#include <atomic>
#include <cstdint>

#include "base/units.h"

namespace cluster::transport {

class PackingPolicy {
 public:
  /// Time between two runs of the progress thread in a stream. No message waits longer than twice this time.
  static constexpr Duration kStreamInterval = 250us;
  static constexpr std::uint32_t kRunsPerReview = 40;
  static constexpr std::uint32_t kStreamMin = 64;

  /// Counts a message that could wait for others. Returns true if it may wait: the progress thread sends it
  /// if no call does.
  bool may_wait() {
    candidates_.store(candidates_.load(std::memory_order_relaxed) + 1, std::memory_order_relaxed);
    return in_stream_;
  }
  /// Called in each run of the progress thread. Returns true if a stream has begun or ended: then
  /// apply_review() is due.
  bool review_due() {
    if (in_stream_ && ++runs_ < kRunsPerReview) return false;
    const std::uint32_t candidates = candidates_.load(std::memory_order_relaxed);
    streaming_ = candidates - candidates_seen_ >= kStreamMin;
    if (streaming_ == in_stream_) begin_interval(candidates);
    return streaming_ != in_stream_;
  }
  void apply_review() {
    if (streaming_ == in_stream_) return;
    in_stream_ = streaming_;
    begin_interval(candidates_.load(std::memory_order_relaxed));
  }
  /// With automatic progress, each run of the progress thread says whether the next run comes soon enough.
  void set_in_stream(bool in_stream) { in_stream_ = in_stream; }
  bool in_stream() const { return in_stream_; }

 private:
  void begin_interval(std::uint32_t candidates) {
    candidates_seen_ = candidates;
    runs_ = 0;
  }

  std::atomic<std::uint32_t> candidates_{0};
  /// True while the progress thread runs every kStreamInterval. Only that thread changes the value, with the
  /// lock held, so it may read it without the lock.
  bool in_stream_ = false;
  bool streaming_ = false;
  std::uint32_t candidates_seen_ = 0;
  std::uint32_t runs_ = 0;
};

}  // namespace cluster::transport
