// A team as one member sees it, and the operations of the team that are under way here. It knows what belongs
// together; what happens to it is decided in collectives.h.
#pragma once

#include <algorithm>
#include <cstdint>
#include <deque>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "base/address.h"
#include "base/status.h"
#include "collective/composition.h"
#include "collective/team_tag.h"
#include "collective/schedule_run.h"

namespace cluster::collective {

/// A member as the endpoint knows it.
struct MemberAddress {
  std::uint64_t handle = 0;  ///< in the address vector
  SocketAddress name;
};

/// Is notified when a join has ended, under the engine's lock.
class JoinListener {
 public:
  virtual ~JoinListener() = default;
  virtual void joined(Status status) = 0;
};

struct Operation;

/// The context of one message of an operation.
struct Ticket {
  Operation* operation = nullptr;
  Step step = 0;
  bool awaited = false;  ///< a receive that has been posted and is not complete
};

class Team;

struct Operation {
  Operation(Team& of, std::uint32_t numbered, Schedule schedule)
      : team(of), number(numbered), run(std::move(schedule)), tickets(run.size()) {}

  Team& team;
  std::uint32_t number;  ///< within the team
  ScheduleRun run;
  std::vector<Ticket> tickets;    ///< by step
  std::size_t in_flight = 0;      ///< messages whose outcome is still to come: their buffers are in use
  void* context = nullptr;        ///< of the application
  bool report = true;             ///< write a completion on success
  JoinListener* join = nullptr;   ///< of the operation by which the members join
  bool awaits_group = false;      ///< what another node spreads is to come
};

class Team {
 public:
  /// So many broadcasts go without a group, unless they are long.
  static constexpr std::uint32_t kBroadcastsBefore = 8;

  /// The identity of the `instance`th team with this key and these members, in this order.
  static std::uint64_t identity(std::span<const MemberAddress> members, std::uint64_t key, std::uint64_t instance);

  Team(std::uint64_t id, std::vector<MemberAddress> members, Member self);

  std::uint64_t id() const { return id_; }
  const TeamLayout& layout() const { return layout_; }
  const MemberAddress& address(Member member) const { return members_[member]; }
  /// kNoMember if it has none with this handle, or name.
  Member find(std::uint64_t handle) const;
  Member find(const SocketAddress& name) const;

  /// Why the team has failed; ok as long as it works.
  Status status() const { return status_; }
  void set_failed(Status status) { status_ = status; }

  std::deque<std::unique_ptr<Operation>>& operations() { return operations_; }
  Operation& begin(Schedule schedule);
  /// Its join has thrown: it is left when nothing of it is under way.
  bool orphaned() const { return orphaned_; }
  void set_orphaned() { orphaned_ = true; }
  /// The group of its nodes' leaders, once there was something to spread.
  std::optional<std::uint64_t> group() const { return group_; }
  void set_group(std::uint64_t group) { group_ = group; }
  /// There were enough broadcasts for a group to pay, however short they are.
  bool broadcasts_often() const { return broadcasts_ == kBroadcastsBefore; }
  void count_broadcast() { broadcasts_ = std::min(broadcasts_ + 1, kBroadcastsBefore); }
  /// The names of the leaders.
  std::vector<SocketAddress> leaders() const;
  /// True once all members have joined.
  bool complete() const { return complete_; }
  void set_complete() { complete_ = true; }

 private:
  std::uint64_t id_;
  std::vector<MemberAddress> members_;
  TeamLayout layout_;
  Status status_ = Status::ok;
  bool complete_ = false;
  bool orphaned_ = false;
  std::optional<std::uint64_t> group_;
  std::uint32_t broadcasts_ = 0;
  std::uint32_t next_ = 0;
  std::deque<std::unique_ptr<Operation>> operations_;
};

}  // namespace cluster::collective
