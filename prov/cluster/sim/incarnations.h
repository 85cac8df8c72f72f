// Which incarnation of a process runs on each host, which sessions it has announced to which peer, and what
// each has read of the other: taken from the frames that engines send and read. From this follows when an
// operation between two processes may end with an error: one of them ended, the network was interrupted for
// longer than the peer timeout, or the two had not met.
//
// An opening names no incarnation of the receiver, so it may reach another one than it was sent to, and the
// answer may come when that one has ended. Operations of such a pair may fail until the two have *met*: until
// each has read a frame of the other's present incarnation that names the session it announced last. What is
// started after that may not fail.
#pragma once

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
  std::uint32_t incarnation = kFirstIncarnation;  ///< of the peer, as the host knew it
  std::uint64_t moment = 0;  ///< counts the frames that all engines have read, and the beginnings of hosts
};

class Incarnations {
 public:
  explicit Incarnations(std::size_t hosts) : hosts_(hosts) {}

  void begins(HostNumber host, Time now, bool clock_went_back);
  void ends(HostNumber host) { hosts_[host].alive = false; }
  std::uint32_t of(HostNumber host) const { return hosts_[host].incarnation; }
  bool alive(HostNumber host) const { return hosts_[host].alive; }
  /// The present incarnation is silent for so long that peers that have not met it may consider it absent.
  void hides(HostNumber host);
  /// Interruptions of at least this length may last longer than two peers wait for each other.
  void expect_outages(Duration at_least) { outage_min_ = unmet_outage_min_ = at_least; }
  /// Interruptions last long only if they concern all hosts, which then wait for each other. But hosts that
  /// have not met may give each other up after so long: to such a host a peer that does not answer is none.
  void expect_reboots(Duration at_least) { unmet_outage_min_ = at_least; }
  /// The network begins or ends to carry frames between two hosts, in both directions.
  void connection_changed(HostNumber one, HostNumber other, bool connected, Time now);

  /// True if the network does not carry frames between two hosts now, in one of the directions, or has not at a moment since then.
  bool cut_off(HostNumber one, HostNumber other, Time since = kNever) const;

  /// An engine sends the opening of a session; it may have closed an earlier one.
  void session_announced(HostNumber self, HostNumber to, const wire::Opening& opening);
  /// An engine sends an opening, and nothing else, to that session.
  void introduction_sent(HostNumber self, HostNumber to, std::uint32_t session, Time now) const;
  /// An engine reads a frame of a flow. False: it is meant for an incarnation that has ended.
  bool frame_read(HostNumber at, const Packet& packet, const wire::FrameView& view, Time now);
  /// True if the frame was sent before the receiver's process began.
  bool is_stale(HostNumber at, const Packet& packet) const { return packet.sent_at < hosts_[at].began; }

  /// True if the incarnation of `host` that runs has read a frame of the one of `peer` that does, to its session: an answer
  /// to a forged call is to another.
  bool has_met(HostNumber host, HostNumber peer) const;
  /// The incarnation of `to` that `from` knows, which need not be the latest one.
  std::uint32_t known(HostNumber from, HostNumber to) const;
  std::uint64_t moment() const { return moment_; }
  /// An operation with a peer is started.
  OperationStart begin(HostNumber self, HostNumber peer) const { return {known(self, peer), moment_}; }
  /// An operation that was started then has ended with an error. False: it may not. Else the peer is lost to the host: until the host
  /// hears of it again, others end at once.
  bool operation_failed(HostNumber self, HostNumber peer, const OperationStart& started);
  /// True if an operation that was started then may end with an error.
  bool error_permitted(HostNumber self, HostNumber peer, const OperationStart& started) const;

 private:
  Duration outage_min(HostNumber one, HostNumber other) const {
    return has_met(one, other) && has_met(other, one) ? outage_min_ : unmet_outage_min_;
  }
  /// What is known of the frames from one host, `from`, to another, `to`.
  struct Lane {
    /// The latest incarnation of `from` that `to` has read a frame of, in its incarnation `known_by`.
    std::uint32_t known_incarnation = 0;
    std::uint32_t known_by = 0;
    /// The incarnation of `to` that read a frame meant for an earlier one.
    std::uint32_t stale_call_read = 0;
    /// The incarnation of `to` that first read a frame of `from` when the sender had ended.
    std::uint32_t met_ended_peer = 0;
    /// The latest incarnation of `from` that has named the session that `to` announced last, and when it
    /// first did.
    std::uint32_t proven_incarnation = 0;
    Time proven_time{};
    /// That session, and the first incarnation that named it: the session is with that one.
    std::uint32_t named = 0;
    std::uint32_t named_by = 0;
    /// That session, the living incarnation that named it, and the moment of the first frame that did.
    std::uint32_t peer_session = 0;
    std::uint32_t peer_incarnation = 0;
    std::uint64_t peer_heard_at = 0;
    /// The sessions that `from` has announced, and the incarnations that did.
    std::unordered_map<std::uint32_t, std::uint32_t> sessions;
    std::uint32_t last_session = 0;  ///< the one with the latest epoch
    std::uint64_t last_epoch = 0;
  };
  struct Host {
    std::uint32_t incarnation = 0;
    Time began{};
    std::uint64_t began_at = 0;  ///< the moment
    bool alive = false;
    bool hidden = false;
    std::vector<HostNumber> hidden_from;  ///< those that had not met it when it was hidden
    bool clock_went_back = false;
    bool clock_ever_went_back = false;
  };

  /// What the network did to a pair of hosts.
  struct Interruption {
    bool now = false;
    Time since{};
    Time until{};             ///< of the last one that is over
    bool was_outage = false;  ///< one has ended that was an outage
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
  std::unordered_map<Pair, std::uint32_t, PairHash> lost_;  ///< to the incarnation of `from`: `to`
  std::uint64_t moment_ = 0;
  std::unordered_map<Pair, Interruption, PairHash> interruptions_;  ///< `from` is the smaller number
  Duration outage_min_ = Duration::max();                           ///< of hosts that have met
  Duration unmet_outage_min_ = Duration::max();                     ///< of others
};

}  // namespace cluster::sim
