// The paths of one flow (docs/protocol.md 4.8, 4.9). An IP path consists of a rail of this side and an
// address of the peer. A path between two queue pairs counts as an IP path here (see is_verbs()). An IP path
// may have a companion: an EtherType path with the same rail and address. Frames on the EtherType path have
// the provider's own EtherType, and bypass the IP input of the receiving host. Each path has its own
// validation, round trips, losses, congestion control and pace. PathManager decides which paths exist, and
// which of them carries the next frames. It also decides which path an acknowledgement, a loss or a timeout
// concerns.
//
// Path 0 is the IP path of first contact and counts as validated. The other paths are added once the peer has
// listed its addresses. A path carries data once the peer has answered a challenge on it. An address counts
// as the peer's only after the peer's engine has answered from that address.
//
// Only a frame on the same path can overtake a frame. But a path fails if nothing has arrived on it for a
// retransmission timeout, although a later frame of another path has arrived. In this case, all frames in
// flight on the failed path are immediately declared lost. (A single IP path never fails.)
//
// Invariants: there are at most kPathsMax IP paths. Each path except path 0 leads to an address that the peer
// has listed and that this side does not have itself. Paths are never removed or moved, because outgoing
// frames refer to their addresses. If a host replaces one of its addresses, the paths to or from this address
// keep their round trips and windows. Their EtherType paths must be validated again. An EtherType path and
// its IP path name each other as `companion` and have the same address.
#pragma once

#include <algorithm>
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
#include "wire/opening.h"

namespace cluster::multipath {

struct PathState {
  PathState(const link::Path& to, std::size_t window_max, bool validated)
      : address(to),
        recovery(window_max),
        validator(to.ethertype ? PathValidator::kEthertype : PathValidator::kIp, validated) {}

  bool is_ethertype() const { return address.ethertype; }
  /// Returns true for a path between queue pairs. Such a path only complements IP paths: it carries the
  /// session's frames and the flow's challenges, and nothing else.
  bool is_verbs() const { return address.to.verbs(); }

  static constexpr std::size_t kNone = std::numeric_limits<std::size_t>::max();

  link::Path address;
  PathRecovery recovery;
  PathValidator validator;
  std::size_t companion = kNone;
  TransmissionNumber last_burst_end;  ///< on an IP path, no later transmission may overtake this one
  bool link_full = false;             ///< the path's link takes no more frames in this turn
  /// The longest frame that this path carries, or kNone if the path has no limit of its own.
  /// reliability/frame_size.h has the limits that all paths share.
  std::size_t frame_max = kNone;
  bool preferred = false;  ///< Rail::preferred
  static constexpr unsigned kMacFailuresMax = 2;
  /// How often frames were lost persistently that went to the learnt hardware address of a router.
  unsigned mac_failures = 0;
};

struct DeliveryEstimate {
  bool up = false;
  bool known = false;         ///< measured recently; if not, the path is tried
  Duration way{0};            ///< half of the shortest round trip
  Duration each{0};           ///< time that one more frame takes
  std::size_t in_flight = 0;  ///< frames in flight
  std::size_t allowance = 0;  ///< frames that may be sent now

  Duration delivery() const { return way + each * static_cast<std::int64_t>(in_flight + 1); }
};

/// Returns the number of the path for the next frames. Returns nothing if no path may send, or if it is
/// better to wait for the best path. This is a pure function.
std::optional<std::size_t> earliest_delivery(std::span<const DeliveryEstimate> paths);

/// A copy of the facts about an IP path and its EtherType path, for reports.
struct PathStats {
  std::size_t link = 0;    ///< number of this side's link
  SocketAddress to;        ///< the peer's address on this path
  Duration round_trip{0};  ///< smoothed, of the one of both paths that was used last; 0: not measured yet
  Duration reply_longest{0};
  std::size_t window = 0;     ///< frames that may be in flight at once
  std::size_t in_flight = 0;  ///< frames that are in flight
  bool up = true;             ///< validated
  bool ethertype = false;     ///< frames that are sent singly use the EtherType path
  SocketAddress relay{};      ///< through which the frames go now, or empty (link::Link::relay_to)
};

class PathManager {
 public:
  /// `rails` are this side's interfaces, indexed by the number of the link. If `rails` is empty, there is one
  /// interface, about which nothing is known.
  PathManager(std::span<const Rail> rails, const link::Path& first, std::size_t window_max, Log& log);

  std::size_t size() const { return paths_.size(); }
  std::size_t ip_paths() const { return ip_paths_; }
  PathState& operator[](std::size_t number) { return *paths_[number]; }
  const PathState& operator[](std::size_t number) const { return *paths_[number]; }

  // --- which paths there are ---
  /// Moves path 0 to another rail. Called while the peer has not answered anything yet.
  void try_next_rail();
  /// Returns the path for the next keep-alive. Keep-alives use the paths of next_validated() whose addresses
  /// are IP addresses, because the keep-alive responder of the peer does not read the queue pairs. If the
  /// peer has never answered (`met` is false), every second keep-alive uses the rail on the peer's subnet.
  /// Without this rule, many keep-alives might be sent before try_next_rail() returns to that rail.
  link::Path keep_alive_path(bool met);
  /// Adds further paths when the peer has listed its addresses. Only the first call with addresses has an
  /// effect.
  void join(std::span<const SocketAddress> peer, std::span<const wire::VerbsAddress> queue_pairs = {});
  /// If `allowed` is false, addresses outside this side's subnets get no paths, because they may belong to
  /// anyone (RFC 9000 21.5.3).
  void allow_everywhere(bool allowed) { everywhere_ = allowed; }
  /// Called for received frames of the session. They show that `from` leads to the peer. `ack_owed`: the
  /// frames must be acknowledged. `frames`: the number of frames.
  void learn(const link::Path& from, bool ack_owed, std::size_t frames = 1);
  /// Does the same as learn() for one frame that must be acknowledged. There must be only one IP path. `from`
  /// must be the address of this path or of its EtherType path.
  void learn_again(const link::Path& from) { reply_by_ethertype_ = from.ethertype; }
  const link::Path& reply_path() const;
  /// Returns two smoothed round trips. Within this time after this side has sent an acknowledgement, a frame
  /// may arrive that the peer sent before it received the acknowledgement.
  Duration min_reply_delay() const;
  /// Returns true while the peer's frames arrive on several paths. During this time, a gap in the sequences
  /// does not mean a loss.
  bool reordering_expected() const { return since_switch_ < kSinglePathArrivals; }

  // --- validation ---
  /// The path for a challenge that has to be sent now. After sending the challenge, call on_challenge_sent().
  struct Challenge {
    std::size_t path = 0;
    link::Path to;
  };
  std::optional<Challenge> challenge_due(Time now) const;
  std::optional<Challenge> ethertype_challenge_due(Time now);
  void on_challenge_sent(Time now, std::size_t path);
  /// Processes an answer of the peer to a frame that was sent at `asked`. If only the peer's host has
  /// answered, and not the peer's engine (`by_engine` is false), the answer counts only for an IP path that
  /// was validated before and is not announcing().
  void on_response(Time now, Time asked, const link::Path& from, bool by_engine);
  std::span<const SocketAddress> validated_addresses() const { return validated_addresses_; }
  /// Processes an error that reports that a path does not reach the peer: an ICMP error, or an error of a
  /// queue pair. Returns true if the error concerns only that path. With several IP paths, this holds for
  /// every error of a queue pair, and for an ICMP error if another path works. A closed port concerns all
  /// paths, though, if the path has reached the peer's process before.
  bool on_path_error(Time now, const link::PathError& error);

  // --- replaced addresses ---
  /// Called after the address of this side on this link was replaced. The peer has to learn the new address.
  void on_own_move(Time now, std::size_t link);
  /// Returns true if this side has a new address, and the peer has perhaps not learnt it yet.
  bool announcing() const;
  /// Returns true if frames may be sent to a peer at this address.
  bool may_use(const SocketAddress& address) const;
  /// Called after the peer has answered a challenge from `now_at`, which replaces the peer's address
  /// `before`.
  void on_peer_move(Time now, const SocketAddress& before, const link::Path& now_at);
  /// Called after the peer has replaced its queue pair `before`. The paths to it lead to the queue pair
  /// `after` from now on, and are validated again.
  void on_peer_queue_pair(Time now, const SocketAddress& before, const SocketAddress& after);

  // --- choice ---
  /// An IP path, and how many frames may be sent on it now.
  struct Grant {
    std::size_t path = 0;
    std::size_t frames = 0;
  };
  /// Begins a new turn: links that were full may take frames again.
  void begin_turn();
  Grant select(Time now) const;
  /// Returns the path for the retransmission of a frame that was sent on `path` and was not acknowledged in
  /// time. Prefers a path other than `path`, unless every other path is worse or has never worked.
  Grant select_other(Time now, std::size_t path) const;
  /// Returns the path for one new frame that is sent singly: the IP path `ip` or its EtherType path. The
  /// frame must not be too long for the EtherType path.
  std::size_t path_for_lone_frame(std::size_t ip);
  /// Records that frames up to `last` were sent on this IP path. No later frame may overtake them.
  void on_burst_sent(std::size_t ip, TransmissionNumber last) { paths_[ip]->last_burst_end = last; }
  /// Excludes the path for the rest of this turn, because its link is full. Returns false if it was already
  /// excluded.
  bool on_link_full(std::size_t ip) { return !std::exchange(paths_[ip]->link_full, true); }
  Time resume_at(Time now) const;
  /// Returns how many frames may be in flight on all IP paths together that are validated or announcing.
  std::size_t window() const;
  /// Returns the path for the next of several repeated frames. These frames use all validated IP paths in
  /// turn. If no path is validated now, they use the paths that were validated before.
  const link::Path& next_validated() { return next_validated(true); }
  /// Returns a path without a limit of its own (frame_max): `path` if it has no limit, otherwise the best
  /// path between IP addresses.
  std::size_t unlimited(std::size_t path) const;

  // --- loss recovery ---
  /// Records that a frame is retransmitted as transmission `next`. Its latest transmission was `last`, on the
  /// path `path`. `probe`: the frame was not declared lost, but is retransmitted as a tail loss probe or
  /// after a timeout. Call this before PathRecovery::on_sent().
  void on_retransmit(std::size_t path, TransmissionNumber last, TransmissionNumber next, bool probe);
  /// Records a zero window probe. The peer reports it as a spurious retransmission, although it is not one.
  void on_zero_window_probe(TransmissionNumber number) { remember({number, kNoPath, true}); }
  /// Notes frames that are acknowledged for the first time and were last sent on this path. This class passes
  /// the frames on to the path in on_ack() at the latest, and passes consecutive frames on together.
  void on_frames_acked(std::size_t path, const AckedFrame& frames) {
    if (path == acked_.path && acked_.frames.join(frames)) return;
    tell_acked();
    acked_ = {path, frames};
  }
  /// Processes an acknowledgement. Before this, call on_frames_acked() for all frames that it acknowledges.
  /// Only the last of several acknowledgements has to be processed.
  void on_ack(Time now, const AckInfo& ack);
  /// Declares overdue frames lost, and appends them to `lost`. The loss of the PMTU probe does not count as
  /// congestion (RFC 8899 3).
  void detect_losses(Time now, std::vector<Sequence>& lost, std::optional<Sequence> pmtu_probe = {});
  /// Called when the peer has dropped all frames in flight. Appends these frames to `frames`. The paths do
  /// not count as failed.
  void take_back(std::vector<Sequence>& frames) {
    for (const auto& path : paths_) path->recovery.take_back(frames);
  }
  Time deadline() const;
  /// Records that a frame that was sent on this path at `sent_at` was not acknowledged in time, and is
  /// retransmitted.
  void on_unanswered(Time now, std::size_t path, Time sent_at);
  /// Called when nothing was acknowledged for several retransmission timeouts.
  void on_persistent_timeout();
  /// Marks all EtherType paths as failed. A frame or its acknowledgement was lost, and any of these paths may
  /// have lost it.
  void suspect_ethertype_paths(Time now);
  /// Returns the reply time of the slowest path with frames in flight, for the retransmission timer. An
  /// unmeasured path counts as slowest.
  const RttEstimator& reply_time() const;
  /// Returns true if a path still has a record of this transmission of the frame.
  bool remembers(Sequence sequence, TransmissionNumber transmission) const;

  /// Returns true if a path between queue pairs is validated.
  bool has_queue_pair() const {
    return std::ranges::any_of(
        paths_, [](const auto& path) { return path->is_verbs() && path->validator.validated(); });
  }
  std::vector<PathStats> stats() const;
  std::size_t footprint() const;

 private:
  /// The first challenges, up to this number, go to the address that the rail was paired with. After that,
  /// other addresses are tried as well.
  static constexpr unsigned kPairedChallenges = 4;
  static constexpr unsigned kSinglePathArrivals = 64;
  static constexpr std::size_t kGrantMax = 8;  ///< frames on one path at a time, if there are several paths
  /// An IP path fails only if nothing has arrived on it for at least this time, because a scheduler can cause
  /// shorter delays.
  static constexpr Duration kPathFailureMin = 2ms;
  static constexpr std::size_t kRetransmissionsKept = 64;
  static constexpr std::uint8_t kNoPath = 0xff;

  struct Retransmission {
    TransmissionNumber number;
    std::uint8_t before = 0;  ///< path of the frame's previous transmission; kNoPath: zero window probe
    bool probe = false;
    bool spurious = false;
  };

  struct Acked {
    std::size_t path = 0;
    AckedFrame frames{.count = 0};
  };

  /// Returns how many of the rails have IP addresses. These rails come first.
  std::size_t ip_rails() const;
  const link::Path& next_validated(bool verbs);
  std::size_t limit_of(const link::Path& to) const;
  std::size_t add(const link::Path& to, bool validated);
  void add_ethertype(std::size_t ip);
  /// Returns the IP path with this rail and this address.
  std::optional<std::size_t> find(const link::Path& from) const;
  /// Sets the address of the IP path and of its EtherType path.
  void set_address(std::size_t ip, const link::Path& to);
  /// Returns the EtherType path of an IP path if it is validated, otherwise the IP path.
  std::size_t ethertype_or_ip(std::size_t ip) const;
  bool is_routed(const link::Path& path) const;
  /// Returns when a frame was last sent on an IP path or on its EtherType path.
  Time last_sent_at(std::size_t ip) const;
  void report(const PathState& path, PathValidator::Event event) const;
  void answer_over(std::size_t ip, std::size_t arrivals);
  link::Path challenge_address(const PathState& path) const;
  std::optional<std::size_t> path_of_response(const link::Path& from) const;

  DeliveryEstimate estimate(Time now, std::size_t ip) const;
  int rank(std::size_t path) const;
  std::size_t least_recent(std::size_t except) const;

  void tell_acked();
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
  std::vector<wire::VerbsAddress> queue_pairs_;  ///< the peer's queue pairs
  std::vector<SocketAddress> validated_addresses_;
  bool joined_ = false;
  bool everywhere_ = true;
  Acked acked_;                      ///< the last acknowledged frames, if their path does not know them yet
  std::size_t reply_ = 0;            ///< the IP path of the last arrival that needed an answer
  bool reply_by_ethertype_ = false;  ///< that arrival used the EtherType path of `reply_`
  std::uint8_t tried_rail_ = 0;      ///< the last rail tried that is not on the peer's subnet
  std::size_t tries_ = 0;
  bool asked_home_ = false;
  unsigned since_switch_ = kSinglePathArrivals;  ///< arrivals since the peer's frames last changed their path
  std::size_t next_validated_ = 0;
  std::optional<TransmissionNumber> largest_acked_;
  std::vector<Retransmission> retransmissions_;  ///< only the last few, so that an idle flow stays small
};

}  // namespace cluster::multipath
