// The paths of one flow (docs/protocol.md 4.8, 4.9). An IP path is a rail of this side and an address of the peer. It may have an
// EtherType path beside it: the same two, but frames travel under an EtherType of their own and spare the host's IP input. Each path has
// validation, round trips, losses, congestion and pace of its own. The object says which paths there are, which of them carries the next
// frames, and which path an acknowledgement, a loss or a timeout concerns.
//
// Path 0 is the IP path of first contact and counts as validated. The others join once the peer has listed its addresses, and carry data
// once a challenge was answered over them. An address counts as the peer's only when its engine has answered from there.
//
// Overtaking counts only on one path. But a path fails if nothing arrives on it for a retransmission timeout, although something that was
// sent later on another path has arrived. Then everything in flight on it is lost at once. (An IP path that is the only one never fails.)
//
// Invariants: at most kPathsMax IP paths, each to a listed address that this side does not have, too. Paths are never removed nor moved,
// because frames that leave refer to their addresses. An EtherType path and its IP path name each other as `companion` and have one
// address.
#pragma once

#include <cstddef>
#include <cstdint>
#include <limits>
#include <memory>
#include <optional>
#include <span>
#include <utility>
#include <vector>

#include "base/environment.h"
#include "base/log.h"
#include "base/sequence.h"
#include "base/units.h"
#include "link/link.h"
#include "multipath/address_pairing.h"
#include "multipath/path_recovery.h"
#include "multipath/path_validator.h"

namespace cluster::multipath {

struct PathState {
  PathState(const link::Path& to, std::size_t window_max, bool validated)
      : address(to),
        recovery(window_max),
        validator(to.ethertype ? PathValidator::kEthertype : PathValidator::kIp, validated) {}

  bool is_ethertype() const { return address.ethertype; }

  static constexpr std::size_t kNone = std::numeric_limits<std::size_t>::max();

  link::Path address;
  PathRecovery recovery;
  PathValidator validator;
  std::size_t companion = kNone;
  TransmissionNumber last_burst_end;  ///< of an IP path: last transmission that no later one may overtake
  bool link_full = false;             ///< its link took no more in this turn
};

struct DeliveryEstimate {
  bool up = false;
  bool known = false;         ///< measured, and not long ago; a path that is not known is tried
  Duration way{0};            ///< half of the shortest round trip
  Duration each{0};           ///< one more frame
  std::size_t in_flight = 0;  ///< frames
  std::size_t allowance = 0;  ///< frames that may leave now

  Duration delivery() const { return way + each * static_cast<std::int64_t>(in_flight + 1); }
};

/// The number of the path for the next frames; nothing if none may send or waiting for the best is better. Pure.
std::optional<std::size_t> earliest_delivery(std::span<const DeliveryEstimate> paths);

/// A copy for reports of what is known of an IP path, the EtherType path beside it included.
struct PathStats {
  std::size_t link = 0;    ///< by which of this side's links
  SocketAddress to;        ///< the peer's address there
  Duration round_trip{0};  ///< smoothed, of the one that was used last; 0: not measured yet
  Duration reply_longest{0};
  std::size_t window = 0;     ///< frames that may be in flight at once...
  std::size_t in_flight = 0;  ///< ...and those that are
  bool up = true;             ///< validated
  bool ethertype = false;     ///< frames that leave alone take the EtherType path
};

class PathManager {
 public:
  /// `rails` are this side's interfaces by number of link; empty: one, of which nothing is known.
  PathManager(std::span<const Rail> rails, const link::Path& first, std::size_t window_max, Log& log);

  std::size_t size() const { return paths_.size(); }
  std::size_t ip_paths() const { return ip_paths_; }
  PathState& operator[](std::size_t number) { return *paths_[number]; }
  const PathState& operator[](std::size_t number) const { return *paths_[number]; }

  // --- which paths there are ---
  /// Nothing sent on path 0 was answered yet: the next frames leave by another rail.
  void try_next_rail();
  /// Where the next keep-alive goes: to each path in turn. While the peer has never answered (`met` false), every
  /// other one takes the rail of its subnet, since many may leave before try_next_rail() comes back to that rail.
  link::Path keep_alive_path(bool met);
  /// The peer has listed its addresses: adds further paths, once.
  void join(std::span<const SocketAddress> peer);
  /// False: addresses beyond this side's subnets, which may be anybody's, make no paths (RFC 9000 21.5.3).
  void allow_everywhere(bool allowed) { everywhere_ = allowed; }
  /// Frames of the session came this way: the peer is reached there. `ack_owed`: they must be acknowledged.
  void learn(const link::Path& from, bool ack_owed, std::size_t frames = 1);
  const link::Path& reply_path() const;
  /// The least time after which an answer to a frame that leaves now can arrive.
  Duration min_reply_delay() const;
  /// True while the peer's frames come over several paths: a gap does not mean a loss then.
  bool reordering_expected() const { return since_switch_ < kSinglePathArrivals; }

  // --- validation ---
  /// An IP path that is to be challenged, if one is due; on_challenge_sent() when it has been.
  struct Challenge {
    std::size_t path = 0;
    link::Path to;
  };
  std::optional<Challenge> challenge_due(Time now) const;
  std::optional<Challenge> ethertype_challenge_due(Time now);
  void on_challenge_sent(Time now, std::size_t path);
  /// The peer's engine has answered the question of time `asked`; or its host, which counts on proven paths only.
  void on_response(Time now, Time asked, const link::Path& from, bool by_engine);
  std::span<const SocketAddress> validated_addresses() const { return validated_addresses_; }
  /// ICMP reports that a path does not reach the peer. True if this concerns that path alone: other paths work, and
  /// ICMP does not say that the port of the peer's process is closed on a path that has reached the process.
  bool on_path_error(Time now, const link::PathError& error);

  // --- choice ---
  /// So many frames may leave now on this IP path.
  struct Grant {
    std::size_t path = 0;
    std::size_t frames = 0;
  };
  /// A new turn begins: links that were full may take frames again.
  void begin_turn();
  Grant select(Time now) const;
  /// For a frame that was not acknowledged in time: another path than the one that carried it, if there is a good one.
  Grant select_other(Time now, std::size_t path) const;
  /// For one new frame of at most kEthertypeFrameMax that leaves alone: this IP path, or the EtherType path beside it.
  std::size_t path_for_lone_frame(std::size_t ip);
  /// Frames left on this IP path that no later frame may overtake.
  void on_burst_sent(std::size_t ip, TransmissionNumber last) { paths_[ip]->last_burst_end = last; }
  /// The path is left out in this turn. False: it has been before.
  bool on_link_full(std::size_t ip) { return !std::exchange(paths_[ip]->link_full, true); }
  Time resume_at(Time now) const;
  /// Frames that may be in flight on all validated paths together.
  std::size_t window() const;
  /// For frames that are sent repeatedly: another path each time, of the validated ones, else of those that once were.
  const link::Path& next_validated();

  // --- loss recovery ---
  /// The frame whose latest transmission, on this path, is `last` is retransmitted as `next`: call before
  /// PathRecovery::on_sent(). `probe`: it was not declared lost; a tail loss probe or a timeout retransmits it.
  void on_retransmit(std::size_t path, TransmissionNumber last, TransmissionNumber next, bool probe);
  /// The peer will report this frame as a spurious retransmission, but it is none.
  void on_zero_window_probe(TransmissionNumber number) { remember({number, kNoPath, true}); }
  /// After PathRecovery::on_frame_acked() of all frames that are acknowledged for the first time.
  void on_ack(Time now, const AckInfo& ack);
  /// Appends the frames that are lost by now. Losing the PMTU probe says nothing of congestion (RFC 8899 3).
  void detect_losses(Time now, std::vector<Sequence>& lost, std::optional<Sequence> pmtu_probe = {});
  /// The peer has dropped all that is in flight, which says nothing of the paths: appends it.
  void take_back(std::vector<Sequence>& frames) {
    for (const auto& path : paths_) path->recovery.take_back(frames);
  }
  Time deadline() const;
  /// A frame that was sent on this path at `sent_at` was not acknowledged in time, and is retransmitted.
  void on_unanswered(Time now, std::size_t path, Time sent_at);
  /// Nothing at all was acknowledged for several retransmission timeouts.
  void on_persistent_timeout();
  /// A frame or its acknowledgement was lost, and any EtherType path may have lost it.
  void suspect_ethertype_paths(Time now);
  /// Of the slowest path with frames in flight, for the retransmission timer; an unmeasured one, if there is any.
  const RttEstimator& reply_time() const;
  /// True if this transmission of the frame is remembered by its path.
  bool remembers(Sequence sequence, TransmissionNumber transmission) const;

  std::vector<PathStats> stats() const;
  std::size_t footprint() const;

 private:
  /// Challenges that go to the address a rail was paired with, before others are tried.
  static constexpr unsigned kPairedChallenges = 4;
  static constexpr unsigned kSinglePathArrivals = 64;
  static constexpr std::size_t kGrantMax = 8;  ///< frames to one path at once, where there are several
  /// A path fails only after frames of other paths have arrived for this long: a scheduler can cause shorter delays.
  static constexpr Duration kPathFailureMin = 2ms;
  static constexpr std::size_t kRetransmissionsKept = 64;
  static constexpr std::uint8_t kNoPath = 0xff;

  struct Retransmission {
    TransmissionNumber number;
    std::uint8_t before = 0;  ///< path on which the frame had been sent before; kNoPath: a zero window probe
    bool probe = false;
    bool spurious = false;
  };

  std::size_t add(const link::Path& to, bool validated);
  void add_ethertype(std::size_t ip);
  /// The IP path by this rail to this address.
  std::optional<std::size_t> find(const link::Path& from) const;
  /// From now on the IP path, and the EtherType path beside it, lead to this address.
  void set_address(std::size_t ip, const link::Path& to);
  /// The EtherType path beside an IP path, if it is validated; else the IP path.
  std::size_t ethertype_or_ip(std::size_t ip) const;
  /// When a frame last left on an IP path or the EtherType path beside it.
  Time last_sent_at(std::size_t ip) const;
  void report(const PathState& path, PathValidator::Event event) const;
  void answer_over(std::size_t ip, std::size_t arrivals);
  link::Path challenge_address(const PathState& path) const;
  std::optional<std::size_t> path_of_response(const link::Path& from) const;

  DeliveryEstimate estimate(Time now, std::size_t ip) const;
  int rank(std::size_t path) const;
  std::size_t least_recent(std::size_t except) const;

  void credit_spurious(Time now, const AckInfo& ack);
  void credit_spurious(Time now, std::size_t path, std::size_t frames, bool probes);
  void remember(const Retransmission& one);
  Time fails_at(const PathState& path) const;
  void fail(Time now, PathState& path, std::vector<Sequence>& lost);

  std::span<const Rail> rails_;
  Log& log_;
  std::size_t window_max_;
  std::vector<std::unique_ptr<PathState>> paths_;
  std::size_t ip_paths_ = 0;
  std::vector<SocketAddress> peer_;  ///< where the peer may be reached, once it has listed its addresses
  std::vector<SocketAddress> validated_addresses_;
  bool joined_ = false;
  bool everywhere_ = true;
  std::size_t reply_ = 0;            ///< the IP path of the last arrival...
  bool reply_by_ethertype_ = false;  ///< ...or the EtherType path beside it
  std::uint8_t tried_rail_ = 0;      ///< the last rail tried that is not of the peer's subnet
  std::size_t tries_ = 0;
  bool asked_home_ = false;
  unsigned since_switch_ =
      kSinglePathArrivals;  ///< arrivals since the path last changed from one to the next
  std::size_t next_validated_ = 0;
  std::optional<TransmissionNumber> largest_acked_;
  std::vector<Retransmission> retransmissions_;  ///< the last ones; few, so that an idle flow stays small
};

}  // namespace cluster::multipath
