// What a flow knows of one rail: the way itself, and everything that depends on it (round trip, losses,
// congestion, pace, and whether it is believed in). Who decides by that is rail_set.h.
#pragma once

#include <algorithm>
#include <optional>

#include "base/shortest.h"
#include "base/units.h"
#include "link/link.h"
#include "rails/choice.h"
#include "rails/health.h"
#include "reliability/congestion.h"
#include "reliability/loss_detector.h"
#include "reliability/pacer.h"
#include "reliability/rtt.h"
#include "reliability/shortcut.h"

namespace cluster::reliability {

struct Rail {
  Rail(const link::Path& way, std::size_t window_max, bool believed)
      : path(link::the_long_way(way)), congestion(window_max), health(believed) {}

  /// For a frame that goes alone. What has gone the other way and is not known to have arrived would be
  /// overtaken, which looks like a loss.
  const link::Path& way_alone() {
    if (!shortcut.open()) return path;
    short_path = path;
    short_path.shortcut = true;
    return short_path;
  }
  bool overtakes_nothing() {
    if (last_in_company.after(losses.newest())) return false;
    last_in_company = losses.newest();  // stays near, since numbers wrap around
    return true;
  }
  void found(const link::Path& from) { path = link::the_long_way(from); }

  /// Frames that may leave now, of `travelling` that have not arrived yet.
  std::size_t allowance(Time now, std::size_t travelling) {
    const std::size_t window = congestion.window();
    const std::size_t left = window - std::min(window, travelling);
    if (!round_trip.measured()) return left;
    // While the window looks for its limit the pace must not be what holds it back.
    pacer.pace(round_trip.smoothed() / (congestion.exploring() ? 2 : 1), window);
    return std::min(left, pacer.allowance(now));
  }

  rails::Estimate estimate(Time now, std::size_t travelling) {
    rails::Estimate estimate;
    estimate.up = health.up() && !full;
    estimate.known = round_trip.measured() && now < sent_at + kStale;
    estimate.travelling = travelling;
    estimate.allowance = allowance(now, travelling);
    if (shortest.known()) estimate.way = shortest.get() / 2;
    estimate.each = round_trip.smoothed() / static_cast<std::int64_t>(congestion.window());
    return estimate;
  }

  /// When silence would mean that it has failed; kNever while nothing speaks against it.
  Time failed_at() const {
    if (passed_at == kNever) return kNever;
    const Duration patience = std::max(reply_time.timeout(), kSilence);
    return std::max(heard_at + patience, passed_at + reply_time.smoothed());
  }

  /// What one word of the peer says of this rail.
  struct Tally {
    std::size_t travelling = 0;  ///< before it
    std::size_t arrived = 0;
    std::optional<Sequence> latest;  ///< transmission that has arrived for certain
    Time latest_sent_at{};
  };

  link::Path path;
  link::Path short_path;  ///< the same by the shortcut, when it was last taken
  RoundTrip round_trip;   ///< of the network: what frames lay unread at either end is not in it
  RoundTrip reply_time;   ///< until it is known here that a frame has arrived, whatever that waited for
  Shortest shortest{kMemory};
  LossDetector losses;
  Congestion congestion;
  Pacer pacer;
  rails::Health health;
  Shortcut shortcut;
  Sequence last_in_company;       ///< the last transmission that went in a burst, so not by the shortcut
  Tally tally;
  Time sent_at{};           ///< the last frame that went out on it
  Time sampled_at{};        ///< the last sample of its reply time...
  Time measured_at{};       ///< ...and the last exact one
  Time heard_at{};          ///< something on it arrived, or was the first to travel on it
  Time passed_at = kNever;  ///< since when a later sending on another rail is known to have arrived
  bool full = false;        ///< its link has no room in this turn

  /// Silence of a rail whose fellows speak, at least: less may be a scheduler's doing.
  static constexpr Duration kSilence = 2ms;
  /// What was measured so long ago is measured again.
  static constexpr Duration kStale = 100ms;
  static constexpr Duration kMemory = 10s;
};

}  // namespace cluster::reliability
