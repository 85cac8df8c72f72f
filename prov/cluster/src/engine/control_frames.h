// Frames that belong to no flow: keep-alives, answers and resets. Each is sent once and never repeated; the
// engine that needs an answer asks again by its own timers.
#pragma once

#include <cstdint>

#include "base/units.h"
#include "link/link.h"
#include "wire/admit.h"
#include "wire/control.h"

namespace cluster::engine {

inline void send_control(link::Link& link, ConstBytes bytes, const link::Path& to) {
  link::OutFrame frame;
  frame.path = &to;
  frame.add(bytes);
  link.send_burst({&frame, 1});
}

/// Answers frames of sessions that this endpoint does not have (RFC 9000, 10.3: stateless reset). At most one
/// reset each kResetInterval: else they would amplify a flood.
class ResetSender {
 public:
  static constexpr Duration kResetInterval = 100us;

  /// `link` may be null: then no frames come, either.
  explicit ResetSender(link::Link* link) : link_(link) {}

  /// `epoch`: see wire::ResetReason.
  void send(Time now, const wire::FrameView& refused, const link::Path& to, wire::ResetReason reason,
            std::uint64_t epoch) {
    if (now < next_) return;
    next_ = now + kResetInterval;
    send_control(*link_, wire::ControlFrame::reset(refused, reason, epoch).bytes(), link::ip_path(to));
  }

 private:
  link::Link* link_;
  Time next_{};
};

}  // namespace cluster::engine
