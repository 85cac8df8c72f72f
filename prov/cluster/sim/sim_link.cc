#include "sim/sim_link.h"

#include "sim/memory_account.h"
#include "sim/verdict.h"

namespace cluster::sim {
namespace {

constexpr std::size_t kComplaintsMax = 64;

}  // namespace

SimLink::SimLink(SimNetwork& network, Oracle& oracle, HostNumber host, RailNumber rail, std::uint32_t life,
                 std::size_t frame_max)
    : network_(network), oracle_(oracle), host_(host), rail_(rail), life_(life), frame_max_(frame_max) {}

SimLink::~SimLink() = default;

std::size_t SimLink::send_burst(std::span<const link::OutFrame> frames) {
  const MemoryAccount::Scope nobody(nullptr);
  if (unplugged_) return frames.size();
  std::size_t taken = 0;
  for (const link::OutFrame& frame : frames) {
    if (frame.size > frame_max_) throw SafetyFailure("a frame is longer than the link it is sent to allows");
    if (!network_.send(host_, rail_, life_, frame)) break;
    ++taken;
  }
  return taken;
}

std::size_t SimLink::receive_burst(std::span<link::InFrame> frames) {
  const MemoryAccount::Scope nobody(nullptr);
  for (std::unique_ptr<Packet>& packet : lent_) network_.recycle(std::move(packet));
  lent_.clear();
  while (lent_.size() < frames.size() && !ring_.empty()) {
    lent_.push_back(std::move(ring_.front()));
    ring_.pop_front();
    const Packet& packet = *lent_.back();
    oracle_.frame_read(host_, packet);
    link::InFrame& frame = frames[lent_.size() - 1];
    frame.bytes = packet.bytes;
    frame.from = {address_of(packet.from, rail_), {}, true};
    frame.from.mac[5] = static_cast<std::byte>(packet.from);
  }
  return lent_.size();
}

std::size_t SimLink::complaints(std::span<link::Complaint> complaints) {
  std::size_t count = 0;
  for (; count < complaints.size() && !complaints_.empty(); ++count) {
    complaints[count] = complaints_.front();
    complaints_.pop_front();
  }
  return count;
}

void SimLink::arrive(std::unique_ptr<Packet>& packet) {
  if (ring_.size() < network_.port(host_, rail_).ring_frames) ring_.push_back(std::move(packet));
}

void SimLink::hear(const link::Complaint& complaint) {
  if (complaints_.size() < kComplaintsMax) complaints_.push_back(complaint);
}

}  // namespace cluster::sim
