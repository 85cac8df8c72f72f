// The paths of one flow (docs/protocol.md 4.8, 4.9): which there are, where they lead, which of them are validated.
// Path 0 is the IP path of first contact and counts as validated; the others join once the peer has listed the
// addresses under which it can be reached, and are used once a challenge was answered over them (path_validator.h).
// scheduler() chooses what they carry; recovery() knows what became of it.
//
// An address that the peer lists need not be the peer's: another host may have it, too (private networks), or the
// peer lists it to divert traffic. It counts as the peer's only when its engine has answered from there (RFC 9000
// section 8, address validation); validated_addresses() are those.
//
// An answer takes the path by which its frame came, since that path has just worked.
//
// Invariants: at most kPathsMax IP paths, each by a rail of this side to a listed address; an address that
// this side has, too, is no path. join() takes effect once.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "base/log.h"
#include "link/link.h"
#include "multipath/multipath_recovery.h"
#include "multipath/path_scheduler.h"
#include "multipath/path_state.h"

namespace cluster::multipath {

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

  PathScheduler& scheduler() { return scheduler_; }
  const PathScheduler& scheduler() const { return scheduler_; }
  MultipathRecovery& recovery() { return recovery_; }
  const MultipathRecovery& recovery() const { return recovery_; }

  std::size_t size() const { return paths_.size(); }
  std::size_t ip_paths() const { return paths_.ip_paths(); }
  PathState& operator[](std::size_t number) { return paths_[number]; }
  const PathState& operator[](std::size_t number) const { return paths_[number]; }

  /// Nothing sent on path 0 was answered yet: the next frames leave by another rail.
  void try_next_rail();
  /// Where the next keep-alive goes: to each path in turn. While the peer has never answered (`met` false), every
  /// other one takes the rail of its subnet, since many may leave before try_next_rail() comes back to that rail.
  link::Path keep_alive_path(bool met);
  /// The peer has listed its addresses: adds further paths.
  void join(std::span<const SocketAddress> peer);
  /// False: only addresses on a subnet of this side make further paths (RFC 9000 21.5.3), since others may belong to
  /// any host.
  void allow_everywhere(bool allowed) { everywhere_ = allowed; }
  /// Frames of the session came this way: the peer is reached there. `ack_owed`: they must be acknowledged.
  void learn(const link::Path& from, bool ack_owed, std::size_t frames = 1);
  /// Where the answer to the last arrival goes.
  const link::Path& reply_path() const;
  /// The least time after which an answer to a frame that leaves now can arrive.
  Duration min_reply_delay() const;
  /// True while the peer's frames come over several paths: a gap does not mean a loss then.
  bool reordering_expected() const { return since_switch_ < kSinglePathArrivals; }

  /// An IP path that is to be challenged, if one is due; on_challenge_sent() when it has been.
  struct Challenge {
    std::size_t path = 0;
    link::Path to;
  };
  std::optional<Challenge> challenge_due(Time now) const;
  std::optional<Challenge> ethertype_challenge_due(Time now);
  void on_challenge_sent(Time now, std::size_t path);
  /// The peer's engine, or its host, has answered the question of time `asked`. A host's answer counts only on proven
  /// paths, since every host answers.
  void on_response(Time now, Time asked, const link::Path& from, bool by_engine);
  std::span<const SocketAddress> validated_addresses() const { return validated_addresses_; }
  /// ICMP reports that a path does not reach the peer. True if this concerns that path alone: other paths work, and
  /// ICMP does not say that the port of the peer's process is closed on a path that has reached the process.
  bool on_path_error(Time now, const link::PathError& error);

  std::vector<PathStats> stats() const;
  /// Bytes of memory they hold.
  std::size_t footprint() const;

 private:
  void answer_over(std::size_t ip, std::size_t arrivals);
  link::Path challenge_address(const PathState& path) const;
  std::optional<std::size_t> path_of_response(const link::Path& from) const;

  /// Challenges that go to the address a rail was paired with, before others are tried.
  static constexpr unsigned kPairedChallenges = 4;
  static constexpr unsigned kSinglePathArrivals = 64;

  std::span<const Rail> rails_;
  PathList paths_;
  PathScheduler scheduler_;
  MultipathRecovery recovery_;
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
};

}  // namespace cluster::multipath
