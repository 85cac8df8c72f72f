// A host outside the cluster that attacks the hosts of the cluster, and a check of the answers that it gets.
// No frame of the attacker may be delivered, end a session or fail an operation. The memory and the frames
// that it costs the hosts are bounded.
//
//   forger   is not on the path, and sees no frame of others. It knows addresses, ports and the protocol, and
//            sends under every name. A frame in a session must contain two numbers, session and sequence. The
//            simulator gives the forger one of them, so that its guesses have a chance. The forger also sends
//            ICMP errors which say that ports are closed
//   flooder  sends thousands of calls from its own address, under thousands of ports. Sometimes it claims to
//            be the sibling of a host. It accepts some of the sessions that it is offered, leaves gaps that
//            never close, and tries to access memory
//   siege    sends host 0 some 50,000 frames per second that belong to no session, for longer than the peer
//            timeout: calls of unknown sources, path responses of unknown sessions, and keep-alives. Hosts
//            that start meanwhile must still reach host 0
//
// The frames of the attacker are marked (Packet::forged), so that the oracles do not attribute them to the
// hosts.
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

/// Sets `out` to the attack of this name. Returns false if there is none.
bool attack_of(std::string_view name, AttackKind& out);

class Attacker final : public EventHandler, public NetworkNode {
 public:
  /// `hosts`: how many hosts the cluster has. The attacker is the host with the next number. It begins at
  /// once, and ends about when the workload ends, or earlier.
  Attacker(AttackKind kind, EventQueue& event_queue, SimNetwork& network, HostNumber hosts, Duration horizon,
           std::uint64_t seed);

  void handle_event(std::uint64_t note) override;
  bool deliver(std::unique_ptr<Packet>& packet) override;
  void deliver_path_error(const link::PathError&) override {}
  void overhear(const Packet& packet) override;
  void on_forgery_arrived(const Packet& packet) override;
  /// Ends the attack.
  void stop() { left_ = 0; }

  std::uint64_t frames() const { return frames_; }
  /// Describes the last forbidden frame that a host has sent to the attacker; empty if there is none.
  const std::string& violation() const { return violation_; }

 private:
  using Frame = test::ForgedFrame;

  /// What is known of the frames from one host to another: the last header, and session and epoch of the
  /// last opening.
  struct Seen {
    wire::FrameHeader last{};
    std::uint32_t session = 0;
    std::uint64_t epoch = 0;
  };
  /// A session for which the attacker has asked.
  struct Call {
    std::uint16_t port = 0;
    HostNumber to = 0;
    std::optional<SocketAddress> sibling;  ///< the address that the attacker claims to be its sibling
    std::size_t bytes = 0;                 ///< of this call that reached the host, copies included
    std::size_t answered = 0;
    bool taken_up = false;
    std::vector<std::uint64_t> numbers = {};  ///< of packets that have answered, to recognise copies
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
  /// Returns a random number that differs from `known` by at least 2^17.
  std::uint32_t far_from(std::uint32_t known) {
    return known + static_cast<std::uint32_t>(random_.between(1 << 17, (std::uint64_t{1} << 32) - (1 << 17)));
  }

  AttackKind kind_;
  EventQueue& event_queue_;
  SimNetwork& network_;
  HostNumber hosts_;
  SeededRandom random_;
  Duration pause_{};  ///< the longest time between two frames
  std::uint64_t left_ = 0;
  std::uint64_t frames_ = 0;
  std::uint32_t keep_alives_ = 0;  ///< how many of a million frames of a siege are keep-alives
  std::uint32_t nonsense_ = 0;
  std::unordered_map<Pair, Seen, PairHash> seen_;
  std::unordered_map<std::uint32_t, Call> calls_;
  std::string violation_;
};

}  // namespace cluster::sim
