// A team as one member sees it, and the operations of the team that are under way here. Collectives
// (collectives.h) drives it.
#pragma once

#include <algorithm>
#include <cstdint>
#include <deque>
#include <memory>
#include <optional>
#include <span>
#include <utility>
#include <vector>

#include "base/address.h"
#include "base/status.h"
#include "collective/composition.h"
#include "collective/schedule.h"

namespace cluster::collective {

/// The tag of a message between members: the team, its operation within the team, and its number within the
/// operation. Every member computes the identity of a team from the names of the members, so the members
/// exchange no message to agree on one.
///
/// Operations of a team are numbered modulo kOperations. Both sides begin the operations of a team in the
/// same order. So a message of a later operation that has the same number matches later.
class TeamTag {
 public:
  static constexpr unsigned kNumberBits = 12;
  static constexpr unsigned kOperationBits = 12;
  static constexpr unsigned kTeamShift = kNumberBits + kOperationBits;
  static constexpr unsigned kTeamBits = 64 - kTeamShift;
  /// The operation number that announces that the team has failed.
  static constexpr std::uint32_t kFailure = 0xfff;
  static constexpr std::uint32_t kOperations = kFailure;
  /// The bits in which the tags of one team differ.
  static constexpr std::uint64_t kAnyOfTeam = 0xffffff;

  explicit TeamTag(std::uint64_t bits) : bits_(bits) {}
  TeamTag(std::uint64_t team, std::uint32_t operation, std::uint32_t number)
      : bits_(team << kTeamShift | static_cast<std::uint64_t>(operation) << kNumberBits | number) {}
  static TeamTag failure_of(std::uint64_t team) { return {team, kFailure, 0}; }
  static std::uint64_t team_from(std::uint64_t hash) { return hash >> (64 - kTeamBits); }

  std::uint64_t bits() const { return bits_; }
  std::uint64_t team() const { return bits_ >> kTeamShift; }
  bool is_failure() const { return (bits_ >> kNumberBits & kFailure) == kFailure; }

 private:
  std::uint64_t bits_;
};

/// A member as the endpoint knows it.
struct MemberAddress {
  std::uint64_t handle = 0;  ///< in the address vector
  SocketAddress name;
};

/// Is told when a join has ended, under the engine's lock.
class JoinListener {
 public:
  virtual ~JoinListener() = default;
  virtual void joined(Status status) = 0;
};

struct Operation;

/// The context of one message of an operation. Either the message is under way, or its result waits for
/// advance(), or it waits to be issued again. In the latter two cases the ticket is in a TicketQueue.
struct Ticket {
  Operation* operation = nullptr;
  Step step = 0;
  bool awaited = false;        ///< a receive is posted and not complete
  Status status = Status::ok;  ///< the result
  std::size_t length = 0;      ///< bytes received
  Ticket* next = nullptr;
};

/// Tickets that wait for the same thing, in order. A ticket holds the link to the next one, so adding a
/// ticket never allocates. A ticket is in at most one queue.
class TicketQueue {
 public:
  bool empty() const { return first_ == nullptr; }
  void push_back(Ticket& ticket) {
    ticket.next = nullptr;
    (empty() ? first_ : last_->next) = &ticket;
    last_ = &ticket;
  }
  Ticket& pop_front() { return *std::exchange(first_, first_->next); }
  template <typename Matches>
  void erase_if(Matches&& matches) {
    for (TicketQueue all = std::exchange(*this, {}); !all.empty();) {
      Ticket& ticket = all.pop_front();
      if (!matches(ticket)) push_back(ticket);
    }
  }

 private:
  Ticket* first_ = nullptr;
  Ticket* last_ = nullptr;  ///< valid if the queue is not empty
};

class Team;

struct Operation {
  Operation(Team& of, std::uint32_t numbered, Schedule schedule)
      : team(of), number(numbered), run(std::move(schedule)), tickets(run.size()) {}

  Team& team;
  std::uint32_t number;  ///< within the team
  ScheduleRun run;
  std::vector<Ticket> tickets;   ///< by step
  std::size_t in_flight = 0;     ///< messages without a result yet: their buffers are in use
  void* context = nullptr;       ///< the application's
  bool report = true;            ///< write a completion on success
  JoinListener* join = nullptr;  ///< set for the operation by which the members join
  bool awaits_group = false;     ///< a multicast from another node is outstanding
  bool reported = false;         ///< true also while its report is under way
};

class Team {
 public:
  /// A team opens a multicast group after this many broadcasts, or for a long message.
  static constexpr std::uint32_t kBroadcastsBefore = 8;

  /// Returns the identity of the `instance`th team with this key and these members in this order.
  static std::uint64_t identity(std::span<const MemberAddress> members, std::uint64_t key,
                                std::uint64_t instance);

  Team(std::uint64_t id, std::vector<MemberAddress> members, Member self);

  std::uint64_t id() const { return id_; }
  const TeamLayout& layout() const { return layout_; }
  const MemberAddress& address(Member member) const { return members_[member]; }
  /// Returns kNoMember if the team has no member with this handle or name.
  Member find(std::uint64_t handle) const;
  Member find(const SocketAddress& name) const;

  /// Returns why the team has failed; ok as long as it works.
  Status status() const { return status_; }
  /// Notes the first cause of a failure. Returns false if a cause was already noted. Never allocates.
  bool note_failure(Status cause) {
    if (noted_ != Status::ok) return false;
    noted_ = cause;
    return true;
  }
  bool failing() const { return noted_ != Status::ok && !failure_spread_; }
  void set_failed() { status_ = noted_; }
  void set_failure_spread() { failure_spread_ = true; }

  std::deque<std::unique_ptr<Operation>>& operations() { return operations_; }
  Operation& begin(Schedule schedule);
  /// Returns the multicast group of the nodes' leaders; empty until an operation needs it.
  std::optional<std::uint64_t> group() const { return group_; }
  void set_group(std::uint64_t group) { group_ = group; }
  /// Returns true after so many broadcasts that a group pays, however short they are.
  bool broadcasts_often() const { return broadcasts_ == kBroadcastsBefore; }
  void count_broadcast() { broadcasts_ = std::min(broadcasts_ + 1, kBroadcastsBefore); }
  /// Returns the names of the leaders.
  std::vector<SocketAddress> leaders() const;
  /// Returns true once all members have joined.
  bool complete() const { return complete_; }
  void set_complete() { complete_ = true; }

 private:
  std::uint64_t id_;
  std::vector<MemberAddress> members_;
  TeamLayout layout_;
  Status noted_ = Status::ok;   ///< the first cause of a failure
  Status status_ = Status::ok;  ///< equals noted_ once the team has failed here
  bool failure_spread_ = false;
  bool complete_ = false;
  std::optional<std::uint64_t> group_;
  std::uint32_t broadcasts_ = 0;
  std::uint32_t next_ = 0;
  std::deque<std::unique_ptr<Operation>> operations_;
};

}  // namespace cluster::collective
