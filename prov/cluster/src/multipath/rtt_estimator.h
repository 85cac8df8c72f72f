// A time that is measured again and again, in nanoseconds, smoothed as RFC 6298 says. A rail has two
// (rail.h): the round trip of the network, and how long it takes to hear of a frame, absences included.
// Samples are never ambiguous (the peer names the transmission that arrived), but who is away makes long
// ones: one sample may not move the estimate by more than a factor.
#pragma once

#include "base/units.h"

namespace cluster::multipath {

class RttEstimator {
 public:
  void sample(Duration measured);
  bool measured() const { return smoothed_ > Duration::zero(); }
  /// True once so much has been measured that it tells what silence means. The first samples are those of an
  /// empty path; what follows them waits behind others, and behind itself.
  bool familiar() const { return samples_ >= kSamplesMin; }
  /// Zero until measured.
  Duration smoothed() const { return smoothed_; }
  Duration latest() const { return latest_; }
  /// Smoothed + 4 deviations: hardly any takes longer.
  Duration rto_unclamped() const { return smoothed_ + 4 * deviation_; }
  /// After this much silence a frame counts as lost: rto_unclamped(), within bounds.
  Duration timeout() const;

  static constexpr Duration kRtoInitial = 1ms;
  static constexpr Duration kRtoMin = 200us;
  static constexpr Duration kRtoMax = 1s;

 private:
  static constexpr int kOutlierFactor = 8;
  static constexpr unsigned kSamplesMin = 8;

  unsigned samples_ = 0;
  Duration smoothed_{0};
  Duration deviation_{0};
  Duration latest_{0};
};

}  // namespace cluster::multipath
