// Frames that belong to no flow: keep-alives, answers and resets. Each is sent once and never repeated; the
// engine that needs an answer asks again by its own timers.
#pragma once

#include <cstdint>

#include "base/units.h"
#include "link/link.h"
#include "network/network_parts.h"
#include "network/rate_limit.h"
#include "wire/admit.h"
#include "wire/control.h"

namespace cluster::network {

inline void send_control(link::Link& link, ConstBytes bytes, const link::Path& to) {
  link::OutFrame frame;
  frame.path = &to;
  frame.add(bytes);
  link.send_burst({&frame, 1});
}

/// Answers frames of sessions that this endpoint does not have (RFC 9000, 10.3: stateless reset), to sources that are known
/// some thousand times a second each (peer_limit.h): that is how the peers of a process that has begun anew learn of it, whatever
/// others send. To all other sources together goes at most one reset each kResetInterval, and kResetBurst at once: more
/// would answer a flood with a flood, and cost each of them a system call. In a flood members alone get any: a frame whose session
/// has a mark of this endpoint comes here for certain then, and a reset would tell its sender so (link/thinning.h). They get one of
/// eight: a peer of an earlier process repeats its frames within tens of milliseconds.
class ResetSender {
 public:
  static constexpr Duration kResetInterval = 5ms;
  static constexpr std::int64_t kResetBurst = 1024;

  ResetSender(const NetworkParts& parts, PeerTable& peers) : parts_(parts), peers_(peers) {}

  /// `epoch`: see wire::ResetReason.
  void send(Time now, const wire::FrameView& refused, const link::Path& to, wire::ResetReason reason,
            std::uint64_t epoch) {
    if (!admits(now, to.to)) return;
    send_control(*parts_.link, wire::ControlFrame::reset(refused, reason, epoch).bytes(), link::ip_path(to));
  }
  /// This is a flood, until then at least. What unknown sources have not used up is not there for them later either.
  void note_flood(Time now, Time until) {
    flood_until_ = until;
    unknown_.forfeit(now, kResetInterval);
  }

 private:
  /// A known source without a peer is in the address vector, so forged sources add no more peers than that has.
  bool admits(Time now, const SocketAddress& source) {
    if (now < flood_until_ && !peers_.is_member_name(source)) return false;
    if (!peers_.known(source)) return unknown_.admits(now);
    PeerLimit& resets = parts_.of(peers_.find_or_add(source)).resets;
    Random& random = parts_.environment.random;
    if (now < flood_until_ ? !resets.due_rarely(now, random) : !resets.due(now, random)) return false;
    resets.note(now);
    return true;
  }

  const NetworkParts& parts_;
  PeerTable& peers_;
  RateLimit unknown_{kResetInterval, kResetBurst};
  Time flood_until_{};
};

}  // namespace cluster::network
