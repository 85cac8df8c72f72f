#include "reliability/frame_size.h"

#include "reliability/send_queue.h"

namespace cluster::reliability {

void FrameSize::send_pmtu_probe(SendQueue& queue) {
  if (search_complete() || pmtu_probe_ || probes_ == kProbesMax) return;
  pmtu_probe_ = queue.push_padding(probe_size() - sizeof(wire::FrameHeader));
  if (!pmtu_probe_) return;
  padded_ = true;
  ++probes_;
}

void FrameSize::on_pmtu_probe_acked() {
  pmtu_probe_.reset();
  answered_ = padded_ || probes_ == kProbesMax;
  const std::size_t longest = probe_size();
  if (padded_) {
    path_max_ = longest;
  } else if (answered_ && longest > kBasePlpmtu && base_ < kBasePlpmtu) {
    answered_ = false;
    probes_ = 0;
    probed_max_ = kBasePlpmtu;
  } else if (answered_) {
    log_.warn(
        "path to %s: frames of %zu bytes do not arrive though both links take them; using %zu "
        "(check the MTU of the switches between)",
        paths_[0].address.to.text().c_str(), longest, frame_max());
  }
}

void FrameSize::on_black_hole(Sequence end) {
  cut_before_ = end;
  path_max_ = base_ = initial_max_;
  probed_max_ = wire::kFrameMax;
  answered_ = false;
  probes_ = 0;
}

}  // namespace cluster::reliability
