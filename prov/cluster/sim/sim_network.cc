#include "sim/sim_network.h"

#include <algorithm>
#include <array>
#include <cstring>
#include <stdexcept>

namespace cluster::sim {
namespace {

constexpr std::uint64_t kStreamPort = 1;
/// Ethernet, IPv4 and UDP headers, checksum, preamble and gap: what a frame costs on a cable besides
/// its bytes.
constexpr std::size_t kCableOverhead = 66;
/// Kernels limit the rate of ICMP errors. A host sends at most one in this time.
constexpr Duration kIcmpInterval = 1ms;
/// An ICMP error quotes so many bytes of the UDP payload, because the whole error has at most 576 bytes.
constexpr std::size_t kIcmpQuote = 520;
constexpr std::uint16_t kUdpPort = 5000;
constexpr unsigned kFirstNetwork = 10;
constexpr std::ptrdiff_t kIpBytes = 4;
/// Part of the number of a host, in the addresses of the router that translates the addresses of this host.
constexpr HostNumber kOutside = 1u << 23;

Duration time_on_cable(std::size_t bytes, std::uint64_t bits_per_second) {
  return Duration(static_cast<std::int64_t>((bytes + kCableOverhead) * 8'000'000'000u / bits_per_second));
}

std::size_t bytes_within(Duration time, std::uint64_t bits_per_second) {
  return static_cast<std::size_t>(std::max<std::int64_t>(time.count(), 0)) * (bits_per_second / 1'000'000) /
         8'000;
}

/// Flips a few bits, or cuts off the end. Returns false if there was nothing to damage.
bool damage(Packet& packet, SeededRandom& random) {
  if (packet.bytes.empty()) return false;
  if (random.below(8) == 0) {
    packet.bytes.resize(random.below(packet.bytes.size() + 1));
    return true;
  }
  for (std::uint64_t flips = random.between(1, 4); flips-- > 0;) {
    packet.bytes[random.below(packet.bytes.size())] ^= std::byte{1} << static_cast<int>(random.below(8));
  }
  return true;
}

/// Returns the address of a queue pair. Its GID contains the IP address that the host would have on the rail.
SocketAddress queue_pair_of(HostNumber host, RailNumber rail, std::uint16_t number) {
  std::array<std::byte, SocketAddress::kGidBytes> gid{};
  gid[10] = gid[11] = std::byte{0xff};
  std::ranges::copy(address_of(host, rail).ip(), gid.end() - kIpBytes);
  return SocketAddress::queue_pair(gid.data(), number);
}

}  // namespace

SocketAddress address_of(HostNumber host, RailNumber rail) {
  const std::byte ip[4] = {static_cast<std::byte>(kFirstNetwork + rail), static_cast<std::byte>(host >> 16),
                           static_cast<std::byte>(host >> 8), static_cast<std::byte>(host)};
  return SocketAddress::v4(ip, kUdpPort);
}

HostNumber host_of(const SocketAddress& address) {
  const ConstBytes ip = address.ip().last(kIpBytes);
  return std::to_integer<HostNumber>(ip[1]) << 16 | std::to_integer<HostNumber>(ip[2]) << 8 |
         std::to_integer<HostNumber>(ip[3]);
}

SocketAddress source_of(const Packet& packet) {
  if (packet.by_device) return queue_pair_of(packet.from, packet.rail, packet.port);
  if (packet.outside != 0) return address_of(packet.from | kOutside, packet.rail).with_port(packet.outside);
  const SocketAddress usual = address_of(packet.from, packet.rail);
  return packet.port != 0 ? usual.with_port(packet.port) : usual;
}

RailNumber rail_of(const SocketAddress& address) {
  return std::to_integer<RailNumber>(address.ip().last(kIpBytes)[0]) - kFirstNetwork;
}

SimNetwork::SimNetwork(EventQueue& event_queue, Trace& trace, std::uint64_t seed, std::uint32_t hosts,
                       RailNumber rails, bool joins_devices)
    : event_queue_(event_queue), trace_(trace), hosts_(hosts), rails_(rails) {
  const std::size_t count = (std::size_t{rails} + (joins_devices ? 1 : 0)) * hosts;
  ports_.reserve(count);
  for (std::size_t i = 0; i < count; ++i) ports_.emplace_back(SeededRandom::stream(seed, kStreamPort, i));
}

SimNetwork::~SimNetwork() = default;

void SimNetwork::connect(HostNumber host, NetworkNode& node) {
  for (RailNumber rail = 0; rail < all_rails(); ++rail) port_state(host, rail).node = &node;
}

SocketAddress SimNetwork::present_address(HostNumber host, RailNumber rail) {
  const auto number = static_cast<std::uint16_t>(kUdpPort + port(host, rail).moves);
  if (joins_devices() && rail == device_rail()) return queue_pair_of(host, rail, number);
  return address_of(host, rail).with_port(number);
}

void SimNetwork::readdress(HostNumber host, RailNumber rail, bool back) {
  port(host, rail).moves = back ? 0 : ++last_move_;
}

/// Returns true if the packet goes to the present address of its receiver. Ports outside of the range of the
/// hosts belong to attackers, which do not move.
bool SimNetwork::leads_to_present_address(const Packet& packet) {
  if (packet.by_device) return packet.to_port == present_address(packet.to, packet.rail).queue_pair_number();
  const bool of_host = packet.to_port >= kUdpPort && packet.to_port <= kUdpPort + last_move_;
  return !of_host || packet.to_port == present_address(packet.to, packet.rail).port();
}

/// The packet reaches the hop at that time.
void SimNetwork::plan(Time at, Hop hop, std::unique_ptr<Packet> packet) {
  const std::uint64_t slot = packets_.keep(std::move(packet));
  event_queue_.plan(at, *this, std::uint64_t{static_cast<std::uint8_t>(hop)} << 32 | slot);
}

bool SimNetwork::divided(const Packet& packet) const {
  if (parts_.empty()) return false;
  const unsigned one = parts_[packet.from], other = parts_[packet.to];
  return one != other && one != 0 && other != 0;
}

bool SimNetwork::send(HostNumber from, RailNumber rail, std::uint32_t incarnation,
                      const link::OutFrame& frame, const Packet* forwarded) {
  PortState& out = port_state(from, rail);
  const Time now = event_queue_.now();
  const std::size_t waiting = bytes_within(out.sends_until - now, out.port.bits_per_second);
  if (waiting > out.port.send_queue_bytes) return false;
  std::unique_ptr<Packet> packet = packets_.make();
  packet->from = from;
  packet->rail = rail;
  packet->incarnation = incarnation;
  packet->number = totals_.frames + 1;
  packet->maker = Packet::Maker::endpoint;
  packet->sent_at = now;
  packet->ethertype = frame.path->ethertype;
  packet->by_device = joins_devices() && rail == device_rail();
  packet->damaged = packet->forged = packet->relayed = false;
  if (forwarded != nullptr) {
    packet->relayed = true;
    packet->author = forwarded->from;
    packet->incarnation = forwarded->incarnation;
    packet->number = forwarded->number;
    packet->maker = forwarded->maker;
    packet->damaged = forwarded->damaged;
    packet->forged = forwarded->forged;
    packet->sent_at = forwarded->sent_at;
  }
  const auto number_in = [&](const SocketAddress& address) {
    return packet->by_device ? static_cast<std::uint16_t>(address.queue_pair_number()) : address.port();
  };
  packet->port = out.port.moves == 0 ? 0 : number_in(present_address(from, rail));
  packet->to = host_of(frame.path->to) & ~kOutside;
  const bool to_router = packet->to != host_of(frame.path->to);
  packet->to_port = to_router ? 0 : number_in(frame.path->to);
  packet->to_outside = to_router ? frame.path->to.port() : 0;
  packet->outside = 0;
  for (std::size_t i = 0; i < frame.count; ++i) {
    packet->bytes.insert(packet->bytes.end(), frame.pieces[i].begin(), frame.pieces[i].end());
  }
  ++totals_.frames;
  totals_.bytes += packet->bytes.size();
  trace_.frame("sent", *packet);
  if (NetworkNode* const last = ports_[hosts_ - 1].node; last != nullptr) last->overhear(*packet);
  out.sends_until =
      std::max(now, out.sends_until) + time_on_cable(packet->bytes.size(), out.port.bits_per_second);
  if (packet->to >= hosts_ || rail_of(frame.path->to) != rail) {
    lose("no-host", totals_.unreachable, std::move(packet));
    return true;
  }
  Duration late{0};
  bool twice = false;
  if (out.port.down) {
    lose("down", totals_.cut, std::move(packet));
  } else if (translator_ != nullptr && from == translator_->host() && !translator_->send(now, *packet)) {
    lose("not-translated", totals_.cut, std::move(packet));
  } else if (packet->ethertype && out.ethertype_out_blocked) {
    lose("ethertype", totals_.cut, std::move(packet));
  } else if (packet->bytes.size() > out.port.path_max) {
    lose("too-long", totals_.cut, std::move(packet));
  } else if (!pass(out, out.port.out, out.burst_out, *packet, late, twice)) {
    lose("lost-out", totals_.lost, std::move(packet));
  } else {
    Time there = out.sends_until + out.port.delay;
    if (now < out.detour_until) {
      there += out.detour_by;
      ++totals_.reordered;
    }
    send_copies(out, out.port.out, twice, there, Hop::at_switch, *packet);
    plan(there + late, Hop::at_switch, std::move(packet));
  }
  return true;
}

void SimNetwork::inject(const Claim& claim, HostNumber to, RailNumber rail, std::vector<std::byte> bytes) {
  std::unique_ptr<Packet> packet = packets_.make();
  packet->bytes = std::move(bytes);
  packet->from = claim.from;
  packet->port = claim.port;
  packet->to_port = packet->outside = packet->to_outside = 0;
  packet->to = to;
  packet->rail = rail;
  packet->incarnation = 0;
  packet->sent_at = event_queue_.now();
  packet->ethertype = packet->by_device = packet->damaged = packet->relayed = false;
  packet->forged = true;
  trace_.frame(claim.icmp_error ? "forged-icmp" : "forged", *packet);
  plan(event_queue_.now() + port_state(to, rail).port.delay,
       claim.icmp_error ? Hop::icmp_error : Hop::at_switch, std::move(packet));
}

void SimNetwork::block_ethertype(HostNumber host, RailNumber rail, Side side, bool shut) {
  (side == Side::out ? port_state(host, rail).ethertype_out_blocked
                     : port_state(host, rail).ethertype_in_blocked) = shut;
}

void SimNetwork::detour(HostNumber host, Time until, Duration longer_by) {
  for (RailNumber rail = 0; rail < rails(); ++rail) {
    port_state(host, rail).detour_until = until;
    port_state(host, rail).detour_by = longer_by;
  }
}

bool SimNetwork::pass(PortState& on, const Impairment& impairment, Time& burst, Packet& packet,
                      Duration& late, bool& twice) {
  if (!impairment.any()) return true;
  SeededRandom& random = on.random;
  const Time now = event_queue_.now();
  const bool in_burst = now < burst;
  if (random.chance(in_burst ? impairment.burst_end : impairment.burst_begin))
    burst = in_burst ? now : now + kBurstMost;
  if (now < burst && random.chance(impairment.burst_loss)) return false;
  if (random.chance(impairment.loss)) return false;
  if (random.chance(impairment.corrupt) && damage(packet, random)) {
    packet.damaged = true;
    ++totals_.corrupted;
  }
  if (random.chance(impairment.reorder)) {
    late = random.between(Duration{0}, impairment.reorder_by);
    ++totals_.reordered;
  }
  twice = random.chance(impairment.duplicate);
  totals_.duplicated += twice ? 1 : 0;
  return true;
}

/// Sends copies of the frame, if they are due: one a little later, and one much later.
void SimNetwork::send_copies(PortState& on, const Impairment& impairment, bool twice, Time there, Hop hop,
                             const Packet& packet) {
  const auto copy_within = [&](Duration longest) {
    std::unique_ptr<Packet> copy = packets_.make();
    *copy = packet;
    plan(there + on.random.between(Duration{0}, longest), hop, std::move(copy));
  };
  if (twice) copy_within(impairment.reorder_by);
  if (!on.random.chance(impairment.late_copy)) return;
  ++totals_.duplicated;
  copy_within(impairment.late_copy_by);
}

bool SimNetwork::connects(HostNumber from, HostNumber to) const {
  Packet packet;
  packet.from = from;
  packet.to = to;
  return !partitions_.stops(packet) && !ports_[from].port.down && !ports_[to].port.down;
}

void SimNetwork::lose(const char* why, std::uint64_t& counter, std::unique_ptr<Packet> packet) {
  ++counter;
  trace_.frame(why, *packet);
  recycle(std::move(packet));
}

void SimNetwork::inject(const Packet& packet, Duration later) {
  ++totals_.injected;
  std::unique_ptr<Packet> copy = packets_.make();
  *copy = packet;
  plan(now() + later, Hop::at_switch, std::move(copy));
}

void SimNetwork::reach_switch(std::unique_ptr<Packet> packet) {
  if (packet->maker != Packet::Maker::endpoint) {
    trace_.frame(packet->maker == Packet::Maker::forger ? "forged" : "replayed", *packet);
  } else if (tap_ != nullptr) {
    tap_->see(*packet);
  }
  if (partitions_.stops(*packet) || divided(*packet)) return lose("cut", totals_.cut, std::move(packet));
  PortState& in = port_state(packet->to, packet->rail);
  const Time now = event_queue_.now();
  const std::size_t size = packet->bytes.size();
  const std::size_t waiting = bytes_within(in.switch_until - now, in.port.bits_per_second);
  if (waiting + size > in.port.switch_queue_bytes) {
    return lose("tail-drop", totals_.tail_dropped, std::move(packet));
  }
  in.switch_until = std::max(now, in.switch_until) + time_on_cable(size, in.port.bits_per_second);
  Duration late{0};
  bool twice = false;
  if (in.port.down) return lose("down", totals_.cut, std::move(packet));
  const bool translates = translator_ != nullptr && translator_->host() == packet->to;
  const bool forwarded = translates ? translator_->receive(now, *packet) : packet->to_outside == 0;
  if (!forwarded) {
    if (translates) send_icmp_error(*packet);
    return lose("not-translated", totals_.cut, std::move(packet));
  }
  if (packet->ethertype && in.ethertype_in_blocked) return lose("ethertype", totals_.cut, std::move(packet));
  const Impairment& impairment = in.port.in;
  if (!pass(in, impairment, in.burst_in, *packet, late, twice)) {
    return lose("lost-in", totals_.lost, std::move(packet));
  }
  Time there = in.switch_until + in.port.delay;
  if (impairment.jitter.count() != 0) there += in.random.between(Duration{0}, impairment.jitter);
  if (!packet->ethertype) {  // EtherType frames may overtake the others
    there = std::max(there, in.delivered_until);
    in.delivered_until = there;
  }
  send_copies(in, impairment, twice, there, Hop::at_host, *packet);
  plan(there + late, Hop::at_host, std::move(packet));
}

void SimNetwork::reach_host(std::unique_ptr<Packet> packet) {
  NetworkNode* const node = port_state(packet->to, packet->rail).node;
  NetworkNode* const last = ports_[hosts_ - 1].node;
  if (packet->forged && last != nullptr) last->on_forgery_arrived(*packet);
  if (!leads_to_present_address(*packet)) return lose("no-address", totals_.unreachable, std::move(packet));
  if (node != nullptr && node->deliver(packet)) {
    if (packet != nullptr) lose("ring-full", totals_.ring_full, std::move(packet));
    return;
  }
  send_icmp_error(*packet);
  lose("no-port", totals_.unreachable, std::move(packet));
}

/// Sends an ICMP error "port unreachable" back, which quotes the frame. Sends none if the receiver's host
/// has sent one just now, if the frame's checksum is wrong, or if the frame is no IP packet.
void SimNetwork::send_icmp_error(const Packet& packet) {
  PortState& in = port_state(packet.to, packet.rail);
  const Time now = event_queue_.now();
  if (in.port.icmp_filtered || packet.damaged || packet.ethertype || packet.by_device) return;
  if (in.icmp_sent_at != Time{} && now < in.icmp_sent_at + kIcmpInterval) return;
  in.icmp_sent_at = now;
  const Duration way = in.port.delay + port_state(packet.from, packet.rail).port.delay;
  std::unique_ptr<Packet> error = packets_.make();
  error->from = packet.to;
  error->to = packet.from;
  error->rail = packet.rail;
  error->damaged = error->forged = error->ethertype = error->by_device = error->relayed = false;
  error->port = packet.to_port;
  error->outside = packet.to_outside;
  error->to_port = error->to_outside = 0;
  const std::size_t quoted = std::min(packet.bytes.size(), kIcmpQuote);
  error->bytes.assign(packet.bytes.begin(), packet.bytes.begin() + static_cast<std::ptrdiff_t>(quoted));
  plan(now + way, Hop::icmp_error, std::move(error));
}

void SimNetwork::deliver_icmp_error(std::unique_ptr<Packet> packet) {
  const PortState& from = port_state(packet->from, packet->rail);
  const PortState& to = port_state(packet->to, packet->rail);
  const bool cut = !packet->forged && (partitions_.stops(*packet) || divided(*packet) || from.port.down);
  if (to.node != nullptr && !cut && !to.port.down) {
    link::PathError error{source_of(*packet), Status::refused};
    error.set_quote(packet->bytes);
    to.node->deliver_path_error(error);
  }
  recycle(std::move(packet));
}

void SimNetwork::handle_event(std::uint64_t note) {
  const auto slot = static_cast<std::uint32_t>(note);
  std::unique_ptr<Packet> packet = packets_.take(slot);
  std::uint64_t word = packet->bytes.size();
  if (packet->bytes.size() >= 12) {
    // Length and checksum of the frame stand for all of it.
    std::memcpy(&word, packet->bytes.data() + 4, sizeof word);
  }
  event_queue_.note(word ^ std::uint64_t{packet->to} << 16);
  switch (static_cast<Hop>(note >> 32)) {
    case Hop::at_switch: return reach_switch(std::move(packet));
    case Hop::at_host: return reach_host(std::move(packet));
    case Hop::icmp_error: return deliver_icmp_error(std::move(packet));
  }
  throw std::logic_error("a packet on no hop");
}

void SimNetwork::heal() {
  partitions_.clear();
  if (translator_ != nullptr) translator_->settle();
  for (PortState& each : ports_) {
    each.port.carrier = true;
    each.port.down = each.ethertype_out_blocked = each.ethertype_in_blocked = false;
    each.burst_out = each.burst_in = each.detour_until = Time{};
    each.port.out = each.port.in = Impairment{};
    each.port.path_max = SIZE_MAX;
  }
}

}  // namespace cluster::sim
