// The sessions of one endpoint. The table knows which flow has which session number, and which epoch the next
// session gets (docs/protocol.md 2.2, 2.3).
//
// If a frame asks for a session, the session is half-open at first, because any process can send such a
// frame. The number and the token of the session go to the peer's address only. No data is sent in the
// session until a frame names it and repeats the token, or until this side has something to send. If a frame
// claims that the peer has restarted, the peer gets a pending session beside the session in use
// (`RemotePeer::flow`). The pending session replaces the session in use once a frame from the peer names the
// pending session.
//
// If an operation waits for a peer that has been silent for a while, this side repeats its credit to the
// peer. The peer acknowledges the credit. If the peer has restarted, it refuses the credit instead
// (remind_idle_peers).
#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <unordered_map>

#include "network/network_parts.h"
#include "network/session_secrets.h"
#include "network/tx_scheduler.h"
#include "protocol/messenger.h"
#include "reliability/frame_body.h"
#include "reliability/session_frame.h"

namespace cluster::network {

class SessionTable {
 public:
  SessionTable(const NetworkParts& parts, PeerTable& peers, protocol::Messenger& messenger, PeerReach& reach,
               TxScheduler& tx);

  /// Returns the peer of the session, or null if this endpoint has no such session.
  RemotePeer* find(std::uint32_t session);
  /// Begins a session with the peer unless the peer already has one.
  void begin(RemotePeer& peer, const link::Path& path) {
    if (peer.flow == nullptr) add(peer, make_flow(peer, path));
  }
  /// Like begin(), but the session also becomes the peer's carrier unless the peer already has one.
  void open(RemotePeer& peer, const link::Path& path);
  /// Returns the flow that answers callers under the peer's name. It is the existing flow, or the flow of a
  /// new half-open session. `session`: the number of a new session, or 0 for a random one.
  reliability::Flow& answering(Time now, RemotePeer& peer, const link::Path& path, std::uint32_t session = 0);
  /// Returns true if the endpoint stores no further half-open sessions for unknown sources, because it has
  /// too many. Instead, it answers a further caller with a temporary flow (build_flow() with the first
  /// epoch). When the caller names the session, answering() creates the flow again.
  bool crowded() const { return half_open_ >= kHalfOpenMax; }
  std::unique_ptr<reliability::Flow> build_flow(std::uint32_t session, const SocketAddress& name,
                                                std::uint64_t epoch, const link::Path& path);
  SessionSecrets& secrets() { return secrets_; }
  /// Returns sessions of members whose numbers lack the mark of members, because the peer became a member
  /// after its session had begun. If there are more than the array holds, returns some of them.
  std::array<std::uint32_t, link::Thinning::kSessionsMax> members_without_mark() const;
  /// Returns the flow that answers callers that claim to be the peer's next incarnation.
  reliability::Flow& pending(Time now, RemotePeer& peer, const link::Path& path);
  /// Called when the peer's flow has received the peer's opening. The flow becomes the peer's carrier unless
  /// the peer already has one. If the peer was lost, it is reachable again.
  void on_answer(RemotePeer& peer);
  void drop_pending(RemotePeer& peer);
  /// Closes the session in use. Remembers its epoch, so that late frames do not open it again.
  void close(RemotePeer& peer);
  /// Called after the session in use was closed. If there is a pending session, puts it into use.
  void promote_pending(RemotePeer& peer);
  /// Makes sure that later sessions get larger epochs than `epoch`.
  void skip_epoch(std::uint64_t epoch);

  /// Returns the path for an answer that belongs to no session. `from`: where the answered frame came from.
  /// The path leads to an address of the peer `name`, so that no other endpoint receives the answer.
  link::Path reply_path(const SocketAddress& name, const link::Path& from) const;
  bool is_own(const SocketAddress& address) const;

  /// Processes the peer's answer to a keep-alive or a path challenge.
  void on_alive(Time now, const wire::FrameView& view, const link::Path& from);
  /// Processes a segment of the kind new_queue_pair: the peer has another queue pair than its opening says.
  void on_new_queue_pair(Time now, RemotePeer& peer, const wire::Segment& segment);
  /// Tells all peers that this side has replaced the queue pair with this number in its openings. A peer that
  /// does not carry the session yet is told later.
  void announce_queue_pair(std::size_t number, const SocketAddress& queue_pair);
  /// Answers a peer that asks whether this path leads to the endpoint of its session.
  void on_path_challenge(Time now, const wire::FrameView& view, const link::Path& from);

  /// Returns true if remind_idle_peers() may have work: an operation is in progress (for example a posted
  /// receive), or a session is half-open.
  bool reminder_wanted() const { return messenger_.under_way() || half_open_ != 0; }
  Time next_reminder() const { return next_reminder_; }
  void remind_idle_peers(Time now);

 private:
  static constexpr Duration kIdleBeforeReminder = 400ms;
  static constexpr Duration kReminderInterval = 200ms;
  /// The interval between reminders while the only pending operations are receives from any sender. This
  /// interval limits how often an idle process wakes.
  static constexpr Duration kReminderIntervalIdle = 500ms;
  /// The idle time before a reminder to a peer for which only a receive from any sender waits. With many
  /// peers this time is longer.
  static constexpr Duration kIdleBeforeWatch = 2s;
  static constexpr Duration kIdleBeforeWatchPerPeer = 20ms;
  /// The interval between reminders is at least this time, multiplied by the number of members.
  static constexpr Duration kReminderIntervalPerPeer = 2ms;
  /// The largest number of unknown peers that one call of remind_idle_peers() reminds.
  static constexpr std::size_t kUnknownReminded = 100;
  /// The largest number of half-open sessions that this endpoint stores for unknown sources. Each takes about
  /// 5 KB.
  static constexpr std::size_t kHalfOpenMax = 256;

  std::unique_ptr<reliability::Flow> make_flow(RemotePeer& peer, const link::Path& path,
                                               std::uint32_t session = 0);
  void use_carrier(RemotePeer& peer);
  void note_queue_pairs(const RemotePeer& peer);
  void tell_queue_pairs(RemotePeer& peer);
  void add_aliases(RemotePeer& peer);
  void add(RemotePeer& peer, std::unique_ptr<reliability::Flow> flow);
  void drop_half_open(Time now);
  Time remind_if_idle(Time now, RemotePeer& peer, Duration idle, std::size_t& unknown_left);

  const NetworkParts& parts_;
  PeerTable& peers_;
  protocol::Messenger& messenger_;
  PeerReach& reach_;
  reliability::BodyPool bodies_;  ///< the memory of the frames that flows send
  reliability::Burst burst_;      ///< the frames that a flow sends in one call
  TxScheduler& tx_;
  std::unordered_map<std::uint32_t, RemotePeer*> sessions_;
  const Time started_;  ///< when the endpoint was opened
  SessionSecrets secrets_;
  std::uint64_t last_epoch_ = 0;
  std::size_t half_open_ = 0;  ///< half-open sessions at the last count, plus new ones since then
  Time next_reminder_{};
};

}  // namespace cluster::network
