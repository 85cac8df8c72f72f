#include "sim/sim_link.h"

#include <cstddef>

#include "sim/memory_account.h"
#include "sim/verdict.h"
#include "wire/admit.h"
#include "wire/frame.h"
#include "wire/opening.h"

namespace cluster::sim {
namespace {

constexpr std::size_t kComplaintsMax = 64;

}  // namespace

SimLink::SimLink(SimNetwork& network, Oracle& oracle, SessionPartners& partners, HostNumber host,
                 RailNumber rail, std::uint32_t life, std::size_t frame_max, bool shortcut)
    : network_(network),
      oracle_(oracle),
      partners_(partners),
      host_(host),
      rail_(rail),
      life_(life),
      frame_max_(frame_max),
      shortcut_(shortcut) {}

SimLink::~SimLink() = default;

std::size_t SimLink::send_burst(std::span<const link::OutFrame> frames) {
  const MemoryAccount::Scope nobody(nullptr);
  if (unplugged_) return frames.size();
  std::size_t taken = 0;
  for (const link::OutFrame& frame : frames) {
    if (frame.size > frame_max_) throw SafetyFailure("a frame is longer than the link it is sent to allows");
    if (frame.path->shortcut && !shortcut_) throw SafetyFailure("a frame takes a shortcut that is not there");
    if (!network_.send(host_, rail_, life_, frame)) break;
    look_at_opening(frame);
    if (!partners_.sent(frame)) {
      throw SafetyFailure("host " + std::to_string(host_) + " begins a session of host " +
                          std::to_string(host_of(frame.path->to)) + " again that was over");
    }
    ++taken;
  }
  return taken;
}

/// What an opening tells, and whether its frame tells nothing else but whom it is for.
void SimLink::look_at_opening(const link::OutFrame& frame) {
  constexpr std::size_t flags_at = offsetof(wire::FrameHeader, flags);
  const bool opens = (std::to_integer<unsigned>(frame.pieces[0][flags_at]) & wire::frame_flag::kOpening) != 0;
  if (!opens) return;
  std::vector<std::byte> bytes;
  for (std::size_t i = 0; i < frame.count; ++i) {
    bytes.insert(bytes.end(), frame.pieces[i].begin(), frame.pieces[i].end());
  }
  wire::FrameView view;
  if (wire::admit(bytes, view) != wire::Refusal::none || !view.has_opening) return;
  const HostNumber to = host_of(frame.path->to);
  oracle_.lives().tells(host_, to, view.opening);
  const bool nothing_else = view.length == sizeof(wire::FrameHeader) + sizeof(wire::OpeningBlock);
  if (view.kind != wire::FrameKind::flow || !nothing_else || view.acknowledges()) return;
  oracle_.lives().introduces(host_, to, view.session, network_.now());
}

std::size_t SimLink::receive_burst(std::span<link::InFrame> frames) {
  const MemoryAccount::Scope nobody(nullptr);
  for (std::unique_ptr<Packet>& packet : lent_) network_.recycle(std::move(packet));
  lent_.clear();
  while (lent_.size() < frames.size() && !ring_.empty()) {
    const Packet& packet = *ring_.front();
    wire::FrameView view;
    if (wire::admit(packet.bytes, view) == wire::Refusal::none) {
      if (!partners_.read(view, network_.now())) break;
      oracle_.frame_read(host_, packet, view, network_.now());
    }
    lent_.push_back(std::move(ring_.front()));
    ring_.pop_front();
    link::InFrame& frame = frames[lent_.size() - 1];
    frame.bytes = packet.bytes;
    frame.from = {address_of(packet.from, rail_), {}, true};
    frame.from.shortcut = packet.shortcut;
    frame.arrived = packet.arrived;
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
  if (ring_.size() >= network_.port(host_, rail_).ring_frames) return;
  packet->arrived = network_.now();
  ring_.push_back(std::move(packet));
}

void SimLink::hear(const link::Complaint& complaint) {
  if (complaints_.size() < kComplaintsMax) complaints_.push_back(complaint);
}

}  // namespace cluster::sim
