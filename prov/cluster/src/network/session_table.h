// The sessions of one endpoint: which flow has which session id, and which epoch the next one gets (docs/protocol.md 2.2, 2.3).
//
// A session that a frame has asked for is half-open, because any process could have written that frame. Its number and its token go to the
// peer's address only. It carries nothing until a frame comes that is addressed to it and repeats the token, or until this side has
// something to send. Beside the session in use (`RemotePeer::flow`) a peer may have a pending one, after a frame that says that the peer
// has begun anew. Once the peer addresses the pending session, it takes the place of the other.
//
// While an operation is under way, this side sends its credit again to each peer from which nothing has come for kIdleBeforeReminder. The
// peer acknowledges that or, in a new incarnation, refuses it (remind_idle_peers).
#pragma once

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

  /// Null if this endpoint has no such session.
  RemotePeer* find(std::uint32_t session);
  /// Begins a session with the peer unless it has one.
  void begin(RemotePeer& peer, const link::Path& path) {
    if (peer.flow == nullptr) add(peer, make_flow(peer, path));
  }
  /// The same, and it becomes the peer's carrier unless there is one.
  void open(RemotePeer& peer, const link::Path& path);
  /// The session named to callers under the peer's name: the one there is, or a half-open one (of this number, if not 0).
  reliability::Flow& answering(Time now, RemotePeer& peer, const link::Path& path, std::uint32_t session = 0);
  /// So many sessions are half-open that those of unknown sources are not kept. For such a caller a flow is made to answer
  /// (build_flow with the first epoch), and made again by answering() when the caller names the session.
  bool crowded() const { return half_open_ >= kHalfOpenMax; }
  std::unique_ptr<reliability::Flow> build_flow(std::uint32_t session, const SocketAddress& name,
                                                std::uint64_t epoch, const link::Path& path);
  SessionSecrets& secrets() { return secrets_; }
  /// The one that is named to callers that claim to be the peer's next incarnation.
  reliability::Flow& pending(Time now, RemotePeer& peer, const link::Path& path);
  /// The peer's flow, its carrier from now on unless it has one, has an opening. A lost peer has come back.
  void on_answer(RemotePeer& peer);
  void drop_pending(RemotePeer& peer);
  /// The session in use is over. It is remembered, so that late frames do not open it again.
  void close(RemotePeer& peer);
  /// The pending session, if there is one, takes the place of the one that was closed.
  void promote_pending(RemotePeer& peer);
  /// Sessions from now on have larger epochs than this.
  void skip_epoch(std::uint64_t epoch);

  /// Answers to `from` that no session protects go to the peer's name: another endpoint does not hear them.
  link::Path reply_path(const SocketAddress& name, const link::Path& from) const;
  bool is_own(const SocketAddress& address) const;

  /// The peer answered a keep-alive frame or a path challenge.
  void on_alive(Time now, const wire::FrameView& view, const link::Path& from);
  /// The peer asks whether this path leads to the endpoint of its session.
  void on_path_challenge(const wire::FrameView& view, const link::Path& from);

  /// Idle peers may have to be reminded: a request is under way (a posted receive is one), or a session is half-open.
  bool reminder_wanted() const { return messenger_.under_way() || half_open_ != 0; }
  Time next_reminder() const { return next_reminder_; }
  void remind_idle_peers(Time now);

 private:
  static constexpr Duration kIdleBeforeReminder = 400ms;
  static constexpr Duration kReminderInterval = 200ms;
  /// While only receives from any sender wait; it limits how often an idle process wakes.
  static constexpr Duration kReminderIntervalIdle = 500ms;
  /// The same while a receive from any sender waits, which each peer may be about to serve; longer with many peers.
  static constexpr Duration kIdleBeforeWatch = 2s;
  static constexpr Duration kIdleBeforeWatchPerPeer = 20ms;
  /// An endpoint with many peers sends at most one reminder per this time.
  static constexpr Duration kReminderIntervalPerPeer = 2ms;
  static constexpr std::size_t kUnknownReminded = 100;  ///< in kReminderInterval
  /// Half-open sessions of unknown sources, some 5 KB each.
  static constexpr std::size_t kHalfOpenMax = 256;

  std::unique_ptr<reliability::Flow> make_flow(RemotePeer& peer, const link::Path& path,
                                               std::uint32_t session = 0);
  void use_carrier(RemotePeer& peer);
  void add(RemotePeer& peer, std::unique_ptr<reliability::Flow> flow);
  void drop_half_open(Time now);
  Time remind_if_idle(Time now, RemotePeer& peer, Duration idle, std::size_t& unknown_left);

  const NetworkParts& parts_;
  PeerTable& peers_;
  protocol::Messenger& messenger_;
  PeerReach& reach_;
  reliability::BodyPool bodies_;  ///< the memory of the frames that flows send
  reliability::Burst burst_;      ///< the frames of one call of a flow
  TxScheduler& tx_;
  std::unordered_map<std::uint32_t, RemotePeer*> sessions_;
  const Time started_;  ///< when the endpoint was opened
  SessionSecrets secrets_;
  std::uint64_t last_epoch_ = 0;
  std::size_t half_open_ = 0;  ///< sessions at the last count, and those since
  Time next_reminder_{};
};

}  // namespace cluster::network
