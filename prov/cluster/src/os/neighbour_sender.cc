#include "os/neighbour_sender.h"

#include <utility>

namespace cluster::os {

NeighbourSender::NeighbourSender(std::unique_ptr<PacketSender> raw, int index, std::shared_ptr<UdpPort> port,
                                 const Environment& environment)
    : clock_(environment.clock),
      raw_(std::move(raw)),
      socket_(std::move(port), environment.counters),
      neighbours_(index) {}

std::size_t NeighbourSender::send(std::span<const link::OutFrame> frames) {
  const Time now = clock_.now();
  std::size_t gone = 0;
  while (gone < frames.size()) {
    const link::Path* const path = frames[gone].path;
    std::size_t end = gone + 1;
    while (end < frames.size() && frames[end].path == path) ++end;
    const auto to_one = frames.subspan(gone, end - gone);
    const HardwareAddress* const host = neighbours_.find(path->to, now);
    const std::size_t taken = host != nullptr ? raw_->send(to_one, host) : socket_.send(to_one);
    gone += taken;
    if (taken < to_one.size()) break;
  }
  return gone;
}

}  // namespace cluster::os
