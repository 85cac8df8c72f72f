// The paths of one flow (docs/protocol.md 4.8, 4.9). An IP path is a rail of this side and an address of the
// peer. Beside it there may be an EtherType path with the same rail and address. Its frames have an EtherType
// of their own and bypass the host's IP input. Each path has its own validation, round trips, losses,
// congestion control and pace. PathManager says which paths there are, which of them carries the next frames,
// and which path an acknowledgement, a loss or a timeout concerns.
//
// Path 0 is the IP path of first contact and counts as validated. The other paths join once the peer has
// listed its addresses. A path carries data once the peer has answered a challenge over it. An address counts
// as the peer's only after the peer's engine has answered from there.
//
// Only frames of the same path count as overtaking a frame. But a path fails if nothing arrives on it for a
// retransmission timeout, although a frame that was sent later on another path has arrived. Then everything
// in flight on the failed path is lost at once. (A single IP path never fails.)
//
// Invariants: there are at most kPathsMax IP paths. Each leads to an address that the peer has listed and
// that this side does not have itself. Paths are never removed or moved, because outgoing frames refer to
// their addresses. An EtherType path and its IP path name each other as `companion` and have one address.
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
  TransmissionNumber last_burst_end;  ///< IP path: the last transmission that no later one may overtake
  bool link_full = false;             ///< the path's link takes no more frames in this turn
};

struct DeliveryEstimate {
  bool up = false;
  bool known = false;         ///< measured, and not long ago; unknown paths are tried
  Duration way{0};            ///< half of the shortest round trip
  Duration each{0};           ///< time that one more frame takes
  std::size_t in_flight = 0;  ///< frames
  std::size_t allowance = 0;  ///< frames that may leave now

  Duration delivery() const { return way + each * static_cast<std::int64_t>(in_flight + 1); }
};

/// Returns the number of the path for the next frames. Returns nothing if no path may send, or if waiting for
/// the best path is better. Pure.
std::optional<std::size_t> earliest_delivery(std::span<const DeliveryEstimate> paths);

/// A copy, for reports, of what this side knows about an IP path and the EtherType path beside it.
struct PathStats {
  std::size_t link = 0;    ///< number of this side's link
  SocketAddress to;        ///< the peer's address there
  Duration round_trip{0};  ///< smoothed, of the path used last; 0: not measured yet
  Duration reply_longest{0};
  std::size_t window = 0;     ///< frames that may be in flight at once
  std::size_t in_flight = 0;  ///< frames that are in flight
  bool up = true;             ///< validated
  bool ethertype = false;     ///< frames that leave alone take the EtherType path
};

class PathManager {
 public:
  /// `rails` are this side's interfaces by number of link. If empty, there is one unknown interface.
  PathManager(std::span<const Rail> rails, const link::Path& first, std::size_t window_max, Log& log);

  std::size_t size() const { return paths_.size(); }
  std::size_t ip_paths() const { return ip_paths_; }
  PathState& operator[](std::size_t number) { return *paths_[number]; }
  const PathState& operator[](std::size_t number) const { return *paths_[number]; }

  // --- which paths there are ---
  /// Sends the next frames of path 0 by another rail, since the peer has answered nothing yet.
  void try_next_rail();
  /// Returns the path of the next keep-alive: all paths in turn. While the peer has never answered (`met`
  /// false), every second keep-alive takes the rail of the peer's subnet. Many keep-alives may leave before
  /// try_next_rail() comes back to that rail.
  link::Path keep_alive_path(bool met);
  /// Adds further paths, once, when the peer has listed its addresses.
  void join(std::span<const SocketAddress> peer);
  /// If false, addresses beyond this side's subnets get no paths, since they may be anybody's (RFC 9000
  /// 21.5.3).
  void allow_everywhere(bool allowed) { everywhere_ = allowed; }
  /// Learns from frames of the session that the peer is reached at `from`. `ack_owed` says that the frames
  /// must be acknowledged.
  void learn(const link::Path& from, bool ack_owed, std::size_t frames = 1);
  const link::Path& reply_path() const;
  /// The least time in which an answer to a frame that leaves now can arrive.
  Duration min_reply_delay() const;
  /// Returns true while the peer's frames come over several paths: a gap does not mean a loss then.
  bool reordering_expected() const { return since_switch_ < kSinglePathArrivals; }

  // --- validation ---
  /// A path to challenge now, if one is due. Call on_challenge_sent() after the challenge.
  struct Challenge {
    std::size_t path = 0;
    link::Path to;
  };
  std::optional<Challenge> challenge_due(Time now) const;
  std::optional<Challenge> ethertype_challenge_due(Time now);
  void on_challenge_sent(Time now, std::size_t path);
  /// The peer has answered the question of time `asked`. If not its engine but only its host has answered,
  /// this counts on proven paths only.
  void on_response(Time now, Time asked, const link::Path& from, bool by_engine);
  std::span<const SocketAddress> validated_addresses() const { return validated_addresses_; }
  /// ICMP reports that a path does not reach the peer. Returns true if the error concerns that path alone:
  /// other paths work, and the error is not a closed port on a path that has reached the peer's process.
  bool on_path_error(Time now, const link::PathError& error);

  // --- choice ---
  /// How many frames may leave now on this IP path.
  struct Grant {
    std::size_t path = 0;
    std::size_t frames = 0;
  };
  /// Begins a new turn: links that were full may take frames again.
  void begin_turn();
  Grant select(Time now) const;
  /// Returns a path for a frame that was not acknowledged in time: a good path other than the last one, if
  /// there is one.
  Grant select_other(Time now, std::size_t path) const;
  /// Returns this IP path or the EtherType path beside it, for one new frame of at most kEthertypeFrameMax
  /// that leaves alone.
  std::size_t path_for_lone_frame(std::size_t ip);
  /// Notes that frames have left on this IP path that no later frame may overtake.
  void on_burst_sent(std::size_t ip, TransmissionNumber last) { paths_[ip]->last_burst_end = last; }
  /// Leaves the path out in this turn. Returns false if it was left out before.
  bool on_link_full(std::size_t ip) { return !std::exchange(paths_[ip]->link_full, true); }
  Time resume_at(Time now) const;
  /// Frames that may be in flight on all validated paths together.
  std::size_t window() const;
  /// Returns the next path for frames that are sent repeatedly, in turn. Takes validated paths, or, if there
  /// are none, paths that once were validated.
  const link::Path& next_validated();

  // --- loss recovery ---
  /// Notes that the frame whose latest transmission is `last`, on this path, is retransmitted as `next`. Call
  /// this before PathRecovery::on_sent(). `probe` says that the frame was not declared lost: a tail loss
  /// probe or a timeout retransmits it.
  void on_retransmit(std::size_t path, TransmissionNumber last, TransmissionNumber next, bool probe);
  /// Notes a zero window probe, which the peer reports as a spurious retransmission although it is none.
  void on_zero_window_probe(TransmissionNumber number) { remember({number, kNoPath, true}); }
  /// Call this after PathRecovery::on_frame_acked() of all frames that are acknowledged for the first time.
  void on_ack(Time now, const AckInfo& ack);
  /// Appends the frames that are lost by now. The loss of the PMTU probe does not count as congestion (RFC
  /// 8899 3).
  void detect_losses(Time now, std::vector<Sequence>& lost, std::optional<Sequence> pmtu_probe = {});
  /// Appends all frames in flight, which the peer has dropped. This says nothing about the paths.
  void take_back(std::vector<Sequence>& frames) {
    for (const auto& path : paths_) path->recovery.take_back(frames);
  }
  Time deadline() const;
  /// Notes that a frame sent on this path at `sent_at` was not acknowledged in time, and is retransmitted.
  void on_unanswered(Time now, std::size_t path, Time sent_at);
  /// Called when nothing was acknowledged for several retransmission timeouts.
  void on_persistent_timeout();
  /// Fails all EtherType paths: a frame or its acknowledgement was lost, and any of these paths may have lost
  /// it.
  void suspect_ethertype_paths(Time now);
  /// The reply time of the slowest path with frames in flight, for the retransmission timer. An unmeasured
  /// path counts as slowest.
  const RttEstimator& reply_time() const;
  /// Returns true if a path remembers this transmission of the frame.
  bool remembers(Sequence sequence, TransmissionNumber transmission) const;

  std::vector<PathStats> stats() const;
  std::size_t footprint() const;

 private:
  /// How many challenges go to the address that a rail was paired with, before other addresses are tried.
  static constexpr unsigned kPairedChallenges = 4;
  static constexpr unsigned kSinglePathArrivals = 64;
  static constexpr std::size_t kGrantMax = 8;  ///< frames to one path at once, if there are several
  /// A path fails only if nothing has arrived on it for at least this long: a scheduler can cause shorter
  /// delays.
  static constexpr Duration kPathFailureMin = 2ms;
  static constexpr std::size_t kRetransmissionsKept = 64;
  static constexpr std::uint8_t kNoPath = 0xff;

  struct Retransmission {
    TransmissionNumber number;
    std::uint8_t before = 0;  ///< path of the frame's previous transmission; kNoPath: zero window probe
    bool probe = false;
    bool spurious = false;
  };

  std::size_t add(const link::Path& to, bool validated);
  void add_ethertype(std::size_t ip);
  /// Returns the IP path with this rail and this address.
  std::optional<std::size_t> find(const link::Path& from) const;
  /// Makes the IP path, and the EtherType path beside it, lead to this address.
  void set_address(std::size_t ip, const link::Path& to);
  /// Returns the EtherType path beside an IP path if that is validated, else the IP path.
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
  std::vector<SocketAddress> peer_;  ///< addresses that the peer has listed and that this side may use
  std::vector<SocketAddress> validated_addresses_;
  bool joined_ = false;
  bool everywhere_ = true;
  std::size_t reply_ = 0;            ///< the IP path of the last arrival that needed an answer
  bool reply_by_ethertype_ = false;  ///< the last arrival came by the EtherType path beside it
  std::uint8_t tried_rail_ = 0;      ///< the last rail tried that is not on the peer's subnet
  std::size_t tries_ = 0;
  bool asked_home_ = false;
  unsigned since_switch_ = kSinglePathArrivals;  ///< arrivals since the path of arrivals last changed
  std::size_t next_validated_ = 0;
  std::optional<TransmissionNumber> largest_acked_;
  std::vector<Retransmission> retransmissions_;  ///< the last few, so that an idle flow stays small
};

}  // namespace cluster::multipath
