// Decides when messages to a peer leave together. Each call of the link costs about as much as it costs to
// copy some KB. While earlier frames to the peer are not acknowledged, the next message may wait for further
// messages: small ones share a frame, and frames share a burst, which is one call (SendQueue::may_coalesce).
// A message to a peer that has acknowledged all earlier frames never waits. What waits leaves when it is
// enough for a burst, or when the engine takes a turn. The engine takes a turn whenever the application reads
// a queue or waits. The policy is Nagle's algorithm (RFC 896) without its deadlock against delayed
// acknowledgements: an application that polls for an answer thereby sends the messages that wait.
//
// But an application may make no call for a long time, because it computes or waits for its peer by other
// means. So a message waits only if the progress thread runs often enough to send it soon
// (background_runner.h). With manual progress, the thread runs that often only during a stream, that is,
// while many messages can leave together. A stream begins when at least kStreamMin messages could have waited
// since the last run of the thread. The last of these messages makes the thread run at once. Without this
// message, the next run may be tens of milliseconds away. The stream ends when fewer than kStreamMin messages
// could have waited during the last kRunsPerReview runs.
//
// Call may_wait() and apply_review() under the engine lock. The progress thread calls review_due() without
// the lock.
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <utility>

#include "base/units.h"

namespace cluster::transport {

class PackingPolicy {
 public:
  /// The time between two runs of the progress thread during a stream, with manual progress. A message waits
  /// at most twice this time, unless the thread runs late.
  static constexpr Duration kStreamInterval = 250us;
  static constexpr std::uint32_t kRunsPerReview = 40;
  static constexpr std::uint32_t kStreamMin = 64;

  /// Sets `call`, a function that makes the progress thread run at once. Without `call`, a stream begins only
  /// in the thread's next run.
  void set_call(std::function<void()> call) { call_ = std::move(call); }

  /// Counts a message that could wait for further messages. Returns true if the message may wait. In that
  /// case the progress thread sends it soon, unless the application takes a turn earlier.
  bool may_wait() {
    const std::uint32_t candidates = candidates_.load(std::memory_order_relaxed) + 1;
    candidates_.store(candidates, std::memory_order_relaxed);
    if (in_stream_) return true;
    if (candidates - candidates_seen_.load(std::memory_order_relaxed) == kStreamMin && call_) call_();
    return false;
  }
  /// The progress thread calls this in each run. Returns true if a stream has begun or ended. If so, the
  /// thread must call apply_review().
  bool review_due() {
    if (in_stream_ && ++runs_ < kRunsPerReview) return false;
    const std::uint32_t candidates = candidates_.load(std::memory_order_relaxed);
    streaming_ = candidates - candidates_seen_.load(std::memory_order_relaxed) >= kStreamMin;
    if (streaming_ == in_stream_) begin_interval(candidates);
    return streaming_ != in_stream_;
  }
  void apply_review() {
    if (streaming_ == in_stream_) return;
    in_stream_ = streaming_;
    begin_interval(candidates_.load(std::memory_order_relaxed));
  }
  /// With automatic progress there are no reviews. Instead, in each run the progress thread says whether its
  /// next run follows soon enough for messages to wait.
  void set_in_stream(bool in_stream) { in_stream_ = in_stream; }
  bool in_stream() const { return in_stream_; }

 private:
  void begin_interval(std::uint32_t candidates) {
    candidates_seen_.store(candidates, std::memory_order_relaxed);
    runs_ = 0;
  }

  std::atomic<std::uint32_t> candidates_{0};
  /// True while the progress thread runs often enough for messages to wait. Only that thread writes this
  /// member, always under the engine lock. So the progress thread may read the member without the lock.
  bool in_stream_ = false;
  bool streaming_ = false;
  std::atomic<std::uint32_t> candidates_seen_{0};  ///< the progress thread writes it
  std::uint32_t runs_ = 0;
  std::function<void()> call_;
};

}  // namespace cluster::transport
