// The sessions of one endpoint: which flow has which session id, and which epoch the next one gets.
//
// A session belongs to one incarnation of a peer. Beside the session in use (`Peer::flow`) a peer may have a
// pending one: a frame said that the peer has begun anew, which any process could have written. The session
// that was made for it is named to the peer's address only (a challenge, as in RFC 9000, 8.2); when a frame
// comes that is addressed to it, it is validated and takes the place of the other.
//
// Timers: while an operation is under way, or a session is not validated, each peer from which nothing has
// come for kIdleBeforeReminder is sent its credit again each kReminderInterval (longer with many peers): it either acknowledges that
// or, in a new incarnation, refuses it (remind_idle_peers). A pending session that is not validated within the
// peer timeout is dropped.
#pragma once

#include <cstdint>
#include <memory>
#include <unordered_map>

#include "engine/engine_parts.h"
#include "engine/peer_table.h"
#include "engine/tx_scheduler.h"
#include "protocol/messenger.h"

namespace cluster::engine {

class SessionTable {
 public:
  SessionTable(const EngineParts& parts, PeerTable& peers, protocol::Messenger& messenger, TxScheduler& tx);

  /// Null if this endpoint has no such session.
  Peer* find(std::uint32_t session);
  /// Opens a session to the peer, which becomes its carrier unless it has one.
  void open(Peer& peer, const link::Path& path);
  /// The peer called: its session is not validated before a frame is addressed to it.
  void accept(Time now, Peer& peer, const link::Path& path);
  /// A frame with an opening has come in the peer's flow: if the peer was lost, it has come back.
  void on_answer(Peer& peer);
  void add_pending(Time now, Peer& peer, const link::Path& path);
  void drop_pending(Peer& peer);
  /// The session in use is over. It is remembered, so that late frames do not open it again.
  void close(Peer& peer);
  /// The pending session, if there is one that is not over, comes into use.
  void promote_pending(Peer& peer);
  /// Sessions from now on have larger epochs than this.
  void skip_epoch(std::uint64_t epoch);
  /// When the endpoint was opened.
  Time started() const { return started_; }

  /// Answers to `from` that no session protects go to the peer's name: another endpoint does not hear them.
  link::Path reply_path(const Peer& peer, const link::Path& from) const;
  bool is_own(const SocketAddress& address) const;

  /// The peer answered a keep-alive frame or a path challenge.
  void on_alive(Time now, const wire::FrameView& view, const link::Path& from);
  /// The peer asks whether this path leads to the endpoint of its session.
  void on_path_challenge(const wire::FrameView& view, const link::Path& from);

  /// True if idle peers may have to be reminded: some request is under way (a posted receive is one), or
  /// some session is not validated. remind_idle_peers() looks which peers are waited for.
  bool reminder_wanted() const { return messenger_.under_way() || unvalidated_; }
  Time next_reminder() const { return next_reminder_; }
  void remind_idle_peers(Time now);

 private:
  static constexpr Duration kIdleBeforeReminder = 400ms;
  static constexpr Duration kReminderInterval = 200ms;
  /// While only receives from any sender wait: an idle process is woken no more often than that.
  static constexpr Duration kReminderIntervalIdle = 500ms;
  /// The same while a receive from any sender waits, which each peer may be about to serve; longer with many peers.
  static constexpr Duration kIdleBeforeWatch = 2s;
  static constexpr Duration kIdleBeforeWatchPerPeer = 20ms;
  /// Reminders of an endpoint with many peers take no more than so many frames a second (1 / this).
  static constexpr Duration kReminderIntervalPerPeer = 2ms;

  std::unique_ptr<reliability::Flow> make_flow(Peer& peer, const link::Path& path);
  void use_carrier(Peer& peer);
  void use(Peer& peer, std::unique_ptr<reliability::Flow> flow);
  std::uint64_t next_epoch(Time now);
  void remind_if_idle(Time now, Peer& peer, Duration idle = kIdleBeforeReminder);

  const EngineParts& parts_;
  PeerTable& peers_;
  protocol::Messenger& messenger_;
  TxScheduler& tx_;
  std::unordered_map<std::uint32_t, Peer*> sessions_;
  const Time started_;
  std::uint64_t last_epoch_ = 0;
  bool unvalidated_ = false;  ///< some session has not been validated yet
  Time next_reminder_{};
};

}  // namespace cluster::engine
