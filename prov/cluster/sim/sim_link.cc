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

/// Returns true if the packet is an undamaged, complete frame. The header alone does not show this: a bit
/// that flips may make a plain frame look like a sealed one.
bool is_whole(const Packet& packet) {
  const ConstBytes bytes = packet.bytes;
  wire::FrameHeader header;
  if (packet.damaged || bytes.size() < sizeof header) return false;
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
      ethertype_(ethertype),
      of_device_(network.joins_devices() && rail == network.device_rail()) {}

SimLink::~SimLink() = default;

std::size_t SimLink::send_burst(std::span<const link::OutFrame> frames) {
  const AllocationMeter::Scope uncounted(nullptr);
  if (disconnected_) return frames.size();
  std::size_t taken = 0;
  for (const link::OutFrame& frame : frames) {
    if (frame.size > frame_max_) throw SafetyFailure("a frame is longer than the link it is sent to allows");
    if (frame.path->ethertype && !ethertype_)
      throw SafetyFailure("a frame takes the EtherType path of a link without one");
    const Packet* const forwarded = forwards_ ? origin_of(frame.pieces[0].data()) : nullptr;
    if (forwarded != nullptr && forwarded->outside != 0)
      throw SafetyFailure("a relay forwards a frame from an address from which nobody has joined");
    if (of_device_ && !frame.path->to.verbs())
      throw SafetyFailure("a queue pair sends a frame to an IP address");
    if (!network_.send(host_, rail_, incarnation_, frame, forwarded)) break;
    if (of_device_) reached_.insert(frame.path->to);
    ++taken;
  }
  return taken;
}

std::size_t SimLink::receive_burst(std::span<link::InFrame> frames) {
  if (std::exchange(has_moved_, false) && moved_) moved_(0, network_.present_address(host_, rail_));
  const AllocationMeter::Scope uncounted(nullptr);
  for (std::unique_ptr<Packet>& packet : in_use_) network_.recycle(std::move(packet));
  in_use_.clear();
  origins_.clear();
  last_size_ = 0;
  while (in_use_.size() < frames.size()) {
    std::unique_ptr<Packet> arrived = take_next();
    if (arrived == nullptr) break;
    const bool whole = joins() && is_whole(*arrived);
    if ((whole || tells_segments()) && continues_last(*arrived)) {
      join_last(std::move(arrived), whole, frames[in_use_.size() - 1]);
      continue;
    }
    const bool may_begin = tells_segments() || (whole && !arrived->forged);
    last_size_ = may_begin && !arrived->ethertype ? arrived->bytes.size() : 0;
    last_arrived_ = arrived->arrived;
    in_use_.push_back(std::move(arrived));
    const Packet& packet = *in_use_.back();
    note_origin(packet, 0, whole);
    link::InFrame& frame = frames[in_use_.size() - 1];
    frame.bytes = in_use_.back()->bytes;
    frame.from = {source_of(packet), {}, !of_device_};
    frame.from.ethertype = packet.ethertype;
    frame.arrived = of_device_ ? kNever : packet.arrived;
    frame.segment = 0;
    if (!of_device_) frame.from.mac[5] = static_cast<std::byte>(packet.from);
  }
  return in_use_.size();
}

std::unique_ptr<Packet> SimLink::take_next() {
  std::unique_ptr<Packet> packet = thinner_.take_aside(network_.now());
  if (packet != nullptr || ring_.empty()) return packet;
  packet = std::move(ring_.front());
  ring_.pop_front();
  return packet;
}

/// Returns true if this host's receive offload joins the packet to the last one that was handed out. It
/// joins frames of one source and one length that arrive shortly after each other. The last of them may be
/// shorter.
bool SimLink::continues_last(const Packet& packet) const {
  if (last_size_ == 0 || packet.ethertype || packet.bytes.empty()) return false;
  const Packet& last = *in_use_.back();
  const bool of_one_source =
      packet.from == last.from && packet.port == last.port && packet.outside == last.outside;
  const bool alike = tells_segments() ? packet.bytes.size() <= last_size_
                                      : packet.bytes.size() == last_size_ && !packet.forged;
  return of_one_source && alike && last.bytes.size() + last_size_ <= kSuperFrameMax &&
         packet.arrived - last_arrived_ <= kJoinedWithin;
}

void SimLink::join_last(std::unique_ptr<Packet> packet, bool whole, link::InFrame& frame) {
  std::vector<std::byte>& joined = in_use_.back()->bytes;
  note_origin(*packet, joined.size(), whole);
  joined.insert(joined.end(), packet->bytes.begin(), packet->bytes.end());
  frame.bytes = joined;
  if (tells_segments()) frame.segment = last_size_;
  if (packet->bytes.size() < last_size_) last_size_ = 0;
  last_arrived_ = packet->arrived;
  network_.recycle(std::move(packet));
}

void SimLink::note_origin(const Packet& packet, std::size_t begin, bool whole) {
  Origin& origin = origins_.emplace_back();
  origin.buffer = in_use_.size() - 1;
  origin.begin = begin;
  origin.whole = whole;
  origin.packet.number = packet.number;
  origin.packet.maker = packet.maker;
  origin.packet.forged = packet.forged;
  origin.packet.from = packet.relayed ? packet.author : packet.from;
  origin.packet.damaged = packet.damaged;
  origin.packet.outside = packet.outside;
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

bool SimLink::holds_genuine(ConstBytes bytes) const {
  for (const Origin& origin : origins_) {
    const std::byte* const at = in_use_[origin.buffer]->bytes.data() + origin.begin;
    const bool genuine =
        origin.whole && !origin.packet.forged && origin.packet.maker == Packet::Maker::endpoint;
    if (genuine && at >= bytes.data() && at < bytes.data() + bytes.size()) return true;
  }
  return false;
}

std::size_t SimLink::read_path_errors(std::span<link::PathError> path_errors) {
  std::size_t count = 0;
  for (; count < path_errors.size() && !path_errors_.empty(); ++count) {
    path_errors[count] = path_errors_.front();
    path_errors_.pop_front();
  }
  return count;
}

void SimLink::arrive(std::unique_ptr<Packet>& packet, Thinner::Place place) {
  packet->arrived = network_.now();
  if (place == Thinner::Place::aside) return thinner_.put_aside(packet);
  if (ring_.size() < network_.port(host_, rail_).ring_frames) ring_.push_back(std::move(packet));
}

void SimLink::lose_device(bool noticed) {
  for (; !ring_.empty(); ring_.pop_front()) network_.lose_with_device(std::move(ring_.front()));
  for (const SocketAddress& peer : std::exchange(reached_, {})) {
    link::PathError error{peer, Status::unreachable};
    error.vouched = true;
    if (noticed) add_path_error(error);
  }
}

void SimLink::add_path_error(const link::PathError& path_error) {
  if (path_errors_.size() < kPathErrorsMax) path_errors_.push_back(path_error);
}

}  // namespace cluster::sim
