#include "sim/group_network.h"

#include <algorithm>
#include <utility>

#include "sim/allocation_meter.h"

namespace cluster::sim {
namespace {

constexpr std::size_t kSegmentMax = 1440;  ///< header included
constexpr Duration kFlightMin = 20us;
constexpr Duration kFlightMax = 60us;
constexpr Duration kLateMax = 30ms;

}  // namespace

class GroupNetwork::Pipe final : public carrier::Carrier {
 public:
  Pipe(GroupNetwork& network, const SocketAddress& from, const SocketAddress& to)
      : Carrier({.acknowledges_on_post = true}), network_(network), from_(from), to_(to) {}

  std::size_t payload_max(const wire::Segment& segment) const override {
    return kSegmentMax - wire::encoded_size(segment);
  }
  bool post(const wire::Segment& segment, const Gather& payload, carrier::PayloadMode,
            carrier::Token) override {
    if (under_way >= network_.faults_.pipe_max) return false;
    const AllocationMeter::Scope none(nullptr);
    std::vector<std::byte> bytes(wire::encoded_size(segment) + payload.length);
    std::byte* at = bytes.data() + wire::encode(segment, bytes.data());
    each_piece(payload.slices, payload.offset, payload.length, [&](ConstBytes piece) {
      at = std::copy(piece.begin(), piece.end(), at);
      return true;
    });
    ++under_way;
    const bool late = network_.random_.chance(network_.faults_.late_segment);
    const Duration delay = network_.random_.between(kFlightMin, late ? kLateMax : kFlightMax);
    network_.plan(delay, {from_, to_, std::move(bytes), this});
    return true;
  }

  std::size_t under_way = 0;

 private:
  GroupNetwork& network_;
  SocketAddress from_;
  SocketAddress to_;
};

GroupNetwork::GroupNetwork(EventQueue& events, const GroupFaults& faults, std::uint64_t seed)
    : events_(events), faults_(faults), random_(SeededRandom::stream(seed, 'N')) {}

GroupNetwork::~GroupNetwork() = default;

void GroupNetwork::plan(Duration delay, Packet packet) {
  const std::uint64_t number = next_++;
  under_way_.emplace(number, std::move(packet));
  events_.plan(events_.now() + delay, *this, number);
}

std::size_t GroupNetwork::multicast(const SocketAddress& from, std::span<const link::OutFrame> frames) {
  const AllocationMeter::Scope none(nullptr);
  const std::size_t taken = random_.chance(faults_.link_full) ? frames.size() / 2 : frames.size();
  for (const link::OutFrame& frame : frames.first(taken)) {
    ++frames_;
    std::vector<std::byte> bytes;
    for (std::size_t i = 0; i < frame.count; ++i)
      bytes.insert(bytes.end(), frame.pieces[i].begin(), frame.pieces[i].end());
    if (tap_ != nullptr) tap_->see(from, bytes);
    for (const auto& [name, host] : hosts_) {
      if (name == from || host.deaf || random_.chance(faults_.loss)) continue;
      const int copies = random_.chance(faults_.duplicate) ? 2 : 1;
      for (int i = 0; i < copies; ++i) {
        std::vector<std::byte> copy = bytes;
        if (random_.chance(faults_.corrupt)) copy[random_.below(copy.size())] ^= std::byte{0x10};
        const bool late = random_.chance(faults_.delayed);
        plan(random_.between(kFlightMin, late ? faults_.delay_max : kFlightMin + 5us),
             {from, name, std::move(copy), nullptr});
      }
    }
  }
  return taken;
}

carrier::Carrier& GroupNetwork::pipe(const SocketAddress& from, const SocketAddress& to) {
  std::unique_ptr<Pipe>& place = pipes_[from][to];
  if (place == nullptr) place = std::make_unique<Pipe>(*this, from, to);
  return *place;
}

void GroupNetwork::handle_event(std::uint64_t note) {
  const auto found = under_way_.find(note);
  const Packet packet = std::move(found->second);
  under_way_.erase(found);
  if (packet.pipe != nullptr) --packet.pipe->under_way;
  const auto host = hosts_.find(packet.to);
  if (host == hosts_.end()) return;
  events_.note(note);
  if (packet.pipe != nullptr) {
    host->second.port->segment_arrived(packet.from, packet.bytes);
  } else {
    host->second.port->frame_arrived(packet.from, packet.bytes);
  }
}

}  // namespace cluster::sim
