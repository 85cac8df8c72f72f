// Frames that belong to no flow: keep-alives, answers and resets. Each is sent once and never repeated; the
// engine that needs an answer asks again by its own timers.
#pragma once

#include <cstdint>

#include "base/units.h"
#include "engine/rate_limit.h"
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
/// reset each kResetInterval, and kResetBurst at once, for the peers of a process that has begun anew: more would answer a
/// flood with a flood, and cost each of them a system call.
class ResetSender {
 public:
  static constexpr Duration kResetInterval = 5ms;
  static constexpr std::int64_t kResetBurst = 1024;

  /// `link` may be null: then no frames come, either.
  explicit ResetSender(link::Link* link) : link_(link) {}

  /// `epoch`: see wire::ResetReason.
  void send(Time now, const wire::FrameView& refused, const link::Path& to, wire::ResetReason reason,
            std::uint64_t epoch) {
    if (!limit_.admits(now)) return;
    send_control(*link_, wire::ControlFrame::reset(refused, reason, epoch).bytes(), link::ip_path(to));
  }
  /// In a flood there is no reserve.
  void forfeit(Time now) { limit_.forfeit(now, kResetInterval); }

 private:
  link::Link* link_;
  RateLimit limit_{kResetInterval, kResetBurst};
};

}  // namespace cluster::engine
