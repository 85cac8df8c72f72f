#include "sim/path_attacker.h"

#include <algorithm>
#include <array>
#include <cstring>
#include <utility>

#include "sim/failure.h"
#include "wire/admit.h"
#include "wire/frame.h"
#include "wire/relay_frame.h"

namespace cluster::sim {
namespace {

using wire::FrameHeader;
using wire::SealTrailer;

/// No router uses these ports.
constexpr std::uint16_t kForgedPortFirst = 50'000;
constexpr std::uint16_t kForgedPortLast = 60'000;

FrameHeader header_of(const Packet& packet) {
  FrameHeader header;
  std::memcpy(&header, packet.bytes.data(), sizeof header);
  return header;
}

void set_header(Packet& packet, FrameHeader header) {
  header.length = static_cast<std::uint16_t>(packet.bytes.size());
  std::memcpy(packet.bytes.data(), &header, sizeof header);
}

/// Sets the checksum that an endpoint without a key would send.
void set_checksum(Packet& packet) {
  const ConstBytes all = packet.bytes;
  FrameHeader header = header_of(packet);
  header.checksum = wire::frame_checksum({&all, 1});
  set_header(packet, header);
}

/// Returns true if an endpoint may send the frame to an address that it has only observed.
bool asks_or_answers(const Packet& packet) {
  switch (static_cast<wire::FrameKind>(header_of(packet).kind)) {
    case wire::FrameKind::keep_alive:
    case wire::FrameKind::alive:
    case wire::FrameKind::association_response:
    case wire::FrameKind::association_unknown:
    case wire::FrameKind::relay_offer: return true;
    default: return false;
  }
}

/// Returns true if the frame answers a frame, and so goes wherever that frame seemed to come from.
bool answers(const Packet& packet) {
  return asks_or_answers(packet) &&
         header_of(packet).kind != static_cast<std::uint8_t>(wire::FrameKind::keep_alive);
}

/// Returns true if the two datagrams are the same frame with different tags of a relay. The seal does not
/// protect the tag, so such a frame is a copy.
bool only_tag_differs(ConstBytes one, ConstBytes other) {
  wire::RelayTag tag;
  const std::size_t frame = wire::tagged_frame(one, tag);
  return frame != 0 && other.size() >= frame &&
         std::equal(one.begin(), one.begin() + static_cast<std::ptrdiff_t>(frame), other.begin());
}

bool is_of_setup(const Packet& packet) {
  return header_of(packet).kind >= static_cast<std::uint8_t>(wire::FrameKind::association_request);
}

}  // namespace

PathAttacker::PathAttacker(SimNetwork& network, std::uint32_t hosts, SeededRandom random)
    : network_(network),
      hosts_(hosts),
      random_(random),
      rate_(random_.pick(std::array<std::uint32_t, 4>{2'000, 20'000, 100'000, 300'000})) {}

/// Leaves damaged frames alone: if one more bit flips, the frame may be right again.
void PathAttacker::see(const Packet& packet) {
  if (packet.damaged || packet.bytes.size() < sizeof(FrameHeader)) return;
  if (packet.to_outside >= kForgedPortFirst && !asks_or_answers(packet))
    throw SafetyFailure("host " + std::to_string(packet.from) + " sends to an address of this attacker");
  if (kept_.empty() || random_.chance(100'000) || is_of_setup(packet)) keep(packet);
  if (random_.chance(rate_)) attack(random_.chance(500'000) ? packet : pick_kept());
}

void PathAttacker::keep(const Packet& packet) {
  if (kept_.size() < kKept) {
    kept_.push_back(packet);
  } else {
    kept_[random_.below(kKept)] = packet;
  }
}

Duration PathAttacker::draw_delay() {
  return random_.chance(700'000) ? random_.between(0us, 1ms) : random_.between(1ms, 3s);
}

void PathAttacker::attack(const Packet& packet) {
  if (random_.chance(150'000)) return replay_from_elsewhere(packet);
  Packet made = packet;
  const bool repeats = random_.chance(300'000);
  made.maker = repeats ? Packet::Maker::replayer : Packet::Maker::forger;
  if (repeats || forge(made)) network_.inject(made, draw_delay());
}

/// Sends a frame of an endpoint, perhaps before the frame itself arrives, from an address where nobody is.
/// Nothing in the frame says that its source is wrong, so an endpoint may take such a frame, once. But
/// answers must not go there.
void PathAttacker::replay_from_elsewhere(Packet packet) {
  if (packet.ethertype) return;
  packet.maker = Packet::Maker::replayer;
  const std::uint64_t copies = random_.chance(50'000) ? random_.between(10, 100) : 1;
  for (std::uint64_t i = 0; i < copies; ++i) {
    if (random_.chance(300'000)) packet.from = static_cast<HostNumber>(random_.below(hosts_));
    packet.outside = static_cast<std::uint16_t>(random_.between(kForgedPortFirst, kForgedPortLast));
    network_.inject(packet, draw_delay());
  }
}

/// Forges a frame. Returns false if the result does not differ from what an endpoint has sent.
bool PathAttacker::forge(Packet& packet) {
  const std::vector<std::byte> before = packet.bytes;
  switch (random_.below(7)) {
    case 0: return redirect(packet);
    case 1: std::swap(packet.from, packet.to); return packet.from != packet.to;
    case 2:
      if (!splice(packet)) return false;
      break;
    case 3: unseal(packet); break;
    case 4: draw_header(packet); break;
    default: alter(packet); break;
  }
  if (only_tag_differs(before, packet.bytes)) packet.maker = Packet::Maker::replayer;
  return packet.bytes != before;
}

/// Sends the frame to another host than it was sent to, or in the name of another one. A frame whose source
/// alone is wrong is a copy: a router may have replaced the source. The same holds for an answer that is sent
/// elsewhere. If this attacker has replayed the question from a wrong source, the answer went astray, and
/// elsewhere is the host that asked.
bool PathAttacker::redirect(Packet& packet) {
  const bool elsewhere = random_.chance(500'000);
  HostNumber& end = elsewhere ? packet.to : packet.from;
  // On its way to a relay, a frame is for another host than the relay.
  if (!elsewhere || answers(packet) || packet.to >= hosts_) packet.maker = Packet::Maker::replayer;
  const HostNumber before = end;
  end = static_cast<HostNumber>(random_.below(hosts_));
  return end != before;
}

/// Flips a few bits anywhere, changes the counter a little, or cuts off the end.
void PathAttacker::alter(Packet& packet) {
  std::vector<std::byte>& bytes = packet.bytes;
  if (random_.chance(200'000) && bytes.size() > sizeof(FrameHeader) + sizeof(SealTrailer)) {
    SealTrailer trailer;
    std::byte* const at = bytes.data() + bytes.size() - sizeof trailer;
    std::memcpy(&trailer, at, sizeof trailer);
    trailer.counter = trailer.counter + random_.between(1, 2000) - (random_.chance(500'000) ? 1000 : 0);
    std::memcpy(at, &trailer, sizeof trailer);
    return;
  }
  if (random_.chance(100'000)) {
    const FrameHeader header = header_of(packet);
    bytes.resize(bytes.size() - random_.below(bytes.size() - sizeof(FrameHeader) + 1));
    return set_header(packet, header);
  }
  for (std::uint64_t flips = random_.between(1, 3); flips-- > 0;) {
    const bool in_header = random_.chance(400'000);
    const std::size_t at = random_.below(in_header ? sizeof(FrameHeader) : bytes.size());
    bytes[at] ^= std::byte{1} << static_cast<int>(random_.below(8));
  }
}

/// Puts the header of this frame before the content of another. If the two frames differ in the header only,
/// the result is a copy, and the function returns false.
bool PathAttacker::splice(Packet& packet) {
  const FrameHeader header = header_of(packet);
  const Packet& other = pick_kept();
  packet.bytes = other.bytes;
  set_header(packet, header);
  return packet.bytes != other.bytes;
}

/// Removes the seal, as if there were no key. What is encrypted stays encrypted.
void PathAttacker::unseal(Packet& packet) {
  FrameHeader header = header_of(packet);
  if ((header.flags & wire::frame_flag::kSealed) == 0) return;
  header.flags &= static_cast<std::uint8_t>(~wire::frame_flag::kSealed);
  if (packet.bytes.size() >= sizeof(FrameHeader) + sizeof(SealTrailer))
    packet.bytes.resize(packet.bytes.size() - sizeof(SealTrailer));
  set_header(packet, header);
  set_checksum(packet);
}

/// Draws another kind and other flags: resets, farewells, keep-alives, notices. If the frame then counts as
/// sealed, its seal is that of the original frame. Otherwise its checksum is right.
void PathAttacker::draw_header(Packet& packet) {
  FrameHeader header = header_of(packet);
  header.kind = static_cast<std::uint8_t>(
      random_.below(static_cast<std::uint64_t>(wire::FrameKind::association_unknown) + 1));
  if (random_.chance(500'000)) header.flags = static_cast<std::uint8_t>(random_.below(256));
  if (random_.chance(300'000)) packet.bytes.resize(sizeof(FrameHeader));
  set_header(packet, header);
  if ((header.flags & wire::frame_flag::kSealed) == 0) set_checksum(packet);
}

}  // namespace cluster::sim
