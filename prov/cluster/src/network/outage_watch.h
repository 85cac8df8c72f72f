// Decides whether this node or the network is cut off (docs/protocol.md 2.5). A switch that reboots silences
// all peers at once. Such a silence is no reason to end a session, so the clocks of the sessions stand still
// during an outage (Outage).
//
// While a peer owes an answer and is silent, the caller reviews all members at short intervals. In each
// review the caller tells the watch which members are silent and which were heard. Members of one node count
// once. Only members count: an unknown source that falls silent must not cause an outage, and an unknown
// source that answers must not end one.
//
// All outages together may last for FI_CLUSTER_OUTAGE, so nobody can prolong them beyond this limit. Each
// second without an outage gives one second of the limit back. Once the limit is used up, silent peers are
// declared lost, and no outage begins until a peer is heard.
#pragma once

#include <algorithm>
#include <cstddef>
#include <unordered_map>

#include "base/address.h"
#include "base/outage.h"
#include "base/units.h"
#include "reliability/liveness.h"

namespace cluster::network {

class OutageWatch {
 public:
  /// `limit`: how long all outages together may last; 0: there are no outages. `outage` must outlive the
  /// watch.
  OutageWatch(Outage& outage, Duration limit, Duration peer_timeout)
      : outage_(outage), limit_(limit), silent_after_(std::min<Duration>(kSilentAfter, peer_timeout / 2)) {}

  /// Returns true if reviews are necessary because of this peer.
  bool suspicious(Time now, const reliability::Liveness& liveness) const {
    return limit_ != Duration{} && liveness.expecting() && liveness.idle_by(now) >= silent_after_ / 2;
  }

  /// Begins a review. The caller must then call note() for each member that has answered in its present
  /// session.
  void begin_review() {
    nodes_.clear();
    members_ = 0;
  }
  void note(Time now, const SocketAddress& name, const reliability::Liveness& liveness);
  /// Returns true if the caller should ask this member for a sign of life. The member owes nothing, so
  /// nothing else shows whether it can be reached.
  bool wants_witness(Time now, const reliability::Liveness& liveness) const;

  enum class News : std::uint8_t {
    none,
    begins,
    heard,  ///< the outage goes on, but more nodes are heard than before, or a carrier is back
    ends,   ///< peers are heard again, or no peer is left
    limit,  ///< the limit is used up, so the outage is over although peers are silent
  };
  /// Ends the review. `suspected`: suspicious() was true for a peer. `carrier`: at least one interface of
  /// this endpoint has a carrier.
  News finish_review(Time now, bool suspected, bool carrier);

  std::size_t silent_nodes() const { return silent_; }
  Duration review_interval() const { return std::min<Duration>(kReviewInterval, silent_after_ / 4); }

  static constexpr std::size_t kWitnesses = 4;  ///< the most members that one review asks

 private:
  bool begins(Time now, bool carrier);

  /// A node that has not been heard for this time counts as silent. By then, if a process is only stopped,
  /// its kernel has answered (reliability/liveness.h).
  static constexpr Duration kSilentAfter = 2s;
  static constexpr Duration kReviewInterval = 100ms;
  /// While an interface has a carrier, there is an outage only if at least this many nodes are silent for
  /// each node that is heard. Virtual machines on this host, for example, are heard although the network is
  /// cut off.
  static constexpr std::size_t kSilentPerHeard = 8;

  Outage& outage_;
  const Duration limit_;
  const Duration silent_after_;
  struct Node {
    bool silent = false;
    bool heard = false;
  };
  std::unordered_map<SocketAddress, Node, SocketAddressHash> nodes_;
  std::size_t members_ = 0;  ///< members in this review
  std::size_t silent_ = 0;   ///< nodes that were silent in the last review
  std::size_t heard_ = 0;
  bool carrier_ = true;     ///< an interface had a carrier in the last review
  bool exhausted_ = false;  ///< the limit was used up, and no peer was heard since
  Duration used_{};         ///< how long the outages until `used_until_` lasted, less the time without outage
  Time used_until_{};
};

}  // namespace cluster::network
