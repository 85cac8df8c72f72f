// A host outside the cluster, and the limits of what it may achieve. Nothing it sends may be delivered, end a
// session or fail an operation. The memory and the frames that it costs the others are bounded.
//
//   forger    off the path: it knows addresses, ports and the protocol, and sends under every name. It sees no
//             frame of others; but so that its guesses are worth something one half of what it would have to guess
//             is given to it: the session without the sequence, or the other way round. It also says, by ICMP, that
//             ports are closed
//   flooder  floods from its own address, under thousands of ports, sometimes as the sibling of a host. Of the sessions
//             that it is offered it takes some up, leaves gaps that never close, and reaches for memory
//   siege    sends host 0 some 50,000 frames a second that belong to no session, for longer than the peer timeout: calls in
//             unknown names, nonsense, keep-alives. Hosts that come meanwhile must find host 0 all the same
//
// Its frames are marked, so that the oracles do not attribute them to the hosts
// (Packet::forged).
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "sim/event_queue.h"
#include "sim/host_pair.h"
#include "sim/seeded_random.h"
#include "sim/sim_network.h"
#include "test/support/forged_frame.h"

namespace cluster::sim {

enum class AttackKind : std::uint8_t { none, forger, flooder, siege };

/// False if there is no such name.
bool attack_of(std::string_view name, AttackKind& out);

class Attacker final : public EventHandler, public NetworkNode {
 public:
  /// It is the host behind the last of the cluster. It begins at once, and sends for about as long as the
  /// workload lasts.
  Attacker(AttackKind kind, EventQueue& event_queue, SimNetwork& network, HostNumber hosts, Duration horizon,
           std::uint64_t seed);

  void handle_event(std::uint64_t note) override;
  bool deliver(std::unique_ptr<Packet>& packet) override;
  void deliver_path_error(const link::PathError&) override {}
  void overhear(const Packet& packet) override;
  void on_forgery_arrived(const Packet& packet) override;
  /// No more of it.
  void stop() { left_ = 0; }

  std::uint64_t frames() const { return frames_; }
  /// Describes forbidden frames that the hosts have sent to it; empty if there are none.
  const std::string& violation() const { return violation_; }

 private:
  using Frame = test::ForgedFrame;

  /// What a host has last sent to another.
  struct Seen {
    wire::FrameHeader last{};
    std::uint32_t session = 0;  ///< of its opening
    std::uint64_t epoch = 0;
  };
  /// A session that it wants: by its number.
  struct Call {
    std::uint16_t port = 0;
    HostNumber to = 0;
    std::optional<SocketAddress> sibling;  ///< that it claims
    std::size_t bytes = 0;                 ///< that reached the host: the network copies some
    std::size_t answered = 0;
    bool taken_up = false;
    std::vector<std::uint64_t> numbers = {};  ///< of the packets that have answered: the network copies some
  };

  void forge();
  void join_train(const Packet& genuine);
  void flood();
  void besiege();
  Frame call(HostNumber name, std::uint32_t session);
  Frame data(const Seen& genuine);
  Frame reset(const Seen& refused);
  Frame control(const Seen& genuine);
  void forge_icmp_error(HostNumber about, HostNumber to);
  wire::Segment segment();
  Frame about_sibling(wire::FrameKind kind, const SocketAddress& caller, std::uint32_t session);
  void take_up(const Call& call, const wire::FrameView& challenge);
  void send(const Frame& frame, HostNumber name, std::uint16_t port, HostNumber to);
  void send_bytes(std::vector<std::byte> bytes, HostNumber name, std::uint16_t port, HostNumber to);
  HostNumber any_host() { return static_cast<HostNumber>(random_.below(hosts_)); }
  std::uint32_t number() { return static_cast<std::uint32_t>(random_.next()); }
  /// Not near that one.
  std::uint32_t far_from(std::uint32_t known) {
    return known + static_cast<std::uint32_t>(random_.between(1 << 17, (std::uint64_t{1} << 32) - (1 << 17)));
  }

  AttackKind kind_;
  EventQueue& event_queue_;
  SimNetwork& network_;
  HostNumber hosts_;
  SeededRandom random_;
  Duration pause_{};  ///< longest, between two frames
  std::uint64_t left_ = 0;
  std::uint64_t frames_ = 0;
  std::uint32_t keep_alives_ = 0;  ///< of a million frames of a siege
  std::uint32_t nonsense_ = 0;
  std::unordered_map<Pair, Seen, PairHash> seen_;
  std::unordered_map<std::uint32_t, Call> calls_;
  std::string violation_;
};

}  // namespace cluster::sim
