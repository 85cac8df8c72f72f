#include "sim/observed_link.h"

#include <algorithm>
#include <cstddef>
#include <string>
#include <utility>

#include "link/link.h"
#include "sim/allocation_meter.h"
#include "sim/failure.h"
#include "wire/admit.h"
#include "wire/frame.h"
#include "wire/opening.h"

namespace cluster::sim {

ObservedLink::ObservedLink(std::unique_ptr<link::Link> inner, const std::vector<SimLink*>& wires,
                           const SimNetwork& network, Oracle& oracle, SessionPeers& session_peers,
                           HostNumber host)
    : inner_(std::move(inner)),
      wires_(wires),
      network_(network),
      oracle_(oracle),
      session_peers_(session_peers),
      host_(host) {}

std::size_t ObservedLink::send_burst(std::span<const link::OutFrame> frames) {
  const std::size_t taken = inner_->send_burst(frames);
  const AllocationMeter::Scope uncounted(nullptr);
  if (!disconnected_) {
    for (const link::OutFrame& frame : frames.first(taken)) show_sent(frame);
  }
  return taken;
}

/// Shows a sent frame to the judges: its opening, whether it contains nothing else, and to whose session it
/// goes.
void ObservedLink::show_sent(const link::OutFrame& frame) {
  constexpr std::size_t flags_at = offsetof(wire::FrameHeader, flags);
  const HostNumber to = host_of(frame.path->to);
  if ((std::to_integer<unsigned>(frame.pieces[0][flags_at]) & wire::frame_flag::kOpening) != 0) {
    std::vector<std::byte> bytes;
    for (std::size_t i = 0; i < frame.count; ++i) {
      bytes.insert(bytes.end(), frame.pieces[i].begin(), frame.pieces[i].end());
    }
    wire::FrameView view;
    if (wire::admit(bytes, view) == wire::Refusal::none && view.has_opening) {
      oracle_.incarnations().session_announced(host_, to, view.opening);
      const bool nothing_else = view.length == sizeof(wire::FrameHeader) + sizeof(wire::OpeningBlock);
      if (view.kind == wire::FrameKind::flow && nothing_else && !view.acknowledges())
        oracle_.incarnations().introduction_sent(host_, to, view.session, network_.now());
    }
  }
  if (session_peers_.sent(frame)) return;
  throw SafetyFailure("host " + std::to_string(host_) + " begins a session of host " + std::to_string(to) +
                      " again that was over");
}

std::size_t ObservedLink::receive_burst(std::span<link::InFrame> frames) {
  if (held_begin_ == held_end_) {
    held_begin_ = 0;
    held_end_ = inner_->receive_burst(std::span(held_).first(std::min(frames.size(), held_.size())));
  }
  const AllocationMeter::Scope uncounted(nullptr);
  std::size_t count = 0;
  while (held_begin_ < held_end_ && count < frames.size()) {
    link::InFrame& held = held_[held_begin_];
    const std::size_t read = show_read(held);
    if (read == 0 && !held.bytes.empty()) break;
    frames[count] = held;
    frames[count++].bytes = held.bytes.first(read);
    held.bytes = held.bytes.subspan(read);
    if (!held.bytes.empty()) break;
    ++held_begin_;
  }
  return count;
}

/// Returns how many of the bytes the engine may read in this turn. If a datagram is no frame, no genuine
/// frame may be lost with it.
std::size_t ObservedLink::show_read(const link::InFrame& arrival) {
  for (link::ArrivalWalk walk(arrival); !walk.done();) {
    const ConstBytes rest = walk.datagram();
    wire::FrameView view;
    if (wire::admit(rest, view, integrity()) != wire::Refusal::none) {
      check_refused(rest, arrival);
      walk.pass_datagram();
      continue;
    }
    const Packet* const packet = origin_of(rest.data());
    if (packet == nullptr)
      throw SafetyFailure("host " + std::to_string(host_) + " reads what no packet brought");
    walk.pass(1, view.length);
    if (packet->forged) continue;  // sent by an attacker beside the cluster; others judge what becomes of it
    if (!session_peers_.read(view, network_.now()))
      return static_cast<std::size_t>(rest.data() - arrival.bytes.data());
    if (integrity() == wire::Integrity::seal) judge(*packet);
    oracle_.frame_read(host_, *packet, view, network_.now());
  }
  return arrival.bytes.size();
}

/// If the link says which bytes are one datagram, a refused datagram must not contain an undamaged frame of
/// a host.
void ObservedLink::check_refused(ConstBytes bytes, const link::InFrame& arrival) const {
  if (arrival.segment == 0) return;
  for (const SimLink* wire : wires_) {
    if (wire->holds_genuine(bytes))
      throw SafetyFailure("host " + std::to_string(host_) + " loses a genuine frame with a refused one");
  }
}

const Packet* ObservedLink::origin_of(const std::byte* at) const {
  for (const SimLink* wire : wires_) {
    if (const Packet* const packet = wire->origin_of(at)) return packet;
  }
  return nullptr;
}

/// Judges a frame that the seal has let through.
void ObservedLink::judge(const Packet& packet) {
  if (packet.maker == Packet::Maker::forger)
    throw SafetyFailure("host " + std::to_string(host_) + " takes a frame that was forged on the way");
  if (!opened_.insert(packet.number).second)
    throw SafetyFailure("host " + std::to_string(host_) + " takes a sealed frame twice");
}

}  // namespace cluster::sim
