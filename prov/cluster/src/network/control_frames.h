// Frames that belong to no flow: keep-alives, answers and resets. None of them is retransmitted: an
// engine that needs an answer asks again by its own timers.
#pragma once

#include <cstdint>

#include "base/units.h"
#include "link/link.h"
#include "network/answer_limiter.h"
#include "network/network_parts.h"
#include "wire/admit.h"
#include "wire/control.h"

namespace cluster::network {

inline void send_control(link::Link& link, ConstBytes bytes, const link::Path& to) {
  link::OutFrame frame;
  frame.path = &to;
  frame.add(bytes);
  link.send_burst({&frame, 1});
}

/// Answers frames of sessions that this endpoint does not have (RFC 9000, 10.3: stateless reset). By this the peers of a process
/// that has begun anew learn that it has.
class ResetSender {
 public:
  ResetSender(const NetworkParts& parts, AnswerLimiter& limiter) : parts_(parts), limiter_(limiter) {}

  /// `epoch`: see wire::ResetReason.
  void send(Time now, const wire::FrameView& refused, const link::Path& to, wire::ResetReason reason,
            std::uint64_t epoch) {
    if (!limiter_.admits_reset(now, to.to)) return;
    send_control(*parts_.link, wire::ControlFrame::reset(refused, reason, epoch).bytes(), link::ip_path(to));
  }

 private:
  const NetworkParts& parts_;
  AnswerLimiter& limiter_;
};

}  // namespace cluster::network
