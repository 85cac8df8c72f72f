#include "os/udp_sender.h"

#include <netinet/in.h>
#include <netinet/udp.h>

#include <cstdint>
#include <cstring>
#include <utility>

namespace cluster::os {

UdpSender::UdpSender(std::shared_ptr<UdpPort> port, Counters& counters)
    : port_(std::move(port)), counters_(counters), batch_(true) {}

std::size_t UdpSender::send(std::span<const link::OutFrame> frames) {
  const std::size_t sent = batch_.send(
      frames, SIZE_MAX, port_->socket(), counters_,
      [this](std::span<const link::OutFrame> run, std::size_t i) { open_message(run, slots_[i]); });
  if (batch_.take_reported()) port_->drain_path_errors();
  return sent;
}

void UdpSender::open_message(std::span<const link::OutFrame> run, Slot& slot) {
  msghdr& header = batch_.open(run.size(), run[0].size);
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
