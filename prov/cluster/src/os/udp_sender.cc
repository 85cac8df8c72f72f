#include "os/udp_sender.h"

#include <netinet/in.h>
#include <netinet/udp.h>

#include <algorithm>
#include <cstring>
#include <utility>

namespace cluster::os {

UdpSender::UdpSender(std::shared_ptr<UdpPort> port, Counters& counters)
    : port_(std::move(port)), counters_(counters), batch_(true) {}

std::size_t UdpSender::send(std::span<const link::OutFrame> frames) {
  std::size_t sent = 0;
  while (sent < frames.size()) {
    const auto rest = frames.subspan(sent);
    build(rest.first(std::min(rest.size(), link::kBurstMax)));
    const SendBatch::Outcome outcome = batch_.submit(port_->socket(), counters_);
    sent += outcome.frames;
    if (outcome.buffers_full) break;
  }
  return sent;
}

void UdpSender::build(std::span<const link::OutFrame> frames) {
  batch_.clear();
  for (std::size_t slot = 0; !frames.empty(); ++slot) {
    const std::size_t count = batch_.offload() ? run_length(frames) : 1;
    open_message(frames.first(count), slot);
    frames = frames.subspan(count);
  }
}

void UdpSender::open_message(std::span<const link::OutFrame> run, std::size_t slot_index) {
  Slot& slot = slots_[slot_index];
  msghdr& header = batch_.open(run.size());
  header.msg_name = &slot.address;
  header.msg_namelen = static_cast<socklen_t>(run[0].path->to.to(slot.address));
  if (run.size() > 1) {
    header.msg_control = slot.control.data();
    header.msg_controllen = slot.control.size();
    cmsghdr* control = CMSG_FIRSTHDR(&header);
    control->cmsg_level = SOL_UDP;
    control->cmsg_type = UDP_SEGMENT;
    control->cmsg_len = CMSG_LEN(sizeof(std::uint16_t));
    const auto segment = static_cast<std::uint16_t>(run[0].size);
    std::memcpy(CMSG_DATA(control), &segment, sizeof segment);
  }
  batch_.add_pieces(run);
}

}  // namespace cluster::os
