// Each rail has a switch, and each host has a port at each switch. A frame passes, in this order:
//
//   the host's send queue   at the port's rate; a full queue refuses the frame, as a socket does
//   the cable out           impairments of that direction
//   the switch              partitions; the queue towards the receiver at the rate of its port, tail drop
//   the cable in            impairments of that direction
//   the receiver            its ring if a process is there; if not, "port unreachable" goes back
//
// A router may translate the addresses of one host (translator.h). It is between the host and the switch.
//
// Hosts are numbered. Host i has the address 10.x.y.z on the first rail, with x.y.z = i, 11.x.y.z on the
// second, and so on. No rail leads to the addresses of another rail. The network does not interpret frames.
// Only the trace does.
//
// There may be one rail more, which joins the RDMA devices of hosts. Its addresses are queue pairs for
// datagrams. The number of a queue pair never returns. A host gets another one when its device comes back,
// and when its next process begins. A frame to a former number is lost, and nobody says so.
#pragma once

#include <memory>
#include <vector>

#include "base/address.h"
#include "link/link.h"
#include "sim/event_queue.h"
#include "sim/packet.h"
#include "sim/partitions.h"
#include "sim/port.h"
#include "sim/seeded_random.h"
#include "sim/trace.h"
#include "sim/translator.h"

namespace cluster::sim {

inline constexpr unsigned kNetworkBits = 8;              ///< of an address that say to which rail it belongs
inline constexpr unsigned kGidBits = 96 + kNetworkBits;  ///< the same of a GID

SocketAddress address_of(HostNumber host, RailNumber rail = 0);
HostNumber host_of(const SocketAddress& address);
/// Returns the address from which the frame has come, as its receiver sees it.
SocketAddress source_of(const Packet& packet);
RailNumber rail_of(const SocketAddress& address);

/// The receiving end of a port.
class NetworkNode {
 public:
  virtual ~NetworkNode() = default;
  /// Takes an arrived frame. Returns false if no process listens there.
  virtual bool deliver(std::unique_ptr<Packet>& packet) = 0;
  virtual void deliver_path_error(const link::PathError& error) = 0;
  /// Called only at the last host, which may be an attacker: a host has sent this frame.
  virtual void overhear(const Packet&) {}
  /// Called only at the last host: a frame of an attacker, or a copy that the network has made of it,
  /// reaches a host.
  virtual void on_forgery_arrived(const Packet&) {}
};

/// A host on the path. It sees the frames that pass, and may send in the name of others
/// (SimNetwork::inject).
class NetworkTap {
 public:
  virtual ~NetworkTap() = default;
  /// A frame that an endpoint has sent passes the switch.
  virtual void see(const Packet& packet) = 0;
};

struct NetworkTotals {
  std::uint64_t frames = 0;  ///< accepted from hosts
  std::uint64_t bytes = 0;
  std::uint64_t lost = 0;          ///< by impairments of a cable
  std::uint64_t tail_dropped = 0;  ///< by a full queue at the switch
  std::uint64_t cut = 0;           ///< by partitions and ports that were down
  std::uint64_t ring_full = 0;
  std::uint64_t duplicated = 0;
  std::uint64_t reordered = 0;
  std::uint64_t corrupted = 0;
  std::uint64_t unreachable = 0;
  std::uint64_t injected = 0;  ///< by a host on the path

  /// Returns how many frames were lost or damaged.
  std::uint64_t gone() const { return lost + tail_dropped + cut + ring_full + corrupted + unreachable; }
};

class SimNetwork final : public EventHandler {
 public:
  SimNetwork(EventQueue& event_queue, Trace& trace, std::uint64_t seed, std::uint32_t hosts, RailNumber rails,
             bool joins_devices = false);
  ~SimNetwork() override;

  /// Returns the number of the rails with IP addresses.
  RailNumber rails() const { return rails_; }
  RailNumber all_rails() const { return static_cast<RailNumber>(ports_.size() / hosts_); }
  /// Returns true if one more rail joins RDMA devices.
  bool joins_devices() const { return all_rails() != rails_; }
  RailNumber device_rail() const { return rails_; }
  Port& port(HostNumber host, RailNumber rail = 0) { return port_state(host, rail).port; }
  /// Connects the host to every rail.
  void connect(HostNumber host, NetworkNode& node);
  /// Returns the address that the host has now.
  SocketAddress present_address(HostNumber host, RailNumber rail);
  /// Gives the host a new address, or its first one again.
  void readdress(HostNumber host, RailNumber rail, bool back);
  /// Gives the host another queue pair.
  void replace_queue_pair(HostNumber host) { port(host, device_rail()).moves = ++last_queue_pair_; }
  const NetworkTotals& totals() const { return totals_; }
  Time now() const { return event_queue_.now(); }

  /// Divides the hosts: frames between hosts of different parts do not arrive. Hosts of part 0 see all
  /// others.
  void divide(std::vector<unsigned> parts) { parts_ = std::move(parts); }
  void set_tap(NetworkTap* tap) { tap_ = tap; }
  bool translates() const { return translator_ != nullptr; }
  void set_translator(std::unique_ptr<Translator> translator) { translator_ = std::move(translator); }
  /// A frame of the tap begins at the switch, after this delay.
  void inject(const Packet& packet, Duration later);

  /// Sends a frame. Returns false if the host's send queue is full. `forwarded`: the packet in which the
  /// frame has come, if the host is a relay, or null.
  bool send(HostNumber from, RailNumber rail, std::uint32_t incarnation, const link::OutFrame& frame,
            const Packet* forwarded = nullptr);
  /// What a frame of an attacker claims: that it comes from this host and port (0: the usual one).
  struct Claim {
    HostNumber from = 0;
    std::uint16_t port = 0;
    /// The attacker sends no frame, but an ICMP error. The error says that the port of `from` is closed, and
    /// quotes what was sent there.
    bool icmp_error = false;
  };
  void inject(const Claim& claim, HostNumber to, RailNumber rail, std::vector<std::byte> bytes);
  /// Blocks EtherType frames from the host or to the host, or unblocks them.
  enum class Side : std::uint8_t { out, in };
  void block_ethertype(HostNumber host, RailNumber rail, Side side, bool shut);
  /// All frames that the host sends until then take a longer way. So they arrive behind frames that it sends
  /// afterwards.
  void detour(HostNumber host, Time until, Duration longer_by);
  Partitions& partitions() { return partitions_; }
  /// Returns true if frames from one host to another get through on the first rail.
  bool connects(HostNumber from, HostNumber to) const;
  /// Ends every partition, brings every port up, makes every cable perfect and unblocks EtherType frames.
  void heal();

  void handle_event(std::uint64_t note) override;
  /// A packet is lost with the device that has received it.
  void lose_with_device(std::unique_ptr<Packet> packet) {
    lose("device-gone", totals_.cut, std::move(packet));
  }
  /// Takes a delivered packet back.
  void recycle(std::unique_ptr<Packet> packet) { packets_.recycle(std::move(packet)); }

 private:
  struct PortState {
    explicit PortState(SeededRandom chance) : random(chance) {}
    Port port;
    NetworkNode* node = nullptr;
    SeededRandom random;
    Time sends_until{};      ///< when the host's send queue will be empty
    Time switch_until{};     ///< when the switch's queue towards the host will be empty
    Time delivered_until{};  ///< no further frame arrives earlier, so frames keep their order
    Time icmp_sent_at{};
    Time detour_until{};
    Duration detour_by{0};
    Time burst_out{};  ///< end of the present burst of losses
    Time burst_in{};
    bool ethertype_out_blocked = false;
    bool ethertype_in_blocked = false;
  };
  enum class Hop : std::uint8_t { at_switch, at_host, icmp_error };

  PortState& port_state(HostNumber host, RailNumber rail) {
    return ports_[std::size_t{rail} * hosts_ + host];
  }
  void plan(Time at, Hop hop, std::unique_ptr<Packet> packet);
  /// Returns true if the frame is not lost. May damage it. `late`: how much later than its turn it arrives.
  /// `twice`: a duplicate is due.
  bool pass(PortState& on, const Impairment& impairment, Time& burst, Packet& packet, Duration& late,
            bool& twice);
  void send_copies(PortState& on, const Impairment& impairment, bool twice, Time there, Hop hop,
                   const Packet& packet);
  bool leads_to_present_address(const Packet& packet);
  bool divided(const Packet& packet) const;
  void reach_switch(std::unique_ptr<Packet> packet);
  void reach_host(std::unique_ptr<Packet> packet);
  void send_icmp_error(const Packet& packet);
  void deliver_icmp_error(std::unique_ptr<Packet> packet);
  void lose(const char* why, std::uint64_t& counter, std::unique_ptr<Packet> packet);

  EventQueue& event_queue_;
  Trace& trace_;
  std::uint32_t hosts_;
  RailNumber rails_;
  std::vector<PortState> ports_;  ///< by rail, then by host
  Partitions partitions_;
  PacketPool packets_;
  NetworkTap* tap_ = nullptr;
  std::unique_ptr<Translator> translator_;
  std::vector<unsigned> parts_;  ///< of each host; empty: all are in one part
  std::uint16_t last_move_ = 0;
  std::uint16_t last_queue_pair_ = 0;
  NetworkTotals totals_;
};

}  // namespace cluster::sim
