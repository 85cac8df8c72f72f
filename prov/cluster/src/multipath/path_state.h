// A path to the peer and the list of them. An IP path is a rail of this side and an address of the peer; it
// may have an EtherType path beside it: the same two, but frames travel under an EtherType of their own and
// spare the host's IP input. Each path has validation, round trips, losses, congestion and pace of its own.
//
// Invariants: path 0 is the IP path of first contact; paths are never removed nor moved, because frames that
// leave refer to their addresses; an EtherType path and its IP path name each other as `companion` and have
// one address.
#pragma once

#include <cstddef>
#include <limits>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "base/log.h"
#include "link/link.h"
#include "multipath/address_pairing.h"
#include "multipath/path_recovery.h"
#include "multipath/path_validator.h"

namespace cluster::multipath {

struct PathState {
  PathState(const link::Path& to, std::size_t window_max, const PathValidator::Rules& rules,
            PathValidator::State state)
      : address(to), recovery(window_max), validator(rules, state) {}

  bool is_ethertype() const { return address.ethertype; }

  static constexpr std::size_t kNone = std::numeric_limits<std::size_t>::max();

  link::Path address;
  PathRecovery recovery;
  PathValidator validator;
  std::size_t companion = kNone;
  TransmissionNumber
      last_burst_end;  ///< of an IP path: the last transmission that left in a burst or was a retransmission
  bool link_full = false;  ///< its link took no more in this turn
};

class PathList {
 public:
  /// IP paths and the EtherType paths beside them.
  static constexpr std::size_t kMax = 2 * kPathsMax;

  /// `rails` are this side's interfaces by number of link.
  PathList(std::span<const Rail> rails, std::size_t window_max, Log& log)
      : rails_(rails), log_(log), window_max_(window_max) {}

  std::size_t size() const { return paths_.size(); }
  std::size_t ip_paths() const { return ip_paths_; }
  PathState& operator[](std::size_t number) { return *paths_[number]; }
  const PathState& operator[](std::size_t number) const { return *paths_[number]; }
  auto begin() const { return paths_.begin(); }
  auto end() const { return paths_.end(); }

  /// An IP path; returns its number.
  std::size_t add(const link::Path& to, PathValidator::State state);
  /// The EtherType path beside an IP path, which has none yet.
  void add_ethertype(std::size_t ip);
  /// The IP path by this rail to this address.
  std::optional<std::size_t> find(const link::Path& from) const;
  /// From now on the IP path, and the EtherType path beside it, lead to this address.
  void set_address(std::size_t ip, const link::Path& to);
  /// The EtherType path beside an IP path, if it is validated; else the IP path.
  std::size_t ethertype_or_ip(std::size_t ip) const;
  /// When a frame last left on an IP path or the EtherType path beside it.
  Time last_sent_at(std::size_t ip) const;
  /// The IP path itself, or the one that an EtherType path stands beside.
  std::size_t ip_path_of(std::size_t number) const {
    return paths_[number]->is_ethertype() ? paths_[number]->companion : number;
  }
  /// Logs the event, if it is one. EtherType paths are not reported: a network that does not let their frames
  /// through is no fault.
  void report(const PathState& path, PathValidator::Event event) const;
  /// Bytes of memory they hold.
  std::size_t footprint() const;

 private:
  std::span<const Rail> rails_;
  Log& log_;
  std::size_t window_max_;
  std::size_t ip_paths_ = 0;
  std::vector<std::unique_ptr<PathState>> paths_;
};

}  // namespace cluster::multipath
