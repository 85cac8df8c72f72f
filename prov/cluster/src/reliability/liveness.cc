#include "reliability/liveness.h"

#include <algorithm>

namespace cluster::reliability {

void Liveness::heard(Time now) {
  heard_at_ = now;
  troubled_ = false;
}

void Liveness::expect(Time now, bool owed) {
  if (owed && !expecting_) expecting_since_ = now;
  if (!owed) troubled_ = false;
  expecting_ = owed;
}

bool Liveness::complaint(Time now, Fault fault) {
  // A peer that owes nothing may be gone without harm; whoever wants something of it will see.
  if (!expecting_) return false;
  if (!troubled_ || now - last_complaint_ > kSameTrouble) {
    troubled_ = true;
    trouble_since_ = now;
  }
  last_complaint_ = now;
  const bool refused = fault == Fault::refused;
  if (now - trouble_since_ >= (refused ? kRefusalsTolerated : kUnreachableTolerated)) {
    condemned_ = refused ? Fault::refused : Fault::unreachable;
  }
  return condemned_ == Fault::none;
}

bool Liveness::wants_probe(Time now) {
  if (!expecting_ || now < std::max(silent_since() + kSilenceBeforeProbe, probe_at_)) return false;
  probe_at_ = now + kProbeEvery;
  return true;
}

Fault Liveness::verdict(Time now) const {
  if (condemned_ != Fault::none) return condemned_;
  if (expecting_ && now - silent_since() >= peer_timeout_) return Fault::unreachable;
  return Fault::none;
}

Time Liveness::deadline() const {
  if (!expecting_) return kNever;
  const Time probe = std::max(silent_since() + kSilenceBeforeProbe, probe_at_);
  return std::min(probe, silent_since() + peer_timeout_);
}

}  // namespace cluster::reliability
