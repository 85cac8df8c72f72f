// What to do about silence while frames are outstanding. First a tail-loss probe (RFC 8985 section 7)
// after two reply times (or what the longest are likely to take) and the peer's delay of acknowledgements:
// one frame sent again, whose acknowledgement tells the loss detector about all before it. Then
// retransmission timeouts, each twice as long as the one before, up to a second. Every sending and every sign
// of progress starts the silence anew; progress also forgets the backoff.
#pragma once

#include <algorithm>
#include <cstdint>

#include "base/units.h"
#include "multipath/rtt_estimator.h"

namespace cluster::reliability {

class RetransmissionTimer {
 public:
  enum class Event : std::uint8_t {
    none,
    probe,    ///< send one frame again to provoke a word
    timeout,  ///< the same; if persistent(), take it for congestion
  };

  explicit RetransmissionTimer(Duration ack_delay) : ack_delay_(ack_delay) {}

  /// A frame that wants an acknowledgement went out.
  void sent(Time now) { running_ = true, since_ = now; }
  /// Something was acknowledged; `outstanding` says whether something still has to be.
  void progress(Time now, bool outstanding);
  /// Somebody says the peer may miss something: send one frame again at `when`, if not earlier.
  void hurry(Time when) { hurry_at_ = std::min(hurry_at_, when); }
  /// kNever if nothing is outstanding.
  Time deadline(const multipath::RttEstimator& reply_time) const;
  Event on_timer(Time now, const multipath::RttEstimator& reply_time);
  /// True from the second timeout without progress on. The first may be a peer that was away.
  bool persistent() const { return backoff_ > 1; }

 private:
  static constexpr Duration kProbeMin = 20us;
  static constexpr unsigned kBackoffMax = 13;  ///< 200 us doubled so often is beyond a second

  Duration silence(const multipath::RttEstimator& reply_time) const;
  bool probing(const multipath::RttEstimator& reply_time) const { return !probed_ && reply_time.measured(); }

  Duration ack_delay_;
  bool running_ = false;
  bool probed_ = false;
  unsigned backoff_ = 0;
  Time since_{};
  Time hurry_at_ = kNever;
};

}  // namespace cluster::reliability
