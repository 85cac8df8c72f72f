// What a flow knows of one rail: the way itself, and everything that depends on it (round trip, losses,
// congestion, pace, and whether it is believed in). Who decides by that is rail_set.h.
#pragma once

#include <algorithm>
#include <optional>

#include "base/units.h"
#include "base/windowed_min.h"
#include "link/link.h"
#include "multipath/congestion_controller.h"
#include "multipath/loss_detector.h"
#include "multipath/pacer.h"
#include "multipath/path_scheduler.h"
#include "multipath/path_validator.h"
#include "multipath/rtt_estimator.h"

namespace cluster::multipath {

struct PathState {
  PathState(const link::Path& way, std::size_t window_max, bool believed)
      : path(link::ip_path(way)),
        congestion(window_max),
        validator(PathValidator::kIp,
                  believed ? PathValidator::State::validated : PathValidator::State::unvalidated) {}

  /// For a frame that goes alone. What has gone the other way and is not known to have arrived would be
  /// overtaken, which looks like a loss.
  const link::Path& lone_frame_path() {
    if (!ethertype.validated()) return path;
    short_path = path;
    short_path.ethertype = true;
    return short_path;
  }
  bool keeps_order() {
    if (last_burst_end.after(losses.newest())) return false;
    last_burst_end = losses.newest();  // stays near, since numbers wrap around
    return true;
  }
  void found(const link::Path& from) { path = link::ip_path(from); }

  /// Frames that may leave now, of `in_flight` that have not arrived yet.
  std::size_t allowance(Time now, std::size_t in_flight) {
    const std::size_t window = congestion.window();
    const std::size_t left = window - std::min(window, in_flight);
    if (!round_trip.measured()) return left;
    // While the window looks for its limit the pace must not be what holds it back.
    pacer.pace(round_trip.smoothed() / (congestion.in_slow_start() ? 2 : 1), window);
    return std::min(left, pacer.allowance(now));
  }

  DeliveryEstimate estimate(Time now, std::size_t in_flight) {
    DeliveryEstimate estimate;
    estimate.up = validator.validated() && !full;
    estimate.known = round_trip.measured() && now < sent_at + kRttStaleAfter;
    estimate.in_flight = in_flight;
    estimate.allowance = allowance(now, in_flight);
    if (shortest.known()) estimate.way = shortest.get() / 2;
    estimate.each = round_trip.smoothed() / static_cast<std::int64_t>(congestion.window());
    return estimate;
  }

  /// When silence would mean that it has failed; kNever while nothing speaks against it.
  Time failed_at() const {
    if (passed_at == kNever) return kNever;
    const Duration patience = std::max(reply_time.timeout(), kPathSilenceMin);
    return std::max(heard_at + patience, passed_at + reply_time.smoothed());
  }

  /// What one word of the peer says of this rail.
  struct Tally {
    std::size_t in_flight = 0;  ///< before it
    std::size_t arrived = 0;
    std::optional<Sequence> latest;  ///< transmission that has arrived for certain
    Time latest_sent_at{};
  };

  link::Path path;
  link::Path short_path;    ///< the same by the shortcut, when it was last taken
  RttEstimator round_trip;  ///< of the network: what frames lay unread at either end is not in it
  RttEstimator reply_time;  ///< until it is known here that a frame has arrived, whatever that waited for
  WindowedMin shortest{kMinRttMemory};
  LossDetector losses;
  CongestionController congestion;
  Pacer pacer;
  PathValidator validator;
  PathValidator ethertype{PathValidator::kEthertype, PathValidator::State::unvalidated};
  Sequence last_burst_end;  ///< the last transmission that went in a burst, so not by the shortcut
  Tally tally;
  Time sent_at{};           ///< the last frame that went out on it
  Time sampled_at{};        ///< the last sample of its reply time...
  Time measured_at{};       ///< ...and the last exact one
  Time heard_at{};          ///< something on it arrived, or was the first to travel on it
  Time passed_at = kNever;  ///< since when a later sending on another rail is known to have arrived
  bool full = false;        ///< its link has no room in this turn

  /// Silence of a rail whose fellows speak, at least: less may be a scheduler's doing.
  static constexpr Duration kPathSilenceMin = 2ms;
  /// What was measured so long ago is measured again.
  static constexpr Duration kRttStaleAfter = 100ms;
  static constexpr Duration kMinRttMemory = 10s;
};

}  // namespace cluster::multipath
