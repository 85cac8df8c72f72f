// The collective teams and operations of one endpoint. The first operation of a team is a barrier of its
// members. A message may arrive before this endpoint has joined the message's team. Then it waits here, a
// limited number for each team. Operations of a team run at the same time, and each has its own message tags.
//
// When a message of an operation ends with an error, or a member is lost, the team fails here for good. Its
// stored and future messages are dropped, and its receives are canceled. Each operation ends with an error
// once its buffers are free. Members that wait for another member must also hear of the failure. So each
// member that fails notifies the members at the distances 1, 2, 4, ... in both directions, and they do the
// same. The application may form another team of the remaining members.
//
// The protocol may complete messages at any time, even while operations are being posted. A completion is
// only noted; advance() continues from there at the end of a call or of a turn. Noting a completion or a
// failure never allocates. If memory runs out later, the next advance() continues.
#pragma once

#include <deque>
#include <memory>
#include <unordered_map>
#include <vector>

#include "collective/team.h"
#include "protocol/completion.h"
#include "protocol/ops.h"

namespace cluster::collective {

/// What collective operations need from their endpoint: messages to and from members, matched apart from the
/// application's. Results come back through protocol::CollectiveListener.
class TeamEndpoint {
 public:
  virtual ~TeamEndpoint() = default;
  /// Returns true if nodes can be reached by multicast.
  virtual bool has_multicast() const = 0;
  /// Opens a multicast group of these members, of which this endpoint is one, and returns the group's
  /// address. `key` is the same at all members.
  virtual std::uint64_t open_group(const std::vector<SocketAddress>& members, std::uint64_t key) = 0;
  /// Returns true once all members have joined the group. Until then nothing is sent to it.
  virtual bool group_joined(std::uint64_t group) const = 0;
  /// Counts one more operation that waits for a message of the group or, if `waits` is false, one fewer.
  virtual void expect(std::uint64_t group, bool waits) = 0;
  /// Closes the group. Messages sent to it before still arrive.
  virtual void close_group(std::uint64_t group) = 0;
  /// Returns ok if the endpoint has taken the message; the result goes to the CollectiveListener. Returns
  /// again if the caller must repeat the call after progress. Anything else is a refusal.
  virtual Status send(const protocol::SendOp& op) = 0;
  virtual Status receive(const protocol::RecvOp& op) = 0;
  /// Cancels a receive. If no message has matched it yet, it ends with Status::canceled.
  virtual void cancel(const void* context) = 0;
  /// Drops stored messages whose tag matches. Returns how many there were.
  virtual std::size_t discard(std::uint64_t tag, std::uint64_t ignore) = 0;
};

class Collectives final : public protocol::CollectiveListener {
 public:
  /// How many operations of one team may be under way. A further one gets Status::again.
  static constexpr std::size_t kOperationsMax = 256;

  explicit Collectives(TeamEndpoint& transport) : transport_(transport) {}

  /// `queue` gets the completions; null: nobody wants them. `joins`: this endpoint may join teams.
  void attach(protocol::CompletionQueue* queue, bool joins) {
    queue_ = queue;
    joins_ = joins;
  }
  /// `key` tells teams with the same members apart and is the same at all members. With key 0 the order of
  /// creation tells them apart.
  Team& create(std::vector<MemberAddress> members, Member self, std::uint64_t key = 0);
  /// Tells the listener when all members have joined or the join has failed, unless the team is left before.
  /// Call it right after create().
  void join(Team& team, JoinListener& listener);
  /// Finds a team by its identity. Returns null if this endpoint has no such team.
  Team* find(std::uint64_t id) const;
  /// Aborts the operations under way. Returns Status::again while a peer still reads a buffer of such an
  /// operation; repeat the call.
  Status leave(Team& team);
  Status start(Team& team, const Arguments& arguments, void* context, bool report);

  void sent(void* context, Status status) override;
  void received(void* context, Status status, std::size_t length) override;
  bool wanted(std::uint64_t tag, std::uint64_t data, bool member) override;
  /// Fails the teams of this member.
  void member_lost(const SocketAddress& name, Status cause) override;
  void advance() override;

 private:
  /// Messages kept for a team that this endpoint has not joined: as many as a join of a thousand members
  /// brings.
  static constexpr std::size_t kEarlyOfTeam = 64;
  static constexpr std::size_t kEarlyTeams = 1024;
  /// How many left teams are remembered, so that their late messages are dropped.
  static constexpr std::size_t kLeftTeams = 1024;

  /// A team that this endpoint has not joined, but whose messages have arrived.
  struct Early {
    std::uint64_t team;
    std::size_t messages;
    bool of_member;  ///< the first message came from a member of the address vector
  };

  void begin(Operation& operation);
  bool has_left(std::uint64_t id) const;
  /// Remembers the team as left: from now on its messages are dropped.
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
  std::unordered_map<std::uint64_t, std::uint64_t> instances_;  ///< teams created so far, by members and key
  std::deque<Early> early_;         ///< if full, the oldest of an unknown source is evicted, else the oldest
  std::deque<std::uint64_t> left_;  ///< the last teams that were left or evicted
  std::vector<std::uint64_t> evicted_;  ///< evicted early teams whose stored messages are still to be dropped
  TicketQueue outcomes_;
  TicketQueue blocked_;      ///< advance() issues them again
  std::size_t failing_ = 0;  ///< teams whose failure is noted but not spread yet
};

}  // namespace cluster::collective
