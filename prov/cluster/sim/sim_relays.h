// One or two relays, and a network that needs them. The hosts are divided into two parts, between which the
// network carries no frames. The relays are hosts beside the cluster, which see both parts. So do some hosts.
//
// If there are two relays, one of them may die, and begin anew later. It has forgotten all members then. The
// other one lives, so the hosts of the two parts always reach each other within the time that
// the endpoints need to notice the death. In some runs the parts are joined after a while. Then no relay is
// needed any more.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "multipath/link_bundle.h"
#include "relay/relay.h"
#include "sim/next_poll.h"
#include "sim/sim_clock.h"
#include "sim/sim_link.h"
#include "sim/sim_network.h"

namespace cluster::sim {

/// A host on which a relay runs, or has died.
class SimRelay final : public EventHandler, public NetworkNode {
 public:
  SimRelay(EventQueue& event_queue, SimNetwork& network, HostNumber number, relay::JobRelayKeys keys,
           SeededRandom random);
  ~SimRelay() override;

  void begin();
  void die();
  std::uint64_t forwarded() const { return forwarded_ + (relay_ != nullptr ? relay_->totals().frames : 0); }
  std::uint64_t dropped() const { return dropped_ + (relay_ != nullptr ? relay_->totals().dropped : 0); }

  void handle_event(std::uint64_t note) override;
  bool deliver(std::unique_ptr<Packet>& packet) override;
  void deliver_path_error(const link::PathError&) override {}

 private:
  EventQueue& event_queue_;
  SimNetwork& network_;
  HostNumber number_;
  relay::JobRelayKeys keys_;
  SeededRandom random_;
  class Environs;
  std::unique_ptr<Environs> environs_;
  std::uint32_t incarnation_ = 0;
  std::vector<SimLink*> links_;  ///< they belong to link_; by rail
  std::unique_ptr<link::Link> link_;
  std::unique_ptr<relay::Relay> relay_;  ///< null while it is dead
  NextPoll next_poll_;
  std::uint64_t forwarded_ = 0;  ///< by relays that have died
  std::uint64_t dropped_ = 0;
};

class SimRelays final : public EventHandler {
 public:
  /// Draws how many relays there are.
  static std::uint32_t draw_count(std::uint64_t seed);

  /// The relays are the hosts after `hosts` others. All have the keys in `credentials`.
  SimRelays(EventQueue& event_queue, SimNetwork& network, Trace& trace, std::uint32_t hosts,
            std::uint32_t count, const seal::Credentials& credentials, Duration horizon, std::uint64_t seed);

  std::vector<SocketAddress> addresses() const;
  /// Describes what was drawn.
  const std::string& description() const { return description_; }
  /// All relays run from now on.
  void heal();
  std::uint64_t dropped() const;
  void handle_event(std::uint64_t note) override;

 private:
  enum class Event : std::uint8_t { dies, begins, joined };

  EventQueue& event_queue_;
  SimNetwork& network_;
  Trace& trace_;
  std::uint32_t hosts_;
  std::vector<std::unique_ptr<SimRelay>> relays_;
  std::string description_;
  bool healed_ = false;
};

}  // namespace cluster::sim
