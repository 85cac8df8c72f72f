#include "sim/sim_network.h"

#include <algorithm>
#include <cstring>
#include <stdexcept>

namespace cluster::sim {
namespace {

constexpr std::uint64_t kStreamPort = 1;
/// Ethernet, IPv4 and UDP headers, checksum, preamble and gap: what a frame costs on a cable besides
/// its bytes.
constexpr std::size_t kCableOverhead = 66;
/// Kernels limit how often they complain to one neighbour.
constexpr Duration kComplaintGap = 1ms;
constexpr std::uint16_t kUdpPort = 5000;
constexpr unsigned kFirstNetwork = 10;

Duration time_on_cable(std::size_t bytes, std::uint64_t bits_per_second) {
  return Duration(static_cast<std::int64_t>((bytes + kCableOverhead) * 8'000'000'000u / bits_per_second));
}

std::size_t bytes_within(Duration time, std::uint64_t bits_per_second) {
  return static_cast<std::size_t>(std::max<std::int64_t>(time.count(), 0)) * (bits_per_second / 1'000'000) /
         8'000;
}

}  // namespace

SocketAddress address_of(HostNumber host, RailNumber rail) {
  const std::byte ip[4] = {static_cast<std::byte>(kFirstNetwork + rail), static_cast<std::byte>(host >> 16),
                           static_cast<std::byte>(host >> 8), static_cast<std::byte>(host)};
  return SocketAddress::v4(ip, kUdpPort);
}

HostNumber host_of(const SocketAddress& address) {
  const ConstBytes ip = address.ip();
  return std::to_integer<HostNumber>(ip[1]) << 16 | std::to_integer<HostNumber>(ip[2]) << 8 |
         std::to_integer<HostNumber>(ip[3]);
}

RailNumber rail_of(const SocketAddress& address) {
  return std::to_integer<RailNumber>(address.ip()[0]) - kFirstNetwork;
}

SimNetwork::SimNetwork(Timetable& timetable, Trace& trace, std::uint64_t seed, std::uint32_t hosts,
                       RailNumber rails)
    : timetable_(timetable), trace_(trace), hosts_(hosts) {
  const std::size_t count = std::size_t{rails} * hosts;
  lines_.reserve(count);
  for (std::size_t i = 0; i < count; ++i) lines_.emplace_back(Dice::stream(seed, kStreamPort, i));
}

SimNetwork::~SimNetwork() = default;

void SimNetwork::connect(HostNumber host, Station& station) {
  for (RailNumber rail = 0; rail < rails(); ++rail) line(host, rail).station = &station;
}

std::unique_ptr<Packet> SimNetwork::blank() {
  if (blanks_.empty()) return std::make_unique<Packet>();
  std::unique_ptr<Packet> packet = std::move(blanks_.back());
  blanks_.pop_back();
  packet->bytes.clear();
  return packet;
}

void SimNetwork::recycle(std::unique_ptr<Packet> packet) { blanks_.push_back(std::move(packet)); }

std::uint64_t SimNetwork::keep(Leg leg, std::unique_ptr<Packet> packet) {
  if (free_.empty()) {
    free_.push_back(static_cast<std::uint32_t>(travelling_.size()));
    travelling_.emplace_back();
  }
  const std::uint32_t slot = free_.back();
  free_.pop_back();
  travelling_[slot] = std::move(packet);
  return std::uint64_t{static_cast<std::uint8_t>(leg)} << 32 | slot;
}

bool SimNetwork::send(HostNumber from, RailNumber rail, std::uint32_t life, const link::OutFrame& frame) {
  Line& out = line(from, rail);
  const Time now = timetable_.now();
  const std::size_t waiting = bytes_within(out.sends_until - now, out.port.bits_per_second);
  if (waiting > out.port.send_queue_bytes) return false;
  std::unique_ptr<Packet> packet = blank();
  packet->from = from;
  packet->rail = rail;
  packet->life = life;
  packet->sent_at = now;
  packet->shortcut = frame.path->shortcut;
  packet->to = host_of(frame.path->to);
  for (std::size_t i = 0; i < frame.count; ++i) {
    packet->bytes.insert(packet->bytes.end(), frame.pieces[i].begin(), frame.pieces[i].end());
  }
  ++totals_.frames;
  totals_.bytes += packet->bytes.size();
  trace_.frame("sent", *packet);
  out.sends_until =
      std::max(now, out.sends_until) + time_on_cable(packet->bytes.size(), out.port.bits_per_second);
  if (packet->to >= hosts_ || rail_of(frame.path->to) != rail) {
    lose("no-host", totals_.unreachable, std::move(packet));
    return true;
  }
  Duration late{0};
  bool twice = false;
  if (out.down) {
    lose("down", totals_.cut, std::move(packet));
  } else if (packet->shortcut && out.shut_out) {
    lose("shortcut", totals_.cut, std::move(packet));
  } else if (!pass(out, out.port.out, out.burst_out, *packet, late, twice)) {
    lose("lost-out", totals_.lost, std::move(packet));
  } else {
    Time there = out.sends_until + out.port.delay;
    if (now < out.detour_until) {
      there += out.detour_by;
      ++totals_.reordered;
    }
    send_copies(out, out.port.out, twice, there, Leg::at_switch, *packet);
    timetable_.plan(there + late, *this, keep(Leg::at_switch, std::move(packet)));
  }
  return true;
}

void SimNetwork::shut_shortcut(HostNumber host, RailNumber rail, Side side, bool shut) {
  (side == Side::out ? line(host, rail).shut_out : line(host, rail).shut_in) = shut;
}

void SimNetwork::detour(HostNumber host, Time until, Duration longer_by) {
  for (RailNumber rail = 0; rail < rails(); ++rail) {
    line(host, rail).detour_until = until;
    line(host, rail).detour_by = longer_by;
  }
}

bool SimNetwork::pass(Line& on, const Hazard& hazard, Time& burst, Packet& packet, Duration& late,
                      bool& twice) {
  if (!hazard.any()) return true;
  Dice& dice = on.dice;
  const Time now = timetable_.now();
  const bool in_burst = now < burst;
  if (dice.chance(in_burst ? hazard.burst_end : hazard.burst_begin))
    burst = in_burst ? now : now + kBurstMost;
  if (now < burst && dice.chance(hazard.burst_loss)) return false;
  if (dice.chance(hazard.loss)) return false;
  if (dice.chance(hazard.corrupt)) damage(on, packet);
  if (dice.chance(hazard.reorder)) {
    late = dice.between(Duration{0}, hazard.reorder_by);
    ++totals_.reordered;
  }
  twice = dice.chance(hazard.duplicate);
  totals_.duplicated += twice ? 1 : 0;
  return true;
}

/// What comes besides the frame itself: its twin a little later, or much later when nobody thinks of it any
/// more.
void SimNetwork::send_copies(Line& on, const Hazard& hazard, bool twice, Time there, Leg leg,
                             const Packet& packet) {
  const auto copy_within = [&](Duration longest) {
    std::unique_ptr<Packet> copy = blank();
    *copy = packet;
    timetable_.plan(there + on.dice.between(Duration{0}, longest), *this, keep(leg, std::move(copy)));
  };
  if (twice) copy_within(hazard.reorder_by);
  if (!on.dice.chance(hazard.straggle)) return;
  ++totals_.duplicated;
  copy_within(hazard.straggle_by);
}

/// A few bits flip, or the end is cut off.
void SimNetwork::damage(Line& on, Packet& packet) {
  if (packet.bytes.empty()) return;
  ++totals_.corrupted;
  Dice& dice = on.dice;
  if (dice.below(8) == 0) {
    packet.bytes.resize(dice.below(packet.bytes.size() + 1));
    return;
  }
  for (std::uint64_t flips = dice.between(1, 4); flips-- > 0;) {
    packet.bytes[dice.below(packet.bytes.size())] ^= std::byte{1} << static_cast<int>(dice.below(8));
  }
}

bool SimNetwork::is_cut(const Packet& packet) const {
  return std::any_of(cuts_.begin(), cuts_.end(), [&](const Cut& cut) {
    const bool spared = cut.spares_shortcut && packet.shortcut;
    return !spared && cut.rail == packet.rail && cut.from[packet.from] && cut.to[packet.to];
  });
}

void SimNetwork::lose(const char* why, std::uint64_t& counter, std::unique_ptr<Packet> packet) {
  ++counter;
  trace_.frame(why, *packet);
  recycle(std::move(packet));
}

void SimNetwork::reach_switch(std::unique_ptr<Packet> packet) {
  if (is_cut(*packet)) return lose("cut", totals_.cut, std::move(packet));
  Line& in = line(packet->to, packet->rail);
  const Time now = timetable_.now();
  const std::size_t size = packet->bytes.size();
  const std::size_t waiting = bytes_within(in.switch_until - now, in.port.bits_per_second);
  if (waiting + size > in.port.switch_queue_bytes) {
    return lose("tail-drop", totals_.tail_dropped, std::move(packet));
  }
  in.switch_until = std::max(now, in.switch_until) + time_on_cable(size, in.port.bits_per_second);
  Duration late{0};
  bool twice = false;
  if (in.down) return lose("down", totals_.cut, std::move(packet));
  if (packet->shortcut && in.shut_in) return lose("shortcut", totals_.cut, std::move(packet));
  const Hazard& hazard = in.port.in;
  if (!pass(in, hazard, in.burst_in, *packet, late, twice)) {
    return lose("lost-in", totals_.lost, std::move(packet));
  }
  Time there = in.switch_until + in.port.delay;
  if (hazard.jitter.count() != 0) there += in.dice.between(Duration{0}, hazard.jitter);
  if (!packet->shortcut) {  // which may overtake the others
    there = std::max(there, in.delivered_until);
    in.delivered_until = there;
  }
  send_copies(in, hazard, twice, there, Leg::at_host, *packet);
  timetable_.plan(there + late, *this, keep(Leg::at_host, std::move(packet)));
}

void SimNetwork::reach_host(std::unique_ptr<Packet> packet) {
  Station* const station = line(packet->to, packet->rail).station;
  if (station != nullptr && station->take(packet)) {
    if (packet != nullptr) lose("ring-full", totals_.ring_full, std::move(packet));
    return;
  }
  complain(*packet);
  lose("no-port", totals_.unreachable, std::move(packet));
}

/// "Port unreachable" travels back, unless the receiver's host has complained to this one just now.
void SimNetwork::complain(const Packet& packet) {
  Line& in = line(packet.to, packet.rail);
  const Time now = timetable_.now();
  if (in.complained_at != Time{} && now < in.complained_at + kComplaintGap) return;
  in.complained_at = now;
  std::unique_ptr<Packet> answer = blank();
  answer->from = packet.to;
  answer->to = packet.from;
  answer->rail = packet.rail;
  timetable_.plan(now + in.port.delay + line(packet.from, packet.rail).port.delay, *this,
                  keep(Leg::complaint, std::move(answer)));
}

void SimNetwork::hand_complaint(std::unique_ptr<Packet> packet) {
  const Line& from = line(packet->from, packet->rail);
  const Line& to = line(packet->to, packet->rail);
  if (to.station != nullptr && !is_cut(*packet) && !from.down && !to.down) {
    to.station->hear_complaint({address_of(packet->from, packet->rail), Fault::refused});
  }
  recycle(std::move(packet));
}

void SimNetwork::happen(std::uint64_t note) {
  const auto slot = static_cast<std::uint32_t>(note);
  std::unique_ptr<Packet> packet = std::move(travelling_[slot]);
  free_.push_back(slot);
  std::uint64_t word = packet->bytes.size();
  if (packet->bytes.size() >= 12) {
    // Length and checksum of the frame: they stand for all of it.
    std::memcpy(&word, packet->bytes.data() + 4, sizeof word);
  }
  timetable_.note(word ^ std::uint64_t{packet->to} << 16);
  switch (static_cast<Leg>(note >> 32)) {
    case Leg::at_switch: return reach_switch(std::move(packet));
    case Leg::at_host: return reach_host(std::move(packet));
    case Leg::complaint: return hand_complaint(std::move(packet));
  }
  throw std::logic_error("a packet on no leg");
}

void SimNetwork::heal() {
  cuts_.clear();
  for (Line& each : lines_) {
    each.down = each.shut_out = each.shut_in = false;
    each.burst_out = each.burst_in = each.detour_until = Time{};
    each.port.out = each.port.in = Hazard{};
  }
}

}  // namespace cluster::sim
