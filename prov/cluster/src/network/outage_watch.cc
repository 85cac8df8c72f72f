#include "network/outage_watch.h"

#include <algorithm>
#include <utility>

namespace cluster::network {

void OutageWatch::note(Time now, const SocketAddress& name, const reliability::Liveness& liveness) {
  ++members_;
  const bool heard = liveness.reached_at() > now - silent_after_;
  const bool silent = !heard && liveness.expecting() && liveness.idle_by(now) >= silent_after_;
  if (!heard && !silent) return;
  Node& node = nodes_[name.with_port(0)];
  node.heard |= heard;
  node.silent |= silent;
}

bool OutageWatch::wants_witness(Time now, const reliability::Liveness& liveness) const {
  const Time last = std::max(liveness.reached_at(), liveness.keep_alive_sent());
  return !liveness.expecting() && now - last >= silent_after_ / 2;
}

OutageWatch::News OutageWatch::finish_review(Time now, bool suspected, bool carrier) {
  const auto heard = [](const auto& each) { return each.second.heard; };
  const std::size_t heard_before =
      std::exchange(heard_, static_cast<std::size_t>(std::ranges::count_if(nodes_, heard)));
  silent_ = nodes_.size() - heard_;
  const bool carrier_is_back = !std::exchange(carrier_, carrier) && carrier;
  const bool nearly_all_silent = heard_ * kSilentPerHeard <= silent_;
  if (heard_ != 0) exhausted_ = false;
  if (!outage_.present()) return suspected && begins(now, carrier) ? News::begins : News::none;
  const bool cut_off = !carrier || (members_ != 0 && nearly_all_silent);
  if (cut_off && used_ + outage_.length(now) < limit_)
    return heard_ > heard_before || carrier_is_back ? News::heard : News::none;
  outage_.end(now);
  used_ += outage_.length(now);
  used_until_ = now;
  exhausted_ = cut_off;
  return cut_off ? News::limit : News::ends;
}

/// Begins an outage if no interface has a carrier, or if this node hears (nearly) nobody. Begins none if the
/// limit is used up.
bool OutageWatch::begins(Time now, bool carrier) {
  const bool cut_off = !carrier || (silent_ != 0 && heard_ * kSilentPerHeard <= silent_);
  if (!cut_off || exhausted_) return false;
  used_ = std::max(used_ - (now - used_until_), Duration{});
  used_until_ = now;
  if (used_ >= limit_) return false;
  outage_.begin(now);
  return true;
}

}  // namespace cluster::network
