#include "sim/sim_link.h"

#include <cstddef>

#include "sim/allocation_meter.h"
#include "sim/failure.h"
#include "wire/admit.h"
#include "wire/frame.h"
#include "wire/opening.h"

namespace cluster::sim {
namespace {

constexpr std::size_t kPathErrorsMax = 64;
constexpr std::size_t kSuperFrameMax = 65000;
constexpr Duration kJoinedWithin = 5us;

}  // namespace

SimLink::SimLink(SimNetwork& network, Oracle& oracle, SessionPeers& session_peers, HostNumber host,
                 RailNumber rail, std::uint32_t incarnation, std::size_t frame_max, bool ethertype)
    : network_(network),
      oracle_(oracle),
      session_peers_(session_peers),
      host_(host),
      rail_(rail),
      incarnation_(incarnation),
      frame_max_(frame_max),
      ethertype_(ethertype) {}

SimLink::~SimLink() = default;

std::size_t SimLink::send_burst(std::span<const link::OutFrame> frames) {
  const AllocationMeter::Scope uncounted(nullptr);
  if (disconnected_) return frames.size();
  std::size_t taken = 0;
  for (const link::OutFrame& frame : frames) {
    if (frame.size > frame_max_) throw SafetyFailure("a frame is longer than the link it is sent to allows");
    if (frame.path->ethertype && !ethertype_)
      throw SafetyFailure("a frame takes the EtherType path of a link without one");
    if (!network_.send(host_, rail_, incarnation_, frame)) break;
    look_at_opening(frame);
    if (!session_peers_.sent(frame)) {
      throw SafetyFailure("host " + std::to_string(host_) + " begins a session of host " +
                          std::to_string(host_of(frame.path->to)) + " again that was over");
    }
    ++taken;
  }
  return taken;
}

/// Records the opening of a frame, and whether the frame holds nothing else.
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
  oracle_.incarnations().session_announced(host_, to, view.opening);
  const bool nothing_else = view.length == sizeof(wire::FrameHeader) + sizeof(wire::OpeningBlock);
  if (view.kind != wire::FrameKind::flow || !nothing_else || view.acknowledges()) return;
  oracle_.incarnations().introduction_sent(host_, to, view.session, network_.now());
}

std::size_t SimLink::receive_burst(std::span<link::InFrame> frames) {
  const AllocationMeter::Scope uncounted(nullptr);
  for (std::unique_ptr<Packet>& packet : in_use_) network_.recycle(std::move(packet));
  in_use_.clear();
  while (in_use_.size() < frames.size() && !ring_.empty()) {
    Packet& packet = *ring_.front();
    wire::FrameView view;
    const bool intact = wire::admit(packet.bytes, view) == wire::Refusal::none;
    if (intact) {
      if (!session_peers_.read(view, network_.now())) break;
      oracle_.frame_read(host_, packet, view, network_.now());
    }
    if (intact && continues_last(packet)) {
      std::vector<std::byte>& joined = in_use_.back()->bytes;
      joined.insert(joined.end(), packet.bytes.begin(), packet.bytes.end());
      frames[in_use_.size() - 1].bytes = joined;
      last_arrived_ = packet.arrived;
      network_.recycle(std::move(ring_.front()));
      ring_.pop_front();
      continue;
    }
    last_size_ = intact ? packet.bytes.size() : 0;
    last_arrived_ = packet.arrived;
    in_use_.push_back(std::move(ring_.front()));
    ring_.pop_front();
    link::InFrame& frame = frames[in_use_.size() - 1];
    frame.bytes = packet.bytes;
    frame.from = {address_of(packet.from, rail_), {}, true};
    frame.from.ethertype = packet.ethertype;
    frame.arrived = packet.arrived;
    frame.from.mac[5] = static_cast<std::byte>(packet.from);
  }
  return in_use_.size();
}

/// True if this host's segmentation offload joins the packet to the last one that was handed out: frames of
/// one sender and one length that arrive close to each other. Every other incarnation has that.
bool SimLink::continues_last(const Packet& packet) const {
  if (in_use_.empty() || (host_ + incarnation_) % 2 != 0) return false;
  const Packet& last = *in_use_.back();
  const bool alike = !packet.ethertype && !last.ethertype && packet.from == last.from;
  return alike && packet.bytes.size() == last_size_ && last.bytes.size() + last_size_ <= kSuperFrameMax &&
         packet.arrived - last_arrived_ <= kJoinedWithin;
}

std::size_t SimLink::read_path_errors(std::span<link::PathError> path_errors) {
  std::size_t count = 0;
  for (; count < path_errors.size() && !path_errors_.empty(); ++count) {
    path_errors[count] = path_errors_.front();
    path_errors_.pop_front();
  }
  return count;
}

void SimLink::arrive(std::unique_ptr<Packet>& packet) {
  if (ring_.size() >= network_.port(host_, rail_).ring_frames) return;
  packet->arrived = network_.now();
  ring_.push_back(std::move(packet));
}

void SimLink::add_path_error(const link::PathError& path_error) {
  if (path_errors_.size() < kPathErrorsMax) path_errors_.push_back(path_error);
}

}  // namespace cluster::sim
