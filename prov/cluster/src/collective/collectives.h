// The collective teams and operations of one endpoint. The first operation of a team is a barrier of its
// members. A message may arrive before this endpoint has joined the message's team. In this case the endpoint
// stores the message, up to a limit for each team. Operations of a team run concurrently, and each has its
// own message tags.
//
// If a message of an operation ends with an error, or a member is lost, the team fails at this endpoint for
// good. The endpoint drops the team's stored and future messages, and cancels the team's receives. Each
// operation ends with an error once the protocol no longer uses the operation's buffers. Every member must
// learn of the failure, because any member may wait for any other. Therefore a member at which the team fails
// notifies the members that are 1, 2, 4, ... positions before and after it in the team. The team then fails
// at these members too, and they notify further members. The application may form a new team of the remaining
// members.
//
// The protocol may complete a message at any time, even while an operation is being posted. At that moment
// this object only notes the completion. At the end of a call or of a turn, advance() continues the
// operation. Noting a completion or a failure needs no memory. If memory is short during advance(), the next
// call of advance() continues.
#pragma once

#include <deque>
#include <memory>
#include <unordered_map>
#include <vector>

#include "collective/team.h"
#include "protocol/completion.h"
#include "protocol/ops.h"

namespace cluster::collective {

/// The endpoint, as collective operations see it. Messages to and from members never match receives of the
/// application. The endpoint reports results through protocol::InternalListener.
class TeamEndpoint {
 public:
  virtual ~TeamEndpoint() = default;
  /// Returns true if this endpoint can use multicast.
  virtual bool has_multicast() const = 0;
  /// Opens a multicast group of these members, one of which must be this endpoint. Returns the address of the
  /// group. `key` must be the same on all members.
  virtual std::uint64_t open_group(const std::vector<SocketAddress>& members, std::uint64_t key) = 0;
  /// Returns true once all members have joined the group. Until then, the caller must not send to the group.
  virtual bool group_joined(std::uint64_t group) const = 0;
  /// Counts the operations that wait for a message of the group. If `waits` is true, adds one operation,
  /// otherwise removes one.
  virtual void expect(std::uint64_t group, bool waits) = 0;
  /// Closes the group. Messages already sent to the group still arrive.
  virtual void close_group(std::uint64_t group) = 0;
  /// Sends a message. Returns Status::ok if the endpoint has accepted the message. The endpoint then tells
  /// the InternalListener the result later. Returns Status::again if the caller must send the message again
  /// later. Any other status is a failure.
  virtual Status send(const protocol::SendOp& op) = 0;
  virtual Status receive(const protocol::RecvOp& op) = 0;
  /// Cancels the receive with this context. If no message has matched it yet, the receive ends with
  /// Status::canceled.
  virtual void cancel(const void* context) = 0;
  /// Drops the stored messages whose tag equals `tag` except for the bits in `ignore`. Returns their number.
  virtual std::size_t discard(std::uint64_t tag, std::uint64_t ignore) = 0;
};

class Collectives final : public protocol::InternalListener {
 public:
  /// The limit on concurrent operations of one team. At the limit, start() returns Status::again.
  static constexpr std::size_t kOperationsMax = 256;

  explicit Collectives(TeamEndpoint& transport) : transport_(transport) {}

  /// `queue`: where completions go, or null if the application wants none. `joins`: true if this endpoint may
  /// join teams.
  void attach(protocol::CompletionQueue* queue, bool joins) {
    queue_ = queue;
    joins_ = joins;
  }
  /// Creates a team. `key` distinguishes teams with the same members, and must be the same on all members.
  /// The order of their creation distinguishes teams with the same members and the same key.
  Team& create(std::vector<MemberAddress> members, Member self, std::uint64_t key = 0);
  /// Begins to join the team. When all members have joined or the join has failed, tells the listener, unless
  /// leave() was called before. The caller must call join() right after create().
  void join(Team& team, JoinListener& listener);
  /// Returns the team with this identity, or null if this endpoint has no such team.
  Team* find(std::uint64_t id) const;
  /// Aborts all operations of the team, and removes the team. Returns Status::again while a message of an
  /// operation has no result, because the buffer of this message is still in use. Also returns Status::again
  /// while a member is not notified of the failure. The caller must then call leave() again.
  Status leave(Team& team);
  Status start(Team& team, const Arguments& arguments, void* context, bool report);

  void sent(void* context, Status status) override;
  void received(void* context, Status status, std::size_t length) override;
  bool wanted(std::uint64_t tag, std::uint64_t data, bool member) override;
  /// Makes all teams that contain this member fail.
  void member_lost(const SocketAddress& name, Status cause) override;
  void advance() override;

 private:
  /// The limit on stored messages of a team that this endpoint has not joined. During a join of a thousand
  /// members, no member receives more messages than this.
  static constexpr std::size_t kEarlyOfTeam = 64;
  static constexpr std::size_t kEarlyTeams = 1024;
  /// The endpoint remembers this number of left or evicted teams, so that it drops their late messages.
  static constexpr std::size_t kLeftTeams = 1024;

  /// A team that this endpoint has not joined yet, although messages of the team have arrived.
  struct Early {
    std::uint64_t team;
    std::size_t messages;
    bool of_member;  ///< true if the sender of the first message is in the address vector
  };

  void begin(Operation& operation);
  bool has_left(std::uint64_t id) const;
  /// Remembers that the endpoint has left the team or has evicted its messages. The endpoint then drops all
  /// later messages of the team.
  void forget(std::uint64_t id);
  void issue(Ticket& ticket);
  void issue_blocked();
  void settle(Ticket& ticket);
  void note_failure(Team& team, Status cause);
  void spread_failures();
  void fail(Team& team);
  void notify(Team& team);
  void notify_again();
  void finish_operations(Team& team);
  void report(const Operation& operation, Status status);

  TeamEndpoint& transport_;
  protocol::CompletionQueue* queue_ = nullptr;
  bool joins_ = false;
  std::unordered_map<std::uint64_t, std::unique_ptr<Team>> teams_;
  /// For each combination of members and key: the number of teams created so far.
  std::unordered_map<std::uint64_t, std::uint64_t> instances_;
  /// If the list is full, the oldest entry with `of_member` false is evicted. If there is none, the oldest
  /// entry is evicted, but only to make room for a message of a sender in the address vector.
  std::deque<Early> early_;
  std::deque<std::uint64_t> left_;  ///< the teams that were left or evicted most recently
  /// Evicted entries of `early_`, until advance() drops their stored messages.
  std::vector<std::uint64_t> evicted_;
  TicketQueue outcomes_;
  TicketQueue blocked_;           ///< steps that advance() issues again
  std::size_t failing_ = 0;       ///< number of teams with a failure that is noted but not spread yet
  bool notices_blocked_ = false;  ///< a team may have members that advance() must still notify
};

}  // namespace cluster::collective
