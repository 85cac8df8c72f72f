#include "reliability/frame_size.h"

#include <algorithm>
#include <utility>

#include "reliability/send_queue.h"

namespace cluster::reliability {

/// Queues the companion after the probe, so that both leave together.
void FrameSize::send_pmtu_probe(SendQueue& queue) {
  if (search_complete() || pmtu_probe_) return;
  pmtu_probe_ = queue.push_padding(probe_size() - sizeof(wire::FrameHeader));
  if (!pmtu_probe_) return;
  padded_ = true;
  companion_arrived_ = false;
  companion_ = queue.push_padding(0);
  singly_before_ = queue.window().end();
}

/// Counts the loss only if the companion has arrived: in this case the path has dropped the probe because of
/// its length.
void FrameSize::on_pmtu_probe_lost(FrameBody& body) {
  body.set_padding(0);
  padded_ = false;
  if (companion_arrived_) ++lost_;
}

void FrameSize::on_pmtu_probe_acked() {
  pmtu_probe_.reset();
  if (padded_) {
    path_max_ = proven_ = probe_size();
  } else if (lost_ == kProbesMax) {
    swallowed_ = probe_size();
    probed_max_ = shorter(swallowed_);
    path_max_ = std::min(path_max_, probed_max_);
  } else {
    return;
  }
  padded_ = false;
  lost_ = 0;
  if (search_complete()) report();
}

/// Returns the size to probe next if frames of `size` bytes do not arrive.
std::size_t FrameSize::shorter(std::size_t size) const {
  for (const std::size_t next : {base_, initial_max_}) {
    if (next < size) return next;
  }
  return least();
}

/// If frames of some size do not arrive, logs the size that the flow uses instead, once for each size in use.
void FrameSize::report() {
  const std::size_t used = swallowed_ != 0 ? frame_max() : 0;
  if (std::exchange(reported_, used) == used || used == 0) return;
  log_.warn(
      "path to %s: frames of %zu bytes do not arrive, so frames now have at most %zu bytes (check the MTU "
      "of the interfaces and switches on the path)",
      paths_[0].address.to.text().c_str(), swallowed_, used);
}

void FrameSize::on_black_hole(Sequence end) {
  singly_before_ = end;
  const bool again = search_complete();
  path_max_ = path_max_ > initial_max_ ? initial_max_ : least();
  doubted_ = frame_max();
  proven_ = least();
  if (!again) return;
  probed_max_ = wire::kFrameMax;
  swallowed_ = 0;
  lost_ = 0;
}

}  // namespace cluster::reliability
