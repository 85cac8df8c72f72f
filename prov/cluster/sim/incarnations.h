// Knows which incarnation of a process runs on each host, which sessions it has announced to which peer, and
// what each process has read of the others. All this is taken from the frames that engines send and read.
// From it follows when an operation between two processes may end with an error: one of them ended, the
// network was interrupted for so long that they may give each other up, or the two had not met.
//
// An opening names no incarnation of the receiver. So it may reach another incarnation than the one to which
// it was sent, and the answer may arrive when the answering incarnation has ended. Operations of such a pair
// may fail until the two have *met*. They have met when each has read a frame of the other's present
// incarnation that names the session which the reader announced last. An operation that is started after
// that may not fail.
#pragma once

#include <optional>
#include <string>
#include <unordered_map>
#include <vector>

#include "sim/content.h"
#include "sim/failure.h"
#include "sim/host_pair.h"
#include "sim/sim_network.h"
#include "wire/admit.h"
#include "wire/opening.h"

namespace cluster::sim {

inline constexpr std::uint32_t kFirstIncarnation = 1;

/// When an operation with a peer was started.
struct OperationStart {
  std::uint32_t incarnation = kFirstIncarnation;  ///< of the peer, as far as the host knew
  std::uint64_t moment = 0;  ///< counts frames that engines have read, and processes that have begun
};

class Incarnations {
 public:
  explicit Incarnations(std::size_t hosts) : hosts_(hosts) {}

  void begins(HostNumber host, Time now, bool clock_went_back);
  void ends(HostNumber host) { hosts_[host].alive = false; }
  std::uint32_t of(HostNumber host) const { return hosts_[host].incarnation; }
  bool alive(HostNumber host) const { return hosts_[host].alive; }
  /// The present incarnation is silent for so long that peers that have not met it may regard it as absent.
  void hides(HostNumber host);
  /// After this call, an interruption of at least this length may be longer than two peers wait for each
  /// other.
  void expect_outages(Duration at_least) { outage_min_ = unmet_outage_min_ = at_least; }
  /// After this call, long interruptions concern all hosts at once, which then wait for each other. Only
  /// hosts that have not met may give each other up, after an interruption of at least this length. A host
  /// that has never heard from a peer does not know that the peer exists.
  void expect_reboots(Duration at_least) { unmet_outage_min_ = at_least; }
  /// After this call, two hosts may give each other up at any time.
  void expect_no_contact(HostNumber one, HostNumber other) { no_contact_ = {one, other}; }
  /// The network begins to carry frames between two hosts in both directions, or stops doing so.
  void connection_changed(HostNumber one, HostNumber other, bool connected, Time now);

  /// Returns true if the network does not carry frames between two hosts now, in at least one direction.
  /// Also returns true if that was so at any time after `since`.
  bool cut_off(HostNumber one, HostNumber other, Time since = kNever) const;

  /// An engine sends the opening of a session. It may have closed an earlier session with this peer.
  void session_announced(HostNumber self, HostNumber to, const wire::Opening& opening);
  /// An engine sends a frame to this session that contains an opening and nothing else. Throws if the engine
  /// should know that the session's incarnation has ended.
  void introduction_sent(HostNumber self, HostNumber to, std::uint32_t session, Time now) const;
  /// An engine reads a frame of a flow. Returns false if the frame is meant for an incarnation that has
  /// ended.
  bool frame_read(HostNumber at, const Packet& packet, const wire::FrameView& view, Time now);
  /// Returns true if the frame was sent before the receiver's process began.
  bool is_stale(HostNumber at, const Packet& packet) const { return packet.sent_at < hosts_[at].began; }

  /// Returns true if the present incarnation of `host` has read a frame of the present incarnation of `peer`
  /// that named the session which `host` had announced last. An answer to a forged call names another
  /// session, and does not count.
  bool has_met(HostNumber host, HostNumber peer) const;
  /// Returns the incarnation of `to` that `from` knows, which need not be the latest one. If `from` knows
  /// none, returns the latest one.
  std::uint32_t known(HostNumber from, HostNumber to) const;
  std::uint64_t moment() const { return moment_; }
  /// An operation with a peer is started.
  OperationStart begin(HostNumber self, HostNumber peer) const { return {known(self, peer), moment_}; }
  /// An operation with this start has ended with an error. Returns false if that is not permitted. Otherwise
  /// the peer is lost to the host: until the host hears from the peer again, all its operations with the
  /// peer may end at once.
  bool operation_failed(HostNumber self, HostNumber peer, const OperationStart& started);
  /// Returns true if an operation with this start may end with an error.
  bool error_permitted(HostNumber self, HostNumber peer, const OperationStart& started) const;

 private:
  bool lacks_contact(HostNumber one, HostNumber other) const {
    return no_contact_ && (no_contact_ == Pair{one, other} || no_contact_ == Pair{other, one});
  }
  Duration outage_min(HostNumber one, HostNumber other) const {
    return has_met(one, other) && has_met(other, one) ? outage_min_ : unmet_outage_min_;
  }
  /// What is known of the frames from one host, `from`, to another, `to`.
  struct Lane {
    /// The latest incarnation of `from` of which `to` has read a frame. The reader was the incarnation
    /// `known_by` of `to`.
    std::uint32_t known_incarnation = 0;
    std::uint32_t known_by = 0;
    /// The incarnation of `to` that read a frame which was meant for an earlier incarnation.
    std::uint32_t stale_call_read = 0;
    /// The incarnation of `to` that met an incarnation of `from` which had already ended.
    std::uint32_t met_ended_peer = 0;
    /// The latest incarnation of `from` that has named the session which `to` announced last, and when it
    /// first did so.
    std::uint32_t proven_incarnation = 0;
    Time proven_time{};
    /// The session that `to` had announced last when `from` named it, and the first incarnation of `from`
    /// that named it. The session is with this incarnation.
    std::uint32_t named = 0;
    std::uint32_t named_by = 0;
    /// The session that the living incarnation of `from` has named, this incarnation, and the moment of its
    /// first frame that named the session.
    std::uint32_t peer_session = 0;
    std::uint32_t peer_incarnation = 0;
    std::uint64_t peer_heard_at = 0;
    /// The sessions that `from` has announced, each with the incarnation that announced it.
    std::unordered_map<std::uint32_t, std::uint32_t> sessions;
    std::uint32_t last_session = 0;  ///< the session with the latest epoch
    std::uint64_t last_epoch = 0;
  };
  struct Host {
    std::uint32_t incarnation = 0;
    Time began{};
    std::uint64_t began_at = 0;  ///< the moment at which it began
    bool alive = false;
    bool hidden = false;
    std::vector<HostNumber> hidden_from;  ///< the hosts that had not met it when it was hidden
    bool clock_went_back = false;
    bool clock_ever_went_back = false;
  };

  /// What the network did to a pair of hosts.
  struct Interruption {
    bool now = false;
    Time since{};
    Time until{};             ///< end of the last interruption that is over
    bool was_outage = false;  ///< an interruption that is over was an outage
  };

  bool had_outage(HostNumber one, HostNumber other) const;
  bool may_be_given_up(HostNumber self, HostNumber peer) const;
  const Lane* lane(HostNumber from, HostNumber to) const;
  bool is_of_earlier_incarnation(HostNumber host, HostNumber to, std::uint32_t session) const;
  bool is_last_session(HostNumber host, HostNumber to, std::uint32_t session) const;
  bool session_uncertain(HostNumber host, HostNumber by) const;
  bool heard_by(HostNumber host, HostNumber from, std::uint64_t moment) const;

  std::vector<Host> hosts_;
  std::unordered_map<Pair, Lane, PairHash> lanes_;
  std::unordered_map<Pair, std::uint32_t, PairHash> lost_;  ///< the incarnation of `from` that lost `to`
  std::uint64_t moment_ = 0;
  std::optional<Pair> no_contact_;
  std::unordered_map<Pair, Interruption, PairHash> interruptions_;  ///< `from` is the smaller number
  Duration outage_min_ = Duration::max();                           ///< for hosts that have met
  Duration unmet_outage_min_ = Duration::max();                     ///< for hosts that have not met
};

}  // namespace cluster::sim
