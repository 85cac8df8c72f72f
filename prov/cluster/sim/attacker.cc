#include "sim/attacker.h"

#include <algorithm>
#include <array>
#include <cstring>
#include <utility>

#include "wire/atomic.h"

namespace cluster::sim {
namespace {

constexpr std::uint64_t kStreamAttacker = 9;
constexpr std::uint32_t kTrainsJoined = 10'000;  ///< how many of a million frames of hosts the forger joins
constexpr Duration kSiegePause = 40us;           ///< longest time between two frames
constexpr std::uint64_t kLateEpoch = std::uint64_t{1} << 60;
using wire::SegmentKind;

/// Returns a session number that no call has. Otherwise an answer could belong to two calls.
std::uint32_t unused_number(const auto& calls, auto& random) {
  std::uint32_t number;
  do number = static_cast<std::uint32_t>(random.next()) | 1;
  while (calls.contains(number));
  return number;
}

}  // namespace

bool attack_of(std::string_view name, AttackKind& out) {
  constexpr std::array<std::string_view, 4> names{"none", "forger", "flooder", "siege"};
  const auto found = std::find(names.begin(), names.end(), name);
  out = static_cast<AttackKind>(found - names.begin());
  return found != names.end();
}

Attacker::Attacker(AttackKind kind, EventQueue& event_queue, SimNetwork& network, HostNumber hosts,
                   Duration horizon, std::uint64_t seed)
    : kind_(kind),
      event_queue_(event_queue),
      network_(network),
      hosts_(hosts),
      random_(SeededRandom::stream(seed, kStreamAttacker)) {
  left_ = kind == AttackKind::forger ? random_.between(100, 1500) : random_.between(1000, 6000);
  pause_ = std::max<Duration>(2 * horizon / static_cast<std::int64_t>(left_), 100ns);
  if (kind == AttackKind::flooder) pause_ = std::min<Duration>(pause_, 4us);
  if (kind == AttackKind::siege) {
    pause_ = kSiegePause;
    left_ = static_cast<std::uint64_t>(2 * horizon / kSiegePause);
    keep_alives_ = static_cast<std::uint32_t>(random_.below(500'000));
    nonsense_ = static_cast<std::uint32_t>(random_.below(500'000));
  }
  network_.connect(hosts_, *this);
  event_queue_.plan(event_queue_.now() + pause_, *this, 0);
}

void Attacker::handle_event(std::uint64_t) {
  if (left_ == 0) return;
  --left_;
  switch (kind_) {
    case AttackKind::forger: forge(); break;
    case AttackKind::siege: besiege(); break;
    default: flood(); break;
  }
  event_queue_.plan(event_queue_.now() + random_.between(Duration{1}, pause_), *this, 0);
}

void Attacker::overhear(const Packet& packet) {
  if (kind_ == AttackKind::forger && left_ != 0 && packet.to < hosts_ && random_.chance(kTrainsJoined))
    join_train(packet);
  Seen& seen = seen_[{packet.from, packet.to}];
  wire::FrameView view;
  if (wire::admit(packet.bytes, view) != wire::Refusal::none || view.kind != wire::FrameKind::flow) return;
  std::memcpy(&seen.last, packet.bytes.data(), sizeof seen.last);
  if (!view.has_opening) return;
  seen.session = view.opening.session;
  seen.epoch = view.opening.epoch;
}

/// Returns a segment of any kind that a session can carry, for an application or for memory.
wire::Segment Attacker::segment() {
  constexpr std::array kinds{
      SegmentKind::eager,         SegmentKind::eager,       SegmentKind::eager_first,
      SegmentKind::write,         SegmentKind::read,        SegmentKind::atomic,
      SegmentKind::done,          SegmentKind::credit,      SegmentKind::announce,
      SegmentKind::pull,          SegmentKind::bulk,        SegmentKind::write_announce,
      SegmentKind::expose,        SegmentKind::exposed,     SegmentKind::queue_pair,
      SegmentKind::expose_region, SegmentKind::device_over, SegmentKind::new_queue_pair};
  wire::Segment made{.kind = random_.pick(kinds)};
  if (random_.chance(500'000)) made.flags = wire::segment_flag::kTagged;
  made.id = made.peer_id = static_cast<std::uint32_t>(random_.below(64));
  made.tag = random_.below(4);
  made.total = random_.below(64);
  made.key = random_.below(8);
  if (made.kind == SegmentKind::atomic)
    made.detail = wire::AtomicCode{wire::AtomicOp::sum, wire::AtomicType::uint8, false}.packed();
  return made;
}

/// Returns a frame that asks for a session, under any host's name.
Attacker::Frame Attacker::call(HostNumber name, std::uint32_t session) {
  Frame frame = Frame::call(address_of(name), session, kLateEpoch + random_.below(1000));
  if (random_.chance(200'000)) frame.opening->epoch = random_.next() % wire::kEpochEnd;
  frame.header.sequence = static_cast<std::uint32_t>(random_.below(8));
  frame.carry(segment(), random_.below(64));
  if (random_.chance(300'000)) frame.rails.push_back(address_of(any_host()));
  if (random_.chance(200'000)) frame.sibling = address_of(any_host());
  return frame;
}

/// Returns a frame about a caller, which has named the session. It asks whether the caller belongs to the
/// receiver's process, or says that the caller belongs to the sender's process.
Attacker::Frame Attacker::about_sibling(wire::FrameKind kind, const SocketAddress& caller,
                                        std::uint32_t session) {
  Frame frame;
  frame.header.kind = static_cast<std::uint8_t>(kind);
  frame.header.sequence = session;
  wire::set_challenge(frame.header, random_.next());
  const wire::RailBlock block = wire::rail_block(caller);
  const auto* const bytes = reinterpret_cast<const std::byte*>(&block);
  frame.tail.assign(bytes, bytes + sizeof block);
  return frame;
}

/// Returns a frame in a session. The attacker knows either the number of the session or the sequence.
Attacker::Frame Attacker::data(const Seen& genuine) {
  const bool knows_session = random_.chance(500'000);
  Frame frame;
  frame.header.session = knows_session ? std::uint32_t{genuine.last.session} : number();
  const std::uint32_t sequence = genuine.last.sequence;
  frame.header.sequence = knows_session ? far_from(sequence) : sequence + 1;
  frame.header.transmission = genuine.last.transmission + 1;
  frame.header.ack = knows_session ? far_from(genuine.last.ack) : std::uint32_t{genuine.last.ack};
  frame.header.largest_acked = genuine.last.largest_acked;
  if (random_.chance(300'000)) {
    frame.header.kind = static_cast<std::uint8_t>(wire::FrameKind::fin);
  } else {
    frame.carry(segment(), random_.below(64));
  }
  if (random_.chance(300'000)) frame.header.flags = frame.header.flags | wire::frame_flag::kAcknowledges;
  return frame;
}

/// Returns a reset. Of the frame that the reset quotes, the attacker knows either the session or the
/// sequence.
Attacker::Frame Attacker::reset(const Seen& refused) {
  wire::FrameView quoted;
  const bool knows_session = random_.chance(500'000);
  const std::uint32_t session =
      refused.last.session != 0 ? std::uint32_t{refused.last.session} : refused.session;
  quoted.session = knows_session ? session : number();
  quoted.sequence = {knows_session ? far_from(refused.last.sequence) : std::uint32_t{refused.last.sequence}};
  quoted.transmission = {refused.last.transmission};
  constexpr std::array reasons{wire::ResetReason::unknown_session, wire::ResetReason::stale_epoch,
                               wire::ResetReason::foreign_source};
  const wire::ResetReason reason = reasons[random_.below(reasons.size())];
  const wire::ControlFrame frame = wire::ControlFrame::reset(quoted, reason, refused.epoch + 1);
  Frame made;
  std::memcpy(&made.header, frame.bytes().data(), sizeof made.header);
  made.tail.assign(frame.bytes().begin() + sizeof made.header, frame.bytes().end());
  return made;
}

/// Returns a challenge, or an answer to one, in a session whose number the attacker knows.
Attacker::Frame Attacker::control(const Seen& genuine) {
  constexpr std::array kinds{wire::FrameKind::alive, wire::FrameKind::path_response,
                             wire::FrameKind::keep_alive, wire::FrameKind::path_challenge};
  if (random_.chance(200'000)) {
    const auto kind =
        random_.chance(500'000) ? wire::FrameKind::sibling_request : wire::FrameKind::sibling_response;
    return about_sibling(kind, address_of(any_host()), genuine.session);
  }
  Frame frame;
  frame.header.kind = static_cast<std::uint8_t>(random_.pick(kinds));
  frame.header.session = frame.header.sequence = std::uint32_t{genuine.last.session};
  wire::set_challenge(frame.header, random_.next());
  if (frame.header.kind == static_cast<std::uint8_t>(wire::FrameKind::path_challenge))
    wire::set_rail(frame.header, 0);
  return frame;
}

/// Tells a host that the port of another host, to which it has sent something, is closed. Of the frame that
/// the error quotes, the attacker knows either the session or the sequence. If the frame names no session,
/// the attacker does not know the sequence.
void Attacker::forge_icmp_error(HostNumber about, HostNumber to) {
  wire::FrameHeader quoted = seen_[{to, about}].last;
  quoted.magic = wire::kMagic;
  const bool knows_session = quoted.session != 0 && random_.chance(500'000);
  if (knows_session) {
    quoted.sequence = far_from(quoted.sequence);
  } else if (quoted.session != 0) {
    quoted.session = number();
  } else {
    quoted.sequence = number();
  }
  constexpr std::array kinds{wire::FrameKind::flow, wire::FrameKind::keep_alive,
                             wire::FrameKind::path_challenge};
  if (random_.chance(400'000)) quoted.kind = static_cast<std::uint8_t>(random_.pick(kinds));
  const std::size_t size = random_.chance(900'000) ? sizeof quoted : random_.below(sizeof quoted);
  const std::uint64_t many = random_.chance(20'000) ? 100 : random_.between(1, 2);
  for (std::uint64_t i = 0; i < many; ++i) {
    ++frames_;
    const ConstBytes bytes = as_bytes(&quoted, size);
    network_.inject({about, 0, true}, to, static_cast<RailNumber>(random_.below(network_.rails())),
                    {bytes.begin(), bytes.end()});
  }
}

void Attacker::on_forgery_arrived(const Packet& packet) {
  wire::FrameView view;
  if (wire::admit(packet.bytes, view) != wire::Refusal::none || !view.has_opening) return;
  if (const auto found = calls_.find(view.opening.session); found != calls_.end())
    found->second.bytes += packet.bytes.size();
}

void Attacker::forge() {
  const HostNumber to = any_host();
  const HostNumber name = (to + 1 + static_cast<HostNumber>(random_.below(hosts_ - 1))) % hosts_;
  const Seen& genuine = seen_[{name, to}];
  const Seen& reverse = seen_[{to, name}];
  switch (random_.below(9)) {
    case 8: return forge_icmp_error(name, to);
    case 0: return send(call(name, number() | 1), random_.chance(700'000) ? name : hosts_, 0, to);
    case 1: {  // a call with two addresses, one of which is the attacker's
      const bool own_name = random_.chance(500'000);
      Frame frame = call(own_name ? hosts_ : name, number() | 1);
      frame.rails.push_back(address_of(own_name ? name : hosts_));
      return send(frame, hosts_, 0, to);
    }
    case 2:
    case 3: return send(data(genuine), name, 0, to);
    case 4: return send(reset(reverse), name, 0, to);
    case 5: return send(control(genuine), name, 0, to);
    case 6: {  // everything is right except the address of the sender
      Frame frame = data(genuine);
      frame.header.session = genuine.last.session;
      frame.header.sequence = genuine.last.sequence + 1;
      return send(frame, hosts_, 0, to);
    }
    // An answer to a host that opens a session. The attacker may know the number of the session, but not its
    // token.
    default: {
      Frame frame = call(name, number() | 1);
      frame.header.session = random_.chance(500'000) ? reverse.session : number();
      frame.opening->echo = random_.next();
      frame.header.ack = std::uint32_t{reverse.last.sequence};
      std::vector<std::byte> bytes = frame.bytes();
      if (random_.chance(200'000)) bytes.resize(random_.below(bytes.size()));
      return send_bytes(std::move(bytes), name, 0, to);
    }
  }
}

/// Sends a frame at the moment when a host sends one, in the host's name and of the same length. So receive
/// offload joins the two. The length in the frame's header is right, too small, or covers the genuine frames
/// behind it, too.
void Attacker::join_train(const Packet& genuine) {
  const std::size_t size = genuine.bytes.size();
  std::vector<std::byte> bytes = data(seen_[{genuine.from, genuine.to}]).bytes();
  if (bytes.size() > size) return;
  bytes.resize(size);
  wire::FrameHeader header;
  std::memcpy(&header, bytes.data(), sizeof header);
  if (random_.chance(700'000)) header.length = static_cast<std::uint16_t>(size * random_.between(1, 4));
  const std::uint8_t genuine_flags =
      std::to_integer<std::uint8_t>(genuine.bytes[offsetof(wire::FrameHeader, flags)]);
  header.flags |= genuine_flags & wire::frame_flag::kSealed;
  std::memcpy(bytes.data(), &header, sizeof header);
  ++frames_;
  network_.inject({genuine.from, 0, false}, genuine.to, genuine.rail, std::move(bytes));
}

void Attacker::flood() {
  const auto port = static_cast<std::uint16_t>(random_.between(1024, 60'000));
  const HostNumber to = any_host();
  const std::uint32_t session = unused_number(calls_, random_);
  Frame frame = Frame::call(address_of(hosts_).with_port(port), session, kLateEpoch);
  frame.header.sequence = number();
  frame.carry(segment(), random_.below(1000));
  // The attacker claims to have called often. Such a caller gets an answer even if its sibling says nothing.
  if (random_.chance(300'000)) {
    frame.sibling = address_of(any_host());
    frame.header.transmission = static_cast<std::uint32_t>(random_.below(100));
  }
  calls_[session] = {port, to, frame.sibling, 0, 0, random_.chance(100'000)};
  send(frame, hosts_, port, to);
}

/// Sends one frame of the siege. The attacker accepts none of the sessions that it is offered.
void Attacker::besiege() {
  const auto port = static_cast<std::uint16_t>(random_.between(1024, 60'000));
  const std::uint64_t what = random_.below(1'000'000);
  if (what >= keep_alives_ + nonsense_) {
    const std::uint32_t session = unused_number(calls_, random_);
    Frame frame = Frame::call(address_of(hosts_).with_port(port), session, kLateEpoch);
    frame.carry(segment(), random_.below(1000));
    calls_[session] = {port, 0, std::nullopt, 0, 0, false};
    return send(frame, hosts_, port, 0);
  }
  Frame frame;
  const bool keep_alive = what < keep_alives_;
  frame.header.kind =
      static_cast<std::uint8_t>(keep_alive ? wire::FrameKind::keep_alive : wire::FrameKind::path_response);
  frame.header.session = keep_alive ? 0 : number();
  frame.header.sequence = number();
  wire::set_challenge(frame.header, random_.next());
  send(frame, hosts_, port, 0);
}

bool Attacker::deliver(std::unique_ptr<Packet>& packet) {
  wire::FrameView view;
  const bool sound = wire::admit(packet->bytes, view) == wire::Refusal::none;
  const bool of_a_host = packet->maker == Packet::Maker::endpoint;  // not of the attacker on the path
  if (of_a_host && sound && view.kind == wire::FrameKind::flow) {
    const auto found = calls_.find(view.session);
    if (found == calls_.end()) {
      violation_ = "a host speaks to a session that the attacker never named at its own address";
    } else {
      Call& call = found->second;
      const bool copy = std::ranges::find(call.numbers, packet->number) != call.numbers.end();
      if (!copy) call.numbers.push_back(packet->number);
      const std::size_t before =
          std::exchange(call.answered, call.answered + (copy ? 0 : packet->bytes.size()));
      if (!call.taken_up && call.answered > 3 * call.bytes)
        violation_ = "a host answers " + std::to_string(call.bytes) + " bytes with " +
                     std::to_string(call.answered) + " in session " + std::to_string(view.session);
      if (call.taken_up && before == 0 && view.has_opening) take_up(call, view);
    }
  }
  network_.recycle(std::move(packet));
  return true;
}

/// Accepts an offered session. Sends a write to memory, and frames behind a gap that never closes. If the
/// call claimed a sibling, confirms this claim in the name of the sibling.
void Attacker::take_up(const Call& call, const wire::FrameView& challenge) {
  const SocketAddress own = address_of(hosts_).with_port(call.port);
  if (call.sibling) {
    const Frame yes = about_sibling(wire::FrameKind::sibling_response, own, challenge.session);
    send(yes, host_of(*call.sibling), 0, call.to);
  }
  Frame frame = Frame::call(own, challenge.session, kLateEpoch);
  frame.sibling = call.sibling;
  frame.take_up(challenge.opening);
  frame.header.ack = challenge.sequence.value;
  frame.header.sequence = challenge.session;
  frame.header.transmission = 1;
  frame.carry({.kind = SegmentKind::write, .total = 8, .key = random_.below(64)}, 8);
  send(frame, hosts_, call.port, call.to);
  for (std::uint32_t i = 2; i < 8; ++i) {
    frame.header.sequence = challenge.session + i;
    frame.header.transmission = i;
    frame.carry(segment(), random_.below(1000));
    send(frame, hosts_, call.port, call.to);
  }
}

void Attacker::send(const Frame& frame, HostNumber name, std::uint16_t port, HostNumber to) {
  send_bytes(frame.bytes(), name, port, to);
}

void Attacker::send_bytes(std::vector<std::byte> bytes, HostNumber name, std::uint16_t port, HostNumber to) {
  ++frames_;
  network_.inject({name, port, false}, to, static_cast<RailNumber>(random_.below(network_.rails())),
                  std::move(bytes));
}

}  // namespace cluster::sim
