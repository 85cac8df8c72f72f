#include "os/mixed_sender.h"

#include <algorithm>
#include <utility>

namespace cluster::os {

MixedSender::MixedSender(std::unique_ptr<PacketSender> raw, std::shared_ptr<UdpPort> port,
                         std::vector<SocketAddress> own, Counters& counters)
    : raw_(std::move(raw)), socket_(std::move(port), counters), own_(std::move(own)) {}

bool MixedSender::is_own(const SocketAddress& name) const {
  return std::any_of(own_.begin(), own_.end(),
                     [&](const SocketAddress& address) { return address.same_host(name); });
}

std::size_t MixedSender::send(std::span<const link::OutFrame> frames) {
  std::size_t gone = 0;
  while (gone < frames.size()) {
    const bool raw = goes_raw(*frames[gone].path);
    std::size_t end = gone + 1;
    while (end < frames.size() &&
           (frames[end].path == frames[gone].path || goes_raw(*frames[end].path) == raw)) {
      ++end;
    }
    const auto same_way = frames.subspan(gone, end - gone);
    const std::size_t taken = raw ? raw_->send(same_way) : socket_.send(same_way);
    gone += taken;
    if (taken < same_way.size()) break;
  }
  return gone;
}

}  // namespace cluster::os
