#include "os/aside_receiver.h"

#include <algorithm>

namespace cluster::os {
namespace {

constexpr std::size_t kBuffers = 16;
/// A sleeper is woken by the alarm of the engine's flood watch, which keeps the same interval by another look at the clock: a look
/// that came just too early would be made up for an interval later, and half of the frames be read.
constexpr Duration kEarly = link::Thinning::kAsideInterval / 5;

}  // namespace

void AsideReceiver::begin_or_end(const link::Thinning& in_effect) {
  ends_ = !in_effect.on;
  if (ends_ || receiver_) return;
  receiver_.emplace(port_, port_->aside_socket(), kBuffers, UdpReceiver::Timestamps::no, environment_);
  next_ = environment_.clock.now() + link::Thinning::kAsideInterval;
}

std::size_t AsideReceiver::receive_some(std::span<link::InFrame> frames) {
  if (left_ == 0) {
    const Time now = environment_.clock.now();
    if (now < next_ - kEarly) return 0;
    next_ = std::max(next_, now - kEarly) + link::Thinning::kAsideInterval;
    left_ = link::Thinning::kAsideFrames;
  }
  const std::size_t count = receiver_->receive(frames.first(std::min(left_, frames.size())));
  left_ = count == 0 ? 0 : left_ - count;
  if (count == 0 && ends_) receiver_.reset();
  return count;
}

}  // namespace cluster::os
