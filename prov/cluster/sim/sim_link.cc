#include "sim/sim_link.h"

#include <cstring>

#include "sim/allocation_meter.h"
#include "sim/failure.h"
#include "wire/admit.h"
#include "wire/frame.h"

namespace cluster::sim {
namespace {

constexpr std::size_t kPathErrorsMax = 64;
constexpr std::size_t kSuperFrameMax = 65000;
constexpr Duration kJoinedWithin = 5us;

/// A sealed frame is damaged or not; its length shows.
bool is_whole(ConstBytes bytes) {
  wire::FrameHeader header;
  if (bytes.size() < sizeof header) return false;
  std::memcpy(&header, bytes.data(), sizeof header);
  if ((header.flags & wire::frame_flag::kSealed) != 0) return header.length == bytes.size();
  wire::FrameView view;
  return wire::admit(bytes, view) == wire::Refusal::none;
}

}  // namespace

SimLink::SimLink(SimNetwork& network, HostNumber host, RailNumber rail, std::uint32_t incarnation,
                 std::size_t frame_max, bool ethertype)
    : network_(network),
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
    ++taken;
  }
  return taken;
}

std::size_t SimLink::receive_burst(std::span<link::InFrame> frames) {
  const AllocationMeter::Scope uncounted(nullptr);
  for (std::unique_ptr<Packet>& packet : in_use_) network_.recycle(std::move(packet));
  in_use_.clear();
  origins_.clear();
  while (in_use_.size() < frames.size() && !ring_.empty()) {
    Packet& packet = *ring_.front();
    const bool whole = joins() && is_whole(packet.bytes);
    if (whole && continues_last(packet)) {
      std::vector<std::byte>& joined = in_use_.back()->bytes;
      note_origin(packet, joined.size());
      joined.insert(joined.end(), packet.bytes.begin(), packet.bytes.end());
      frames[in_use_.size() - 1].bytes = joined;
      last_arrived_ = packet.arrived;
      network_.recycle(std::move(ring_.front()));
      ring_.pop_front();
      continue;
    }
    last_size_ = whole ? packet.bytes.size() : 0;
    last_arrived_ = packet.arrived;
    in_use_.push_back(std::move(ring_.front()));
    ring_.pop_front();
    note_origin(packet, 0);
    link::InFrame& frame = frames[in_use_.size() - 1];
    frame.bytes = packet.bytes;
    frame.from = {address_of(packet.from, rail_), {}, true};
    if (packet.port != 0) frame.from.to = frame.from.to.with_port(packet.port);
    frame.from.ethertype = packet.ethertype;
    frame.arrived = packet.arrived;
    frame.from.mac[5] = static_cast<std::byte>(packet.from);
  }
  return in_use_.size();
}

/// True if this host's segmentation offload joins the packet to the last one that was handed out: frames of
/// one sender and one length that arrive close to each other. Every other incarnation has that.
bool SimLink::continues_last(const Packet& packet) const {
  if (in_use_.empty()) return false;
  const Packet& last = *in_use_.back();
  const bool alike = !packet.ethertype && !last.ethertype && packet.from == last.from &&
                     !packet.forged && !last.forged;
  return alike && packet.bytes.size() == last_size_ && last.bytes.size() + last_size_ <= kSuperFrameMax &&
         packet.arrived - last_arrived_ <= kJoinedWithin;
}

void SimLink::note_origin(const Packet& packet, std::size_t begin) {
  Origin& origin = origins_.emplace_back();
  origin.buffer = in_use_.size() - 1;
  origin.begin = begin;
  origin.packet.number = packet.number;
  origin.packet.maker = packet.maker;
  origin.packet.forged = packet.forged;
  origin.packet.from = packet.from;
  origin.packet.to = packet.to;
  origin.packet.rail = packet.rail;
  origin.packet.incarnation = packet.incarnation;
  origin.packet.sent_at = packet.sent_at;
}

const Packet* SimLink::origin_of(const std::byte* at) const {
  const Packet* found = nullptr;
  for (const Origin& origin : origins_) {
    const ConstBytes buffer = in_use_[origin.buffer]->bytes;
    const bool inside = at >= buffer.data() + origin.begin && at < buffer.data() + buffer.size();
    if (inside) found = &origin.packet;
  }
  return found;
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
