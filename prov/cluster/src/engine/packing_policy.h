// When small messages share a frame. A frame costs a system call, however little it holds; so while earlier
// frames to the peer are unanswered (a lone message therefore never waits), the next message may wait in the
// open frame for others, until that is full or the engine takes a turn, as it does for whoever finds no news
// or waits for some. The idea is Nagle's (RFC 896), without its trap: who looks for an answer sends what
// waits for it.
//
// An application may also look for nothing, and turn to an hour's work or wait for its peer by other means.
// So nothing waits unless the progress thread (attend.cc) comes by often, and it does so only while a stream
// of messages would profit: kStreamMin wishes from one of its visits at leisure to the next begin a stream,
// fewer in kRunsPerReview visits end it.
//
// wish() and settle() are for whoever is inside the engine's door; due() is for the progress thread, outside.
#pragma once

#include <atomic>
#include <cstdint>

#include "base/units.h"

namespace cluster::engine {

class PackingPolicy {
 public:
  /// How often the progress thread comes by in a stream; longer than twice as long no message waits.
  static constexpr Duration kStreamInterval = 250us;
  static constexpr std::uint32_t kRunsPerReview = 40;
  static constexpr std::uint32_t kStreamMin = 64;

  /// A message could wait for others. True if it may: somebody sends it if nobody else does.
  bool wish() {
    wishes_.store(wishes_.load(std::memory_order_relaxed) + 1, std::memory_order_relaxed);
    return attended_;
  }
  /// The progress thread's every visit. True if a stream has begun or ended: it shall come in and settle().
  bool due() {
    if (attended_ && ++visits_ < kRunsPerReview) return false;
    const std::uint32_t wishes = wishes_.load(std::memory_order_relaxed);
    streaming_ = wishes - wishes_seen_ >= kStreamMin;
    if (streaming_ == attended_) begin_interval(wishes);
    return streaming_ != attended_;
  }
  void settle() {
    if (streaming_ == attended_) return;
    attended_ = streaming_;
    begin_interval(wishes_.load(std::memory_order_relaxed));
  }
  /// Progress by itself: the progress thread says at each visit whether it comes back soon enough.
  void attended(bool soon) { attended_ = soon; }
  /// Does the progress thread come by each kStreamInterval? For the progress thread, which alone changes it.
  bool attended() const { return attended_; }

 private:
  void begin_interval(std::uint32_t wishes) {
    wishes_seen_ = wishes;
    visits_ = 0;
  }

  std::atomic<std::uint32_t> wishes_{0};
  bool attended_ = false;  ///< written by the progress thread inside the door, so read by it anywhere
  bool streaming_ = false;
  std::uint32_t wishes_seen_ = 0;
  std::uint32_t visits_ = 0;
};

}  // namespace cluster::engine
