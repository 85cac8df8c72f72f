// A frame between hosts, and the pool of all these packets. Events name packets in transit by their slot. A
// slot is used again once its packet has arrived or is lost.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <utility>
#include <vector>

#include "base/units.h"

namespace cluster::sim {

using HostNumber = std::uint32_t;
using RailNumber = std::uint32_t;

struct Packet {
  /// Who made the frame. A host on the path replays frames, and forges some.
  enum class Maker : std::uint8_t { endpoint, replayer, forger };
  std::vector<std::byte> bytes;
  std::uint64_t number = 0;  ///< counts the frames that hosts have sent; copies have the same number
  Maker maker = Maker::endpoint;
  HostNumber from = 0;
  HostNumber to = 0;
  RailNumber rail = 0;
  std::uint32_t incarnation = 0;  ///< of the sender's process
  Time sent_at{};
  Time arrived{};                ///< when it reached the receiving process
  bool ethertype = false;        ///< takes the EtherType path
  bool by_device = false;        ///< goes from queue pair to queue pair; the ports are their numbers
  bool damaged = false;          ///< by the network
  bool forged = false;           ///< made by an attacker; `from` is the host that the attacker claims to be
  bool relayed = false;          ///< a relay has forwarded the frame
  HostNumber author = 0;         ///< if relayed: the host that has sent the frame to the relay
  std::uint16_t port = 0;        ///< the sender's port; 0: the usual one
  std::uint16_t to_port = 0;     ///< the receiver's port; 0: its present one
  std::uint16_t outside = 0;     ///< not 0: the source is this port of the router that translates addresses
  std::uint16_t to_outside = 0;  ///< not 0: goes to this port of that router
};

class PacketPool {
 public:
  /// Returns a packet without bytes.
  std::unique_ptr<Packet> make() {
    if (spare_.empty()) return std::make_unique<Packet>();
    std::unique_ptr<Packet> packet = std::move(spare_.back());
    spare_.pop_back();
    packet->bytes.clear();
    return packet;
  }
  void recycle(std::unique_ptr<Packet> packet) { spare_.push_back(std::move(packet)); }

  /// Keeps a packet in transit. Returns its slot.
  std::uint32_t keep(std::unique_ptr<Packet> packet) {
    if (free_slots_.empty()) {
      free_slots_.push_back(static_cast<std::uint32_t>(in_transit_.size()));
      in_transit_.emplace_back();
    }
    const std::uint32_t slot = free_slots_.back();
    free_slots_.pop_back();
    in_transit_[slot] = std::move(packet);
    return slot;
  }
  std::unique_ptr<Packet> take(std::uint32_t slot) {
    free_slots_.push_back(slot);
    return std::move(in_transit_[slot]);
  }

 private:
  std::vector<std::unique_ptr<Packet>> in_transit_;
  std::vector<std::uint32_t> free_slots_;
  std::vector<std::unique_ptr<Packet>> spare_;
};

}  // namespace cluster::sim
