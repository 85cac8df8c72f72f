#include "sim/translator.h"

#include <array>
#include <cstddef>

#include "wire/frame.h"

namespace cluster::sim {
namespace {

constexpr std::uint16_t kFirstPort = 30'000;

bool is_keep_alive_answer(const Packet& packet) {
  constexpr std::size_t at = offsetof(wire::FrameHeader, kind);
  return packet.bytes.size() > at && packet.bytes[at] == static_cast<std::byte>(wire::FrameKind::alive);
}

}  // namespace

Translator::Translator(HostNumber host, SeededRandom random)
    : host_(host),
      idle_max_(random.pick(std::array<Duration, 3>{20ms, 200ms, 30s})),
      changes_after_(random.pick(std::array<Duration, 4>{3ms, 20ms, 500ms, 100s})),
      last_port_(kFirstPort) {}

bool Translator::send(Time now, Packet& packet) {
  if (packet.ethertype) return false;
  if (packet.to_outside != 0) return true;  // to an address where nobody is; it changes nothing for the peer
  Translation& its = towards(packet.to, packet.rail);
  const bool over = now >= its.used + idle_max_ || (!its.direct && now >= its.since + changes_after_);
  const bool renewed = over && !settled_ && !is_keep_alive_answer(packet);
  if (renewed || (!its.direct && its.port == 0)) its = {false, ++last_port_, now, now};
  its.used = now;
  packet.outside = its.direct ? 0 : its.port;
  return true;
}

bool Translator::receive(Time now, const Packet& packet) {
  if (packet.ethertype) return false;
  Translation& its = towards(packet.from, packet.rail);
  if (packet.to_outside != 0) {
    if (its.port != packet.to_outside) return false;
    its.used = now;
    return true;
  }
  const bool genuine = !packet.forged && packet.maker == Packet::Maker::endpoint;
  if (genuine && !its.direct && its.port == 0) its = {true, 0, now, now};
  if (genuine && its.direct) its.used = now;
  return true;
}

}  // namespace cluster::sim
