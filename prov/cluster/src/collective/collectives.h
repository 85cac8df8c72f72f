// The collective teams and operations of one endpoint. The first operation of a team is a barrier of its members. A message that
// a member sends before another one has joined waits there, a few for each team. Operations of a team run at the same time; their
// messages have their own tags.
//
// When a message of an operation ends with an error, or a member is lost, the team fails here for good. Its messages that are
// stored or still to come are dropped, receives are canceled, and each operation ends with an error once its buffers are free.
// Members that wait for others than the lost one hear of it: each member that fails notifies those at the distances 1, 2, 4... in
// both directions, and these do the same. The application may make another team of the members that are left.
//
// The protocol may complete messages at any time, also while operations are being posted. Completions are only noted, and
// advance() continues from there at the end of a call or of a turn. Noting a completion, or a failure, never allocates. If memory
// runs out afterwards, the next advance() continues.
#pragma once

#include <deque>
#include <memory>
#include <unordered_map>
#include <vector>

#include "collective/team.h"
#include "protocol/completion.h"
#include "protocol/ops.h"

namespace cluster::collective {

/// What collective operations need from their endpoint: messages to and from members, with a matching of their own.
/// Outcomes come back through protocol::CollectiveListener.
class TeamEndpoint {
 public:
  virtual ~TeamEndpoint() = default;
  /// Nodes can be reached by multicast.
  virtual bool has_multicast() const = 0;
  /// A group of these members, one of which is this one; `key` is the same at all of them. Returns its address.
  virtual std::uint64_t open_group(const std::vector<SocketAddress>& members, std::uint64_t key) = 0;
  /// All of them have joined it: until then nothing is sent to it.
  virtual bool group_joined(std::uint64_t group) const = 0;
  /// One more operation waits for something of it, or (`waits` false) one less.
  virtual void expect(std::uint64_t group, bool waits) = 0;
  /// What was sent to it still arrives.
  virtual void close_group(std::uint64_t group) = 0;
  /// ok: taken, its outcome goes to the CollectiveListener; again: repeat after progress; else refused.
  virtual Status send(const protocol::SendOp& op) = 0;
  virtual Status receive(const protocol::RecvOp& op) = 0;
  /// A receive that no message has matched yet ends with Status::canceled.
  virtual void cancel(const void* context) = 0;
  /// Throws away stored messages whose tag matches; how many there were.
  virtual std::size_t discard(std::uint64_t tag, std::uint64_t ignore) = 0;
};

class Collectives final : public protocol::CollectiveListener {
 public:
  /// Operations of one team that may be under way; more get Status::again.
  static constexpr std::size_t kOperationsMax = 256;

  explicit Collectives(TeamEndpoint& transport) : transport_(transport) {}

  /// `queue` gets the completions; null: there are none. `joins`: this endpoint may join teams.
  void attach(protocol::CompletionQueue* queue, bool joins) {
    queue_ = queue;
    joins_ = joins;
  }
  /// `key` tells teams of the same members apart, at all of them; 0: the order in which they are made does.
  Team& create(std::vector<MemberAddress> members, Member self, std::uint64_t key = 0);
  /// Tells the listener when all members have joined, or the join has failed, unless the team is left before. Comes right after
  /// create().
  void join(Team& team, JoinListener& listener);
  /// By its identity; null if there is no such team here.
  Team* find(std::uint64_t id) const;
  /// Aborts the operations under way. Status::again: a peer still reads a buffer of one; repeat the call.
  Status leave(Team& team);
  Status start(Team& team, const Arguments& arguments, void* context, bool report);

  void sent(void* context, Status status) override;
  void received(void* context, Status status, std::size_t length) override;
  bool wanted(std::uint64_t tag, std::uint64_t data, bool member) override;
  /// The teams of this member fail.
  void member_lost(const SocketAddress& name, Status cause) override;
  void advance() override;

 private:
  /// Messages kept for a team that this endpoint has not joined: what the join of a thousand members brings.
  static constexpr std::size_t kEarlyOfTeam = 64;
  static constexpr std::size_t kEarlyTeams = 1024;
  /// Teams whose late messages are dropped.
  static constexpr std::size_t kLeftTeams = 1024;

  /// A team that this endpoint has not joined, and for which messages have come.
  struct Early {
    std::uint64_t team;
    std::size_t messages;
    bool of_member;  ///< the first came from a member of the address vector
  };

  void begin(Operation& operation);
  bool has_left(std::uint64_t id) const;
  /// From now on messages of this team are dropped.
  void forget(std::uint64_t id);
  void issue(Ticket& ticket);
  void issue_blocked();
  void settle(Ticket& ticket);
  void note_failure(Team& team, Status cause);
  void spread_failures();
  void fail(Team& team);
  void notify_neighbors(Team& team);
  void finish_operations(Team& team);
  void report(const Operation& operation, Status status);

  TeamEndpoint& transport_;
  protocol::CompletionQueue* queue_ = nullptr;
  bool joins_ = false;
  std::unordered_map<std::uint64_t, std::unique_ptr<Team>> teams_;
  std::unordered_map<std::uint64_t, std::uint64_t> instances_;  ///< joins so far, by members
  std::deque<Early> early_;  ///< the oldest of an unknown source gives way to a new one, else the oldest
  std::deque<std::uint64_t> left_;      ///< the last teams that were left, or never joined
  std::vector<std::uint64_t> evicted_;  ///< early teams that gave way; messages of theirs are stored
  TicketQueue outcomes_;
  TicketQueue blocked_;      ///< issued again by advance()
  std::size_t failing_ = 0;  ///< teams whose failure was noted and not spread yet
};

}  // namespace cluster::collective
