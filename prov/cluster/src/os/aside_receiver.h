// Reads what waits aside during a flood (link/link.h): Thinning::kAsideFrames at most in each Thinning::kAsideInterval, so that
// the flood costs a bounded part of the processor and wakes no process. The socket's buffer holds some more; the kernel drops the rest.
// Without a flood there are no buffers, and a look costs a comparison.
#pragma once

#include <cstddef>
#include <memory>
#include <optional>
#include <span>

#include "base/environment.h"
#include "link/link.h"
#include "os/udp_bursts.h"
#include "os/udp_port.h"

namespace cluster::os {

class AsideReceiver {
 public:
  AsideReceiver(std::shared_ptr<UdpPort> port, const Environment& environment)
      : port_(std::move(port)), environment_(environment) {}

  /// `in_effect`: as the port says. What waited at the end of the flood is read before the buffers go.
  void begin_or_end(const link::Thinning& in_effect);
  /// As Link::receive_burst(); what it has handed out stays valid until its next call.
  std::size_t receive(std::span<link::InFrame> frames) {
    if (!receiver_ || (left_ == 0 && ++polls_ < kPollsPerClock)) return 0;
    polls_ = 0;
    return receive_some(frames);
  }
  /// As Link::before_sleep().
  void before_sleep() { polls_ = kPollsPerClock; }

 private:
  static constexpr unsigned kPollsPerClock = 16;  ///< of a caller that polls without a pause

  std::size_t receive_some(std::span<link::InFrame> frames);

  std::shared_ptr<UdpPort> port_;
  Environment environment_;
  std::optional<UdpReceiver> receiver_;
  unsigned polls_ = 0;    ///< since the last look at the clock
  bool ends_ = false;     ///< the flood is over
  Time next_{};           ///< look
  std::size_t left_ = 0;  ///< frames of this look
};

}  // namespace cluster::os
