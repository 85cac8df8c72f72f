// A host with one membership of a group. It does what an engine does for its groups (engine/group_table.h).
// Its application posts messages. It takes the messages that arrive, except while hold() forbids that.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <unordered_map>
#include <vector>

#include "group/group.h"
#include "sim/allocation_meter.h"
#include "sim/event_queue.h"
#include "sim/group_network.h"
#include "sim/group_oracle.h"
#include "sim/group_socket.h"

namespace cluster::sim {

struct GroupHostSettings {
  SocketAddress name;
  Membership membership = 0;
  group::Role role;
  std::vector<SocketAddress> roster = {};
  std::size_t body_max = 1400;
  Duration silence_max{500ms};
  std::optional<seal::Credentials> credentials = {};
  AllocationMeter* memory = nullptr;  ///< counts the memory of the membership
  bool judged = true;                 ///< each turn checks all members
};

class GroupHost final : public GroupPort, public EventHandler {
 public:
  GroupHost(const GroupHostSettings& settings, EventQueue& events, GroupNetwork& network, GroupOracle& oracle,
            std::uint64_t seed);
  ~GroupHost() override { network_.detach(settings_.name); }

  void post(std::size_t size, group::Until until);
  void leave();
  /// Until then this host is frozen: it handles no arrival, but keeps arrivals for later.
  void freeze(Time until);
  /// Until then the application takes no message.
  void hold(Time until);
  /// Another host has died, and the flow to it has noticed that.
  void lose(const SocketAddress& name, Status why);

  const SocketAddress& host_name() const { return settings_.name; }
  Membership membership() const { return settings_.membership; }
  bool sends() const { return settings_.role.sends; }
  bool left() const { return group_.left(); }
  bool leaving() const { return group_.leaving(); }
  bool drained() { return group_.stream().drained() && unfinished_.empty(); }
  std::size_t failed() const { return failed_; }
  /// Returns how many frames its messages were cut into.
  std::uint64_t cut() { return group_.stream().next(); }
  const Counters& counters() const { return socket_.counters(); }

  void frame_arrived(const SocketAddress& from, const std::vector<std::byte>& bytes) override;
  void segment_arrived(const SocketAddress& from, const std::vector<std::byte>& bytes) override;
  void handle_event(std::uint64_t note) override;

 private:
  struct Incoming {
    std::uint32_t stream = 0;
    std::vector<std::byte> bytes;
    std::uint64_t total = 0;
    bool open = false;
  };
  struct Waiting {
    bool frame;
    SocketAddress from;
    std::vector<std::byte> bytes;
  };

  void take_segment(group::Member& member, Incoming& incoming, const wire::Segment& segment,
                    ConstBytes payload);
  void review(const group::Member& member);
  bool deliver(group::Member& member);
  void turn();
  void note_events();
  bool frozen() const { return events_.now() < frozen_until_; }

  GroupHostSettings settings_;
  EventQueue& events_;
  GroupNetwork& network_;
  GroupOracle& oracle_;
  SeededRandom random_;
  GroupSocket socket_;
  group::Group group_;
  std::unordered_map<SocketAddress, Incoming, SocketAddressHash> incoming_;
  std::map<group::MessageToken, std::vector<std::byte>> unfinished_;
  std::vector<Waiting> backlog_;
  Time frozen_until_{};
  Time held_until_{};
  Time wake_at_ = kNever;
  std::size_t failed_ = 0;
};

}  // namespace cluster::sim
