// Smooths a time that is measured repeatedly, in nanoseconds, as in RFC 6298. Each path has two
// (path_recovery.h): the round trip of the network, and the reply time, until this side knows that a frame
// has arrived. Samples are never ambiguous, because the peer names the transmission that arrived. But a peer
// that did not run for a while causes long samples. So one sample counts in the smoothed time as at most
// kOutlierFactor times the estimate.
#pragma once

#include <algorithm>

#include "base/units.h"

namespace cluster::multipath {

class RttEstimator {
 public:
  void sample(Duration measured);
  void restart() { *this = {}; }
  bool measured() const { return smoothed_ > Duration::zero(); }
  /// True after kSamplesMin samples; the first samples are those of an empty path.
  bool established() const { return samples_ >= kSamplesMin; }
  /// Zero until measured.
  Duration smoothed() const { return smoothed_; }
  /// The last sample, not smoothed: frames of a path that has just become slow must not be declared lost (RFC
  /// 9002 6.1.2).
  Duration latest() const { return latest_; }
  /// Smoothed time + 4 deviations: hardly any sample is longer.
  Duration rto_unclamped() const { return smoothed_ + 4 * deviation_; }
  /// The retransmission timeout (RFC 6298): rto_unclamped(), within bounds.
  Duration rto() const;

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

inline void RttEstimator::sample(Duration measured) {
  measured = std::max<Duration>(measured, 1ns);
  latest_ = measured;
  samples_ = std::min(samples_ + 1, kSamplesMin);
  if (smoothed_ == Duration::zero()) {
    smoothed_ = measured;
    deviation_ = measured / 2;
    return;
  }
  measured = std::min(measured, smoothed_ * kOutlierFactor + 1us);
  const Duration error = measured > smoothed_ ? measured - smoothed_ : smoothed_ - measured;
  deviation_ += (error - deviation_) / 4;
  smoothed_ = std::max<Duration>(smoothed_ + (measured - smoothed_) / 8, 1ns);
}

inline Duration RttEstimator::rto() const {
  if (!measured()) return kRtoInitial;
  return std::clamp(rto_unclamped(), established() ? kRtoMin : kRtoInitial, kRtoMax);
}

}  // namespace cluster::multipath
