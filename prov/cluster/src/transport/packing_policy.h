// When small messages share a frame. A frame costs a system call, however little it holds. So while earlier
// frames to the peer are unanswered (a lone message therefore never waits), the next message may wait in the
// open frame for others, until that is full or the engine takes a turn, as it does whenever the application
// reads or waits. This is Nagle's algorithm (RFC 896) without its deadlock against delayed acknowledgements:
// an application that looks for an answer sends what waits for it.
//
// An application may also make no call for long, because it computes or waits for its peer by other means. So
// no message waits unless the progress thread runs often enough to send it (background_runner.h). It runs
// that often only while a stream of messages profits from it. A stream begins when kStreamMin messages could
// have waited between two ordinary runs. It ends when fewer could have waited in kRunsPerReview runs.
//
// may_wait() and apply_review() need the engine lock; review_due() is for the progress thread without it.
#pragma once

#include <atomic>
#include <cstdint>

#include "base/units.h"

namespace cluster::transport {

class PackingPolicy {
 public:
  /// Time between two runs of the progress thread in a stream; no message waits longer than twice that.
  static constexpr Duration kStreamInterval = 250us;
  static constexpr std::uint32_t kRunsPerReview = 40;
  static constexpr std::uint32_t kStreamMin = 64;

  /// A message could wait for others; counted. True if it may: the progress thread sends it if no call does.
  bool may_wait() {
    candidates_.store(candidates_.load(std::memory_order_relaxed) + 1, std::memory_order_relaxed);
    return in_stream_;
  }
  /// In each run of the progress thread. True if a stream has begun or ended: then apply_review() is due.
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
  /// With automatic progress each run of the progress thread says whether the next one comes soon enough.
  void set_in_stream(bool in_stream) { in_stream_ = in_stream; }
  bool in_stream() const { return in_stream_; }

 private:
  void begin_interval(std::uint32_t candidates) {
    candidates_seen_ = candidates;
    runs_ = 0;
  }

  std::atomic<std::uint32_t> candidates_{0};
  /// The progress thread runs each kStreamInterval. Only that thread changes it, with the lock held, so it
  /// may read it without.
  bool in_stream_ = false;
  bool streaming_ = false;
  std::uint32_t candidates_seen_ = 0;
  std::uint32_t runs_ = 0;
};

}  // namespace cluster::transport
