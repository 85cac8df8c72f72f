// A team as one member sees it, and this member's unfinished operations in the team. Only Collectives
// (collectives.h) uses these classes.
#pragma once

#include <algorithm>
#include <cstddef>
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

/// The tag of a message between members. It contains the identity of the team, the number of the operation
/// within the team, and the message number within the operation. Every member computes the identity of a team
/// from the names of the members, the key of the team, and the number of earlier teams with the same names
/// and key. Therefore the members need not exchange messages to agree on an identity.
///
/// Operations of a team are numbered modulo kOperations. All members begin the operations of a team in the
/// same order. Therefore the messages of two operations with the same number match in the right order.
class TeamTag {
 public:
  static constexpr unsigned kNumberBits = 12;
  static constexpr unsigned kOperationBits = 12;
  static constexpr unsigned kTeamShift = kNumberBits + kOperationBits;
  static constexpr unsigned kTeamBits = 64 - kTeamShift;
  /// The operation number of a notice that the team has failed.
  static constexpr std::uint32_t kFailure = 0xfff;
  static constexpr std::uint32_t kOperations = kFailure;
  /// The bits that differ between tags of the same team.
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

/// The largest number of members in a team. Message numbers and failure notices are designed for teams of at
/// most this size.
inline constexpr std::size_t kMembersMax = 65536;

/// The handle and the name of a member.
struct MemberAddress {
  std::uint64_t handle = 0;  ///< the member's handle in the address vector
  SocketAddress name;
};

/// Learns when a join has ended. The engine's lock is held during the call.
class JoinListener {
 public:
  virtual ~JoinListener() = default;
  virtual void joined(Status status) = 0;
};

struct Operation;

/// The state of one message of an operation. The protocol gets a pointer to the ticket as the context of the
/// message. While the result waits for advance(), or the message waits to be issued again, the ticket is in a
/// TicketQueue.
struct Ticket {
  Operation* operation = nullptr;
  Step step = 0;
  bool awaited = false;        ///< true while a posted receive is not complete
  Status status = Status::ok;  ///< the result
  std::size_t length = 0;      ///< bytes received
  Ticket* next = nullptr;
};

/// A queue of tickets. Each ticket contains the pointer to the next one, so push_back() needs no memory. A
/// ticket is in at most one queue.
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
  std::uint32_t number;  ///< number of the operation within the team
  ScheduleRun run;
  std::vector<Ticket> tickets;   ///< one ticket for each step
  std::size_t in_flight = 0;     ///< number of messages without a result; their buffers are still in use
  void* context = nullptr;       ///< the application's context
  bool report = true;            ///< true to write a completion on success
  JoinListener* join = nullptr;  ///< set if this operation is the barrier of a join, and null otherwise
  bool awaits_group = false;     ///< true if the operation receives a multicast from another node
  bool reported = false;         ///< true once its report has begun
};

class Team {
 public:
  /// After this number of broadcasts, a team uses a multicast group even for short broadcasts.
  static constexpr std::uint32_t kBroadcastsBefore = 8;

  /// Returns the identity of a team. `instance` is the number of earlier teams with the same key and the same
  /// members in the same order.
  static std::uint64_t identity(std::span<const MemberAddress> members, std::uint64_t key,
                                std::uint64_t instance);

  Team(std::uint64_t id, std::vector<MemberAddress> members, Member self);

  std::uint64_t id() const { return id_; }
  const TeamLayout& layout() const { return layout_; }
  const MemberAddress& address(Member member) const { return members_[member]; }
  /// Return the member with this handle or name, or kNoMember if the team has none.
  Member find(std::uint64_t handle) const;
  Member find(const SocketAddress& name) const;

  /// Returns the cause if the team has failed, and otherwise Status::ok.
  Status status() const { return status_; }
  /// Notes the cause of a failure. If a cause was already noted, changes nothing and returns false. Needs no
  /// memory.
  bool note_failure(Status cause) {
    if (noted_ != Status::ok) return false;
    noted_ = cause;
    return true;
  }
  bool failing() const { return noted_ != Status::ok && !failure_spread_; }
  void set_failed() { status_ = noted_; }
  void set_failure_spread() { failure_spread_ = true; }
  /// Returns the members that this member must still notify of the failure.
  std::vector<Member>& unnotified() { return unnotified_; }

  std::deque<std::unique_ptr<Operation>>& operations() { return operations_; }
  Operation& begin(Schedule schedule);
  /// Returns the multicast group of the leaders of all nodes. Returns nullopt if this member is no leader, or
  /// if no operation has needed the group yet.
  std::optional<std::uint64_t> group() const { return group_; }
  void set_group(std::uint64_t group) { group_ = group; }
  /// Returns true once the team has made kBroadcastsBefore broadcasts. From then on a multicast group is
  /// worth opening, even for short broadcasts.
  bool broadcasts_often() const { return broadcasts_ == kBroadcastsBefore; }
  void count_broadcast() { broadcasts_ = std::min(broadcasts_ + 1, kBroadcastsBefore); }
  /// Returns the names of the leaders of all nodes.
  std::vector<SocketAddress> leaders() const;
  /// Returns true once all members have joined.
  bool complete() const { return complete_; }
  void set_complete() { complete_ = true; }

 private:
  std::uint64_t id_;
  std::vector<MemberAddress> members_;
  TeamLayout layout_;
  Status noted_ = Status::ok;   ///< the first cause of a failure
  Status status_ = Status::ok;  ///< equals noted_ once Collectives has begun to spread the failure
  bool failure_spread_ = false;
  std::vector<Member> unnotified_;
  bool complete_ = false;
  std::optional<std::uint64_t> group_;
  std::uint32_t broadcasts_ = 0;
  std::uint32_t next_ = 0;
  std::deque<std::unique_ptr<Operation>> operations_;
};

}  // namespace cluster::collective
