// How much may be pulled at once, over all senders: what keeps many-to-one from overrunning the switch in
// front of this host or its receive ring. One budget for all peers across the network, which share that port;
// one for those on this node, which share nothing but memory.
//
// The budget across the network finds its size. One pull at a time is timed, from the moment when it leaves
// until the first of its bytes arrives, less the delay in both hosts. The smallest such time of late is the
// base delay; the rest is queueing behind other bytes that were pulled. Up to kTarget of queueing the budget
// grows: by doubling until the first time it was too much, and again after a few timed pulls with hardly any
// queueing, else by an eighth. Beyond kTarget it shrinks in proportion, at most by half. So a gigabit port
// holds tens of kilobytes, a memory-speed link a megabyte. It never shrinks below kBudgetMin: that fits into
// the smallest switch buffers (64 KB), and one slow sender must not look like a slow port for ever.
//
// A peer that has sent less than an eighth of what was requested while others wait is stalled: after
// kStallTimeout (or four timed pulls, if they take that long) its share is lent to others and it is asked for
// nothing more; when an eighth of it has arrived the share counts again. Sources: Homa (SIGCOMM 2018) for
// receiver-driven grants, Swift (SIGCOMM 2020) for the target delay.
#pragma once

#include <algorithm>
#include <bit>
#include <optional>

#include "base/windowed_min.h"
#include "protocol/channel.h"

namespace cluster::protocol {

/// What is known about the moment of an arrival. Rings say nothing: their pulls are not timed.
struct ArrivalInfo {
  Time now{};
  /// How long the peer's host held the newest of our frames before it answered, and ours the answer before it
  /// was read; nothing if unknown.
  std::optional<Duration> host_delay{};
};

class PullBudget {
 public:
  enum class Size : std::uint8_t { fixed, found };

  PullBudget(std::size_t most, Size size);

  /// Requests that have bytes left to pull, in the order of their turns.
  List<IncomingRequest, &IncomingRequest::waiting> waiting;

  /// What one pull asks for at most.
  std::size_t piece() const {
    return std::clamp(std::bit_floor(limit_ / kPullsInFlight), kPieceMin, kPieceMax);
  }
  /// True if the sender may be asked for another piece: at most kPullsInFlight are in flight for one request.
  bool may_pull(const IncomingRequest& request) const {
    return !request.channel->pull.stalled && request.pull.in_flight() + piece() <= kPullsInFlight * piece();
  }
  /// True if another piece fits into the budget.
  bool available() const { return in_flight_ + piece() <= limit_ || in_flight_ == 0; }
  /// A request waits because nothing is available: the budget may grow.
  void mark_limited() { limited_ = true; }
  std::size_t limit() const { return limit_; }

  /// `bytes` behind those requested so far are requested.
  void pulled(IncomingRequest& request, std::size_t bytes);
  /// `bytes` at `offset` have arrived.
  void arrived(IncomingRequest& request, std::size_t offset, std::size_t bytes, const ArrivalInfo& info);
  /// So many bytes will not come.
  void given_up(Channel& channel, std::size_t bytes);

  /// What has been pulled leaves at `now`.
  void on_transmit(Time now) {
    if (timed_.armed && timed_.sent_at == kNever) timed_.sent_at = now;
  }
  /// All arrivals up to `now` have been processed. True if the share of a stalled peer was lent out.
  bool check_stalls(Time now);
  /// When check_stalls() wants to be called; kNever if no request waits to be pulled.
  Time deadline() const { return waiting.empty() ? kNever : check_at_; }

 private:
  static constexpr std::size_t kPieceMin = 16 * 1024;
  static constexpr std::size_t kPieceMax = 256 * 1024;
  static constexpr std::size_t kPullsInFlight = 4;
  static constexpr std::size_t kBudgetMin = 3 * kPieceMin;
  static constexpr std::size_t kBudgetInitial = 4 * kPieceMin;
  static constexpr Duration kTarget = 200us;
  static constexpr unsigned kQuickSamples = 4;
  static constexpr Duration kStallTimeout = 2ms;
  static constexpr std::size_t kStallDivisor = 8;  ///< of what is in flight, within kStallTimeout
  static constexpr Duration kBaseDelayWindow = 10s;

  /// True if the peer has sent enough of what is in flight to keep its share.
  static bool sends_enough(const PullShare& share) {
    return share.arrived * kStallDivisor >= share.in_flight;
  }
  void sample(Time now, Duration taken);
  void take_back(PullShare& share, std::size_t bytes);

  std::size_t most_;
  std::size_t least_;
  std::size_t limit_;
  std::size_t in_flight_ = 0;  ///< pulled and not arrived, without the shares of stalled peers
  List<PullShare, &PullShare::hook> requested_;  ///< peers with something in flight
  bool limited_ = false;                         ///< a request has waited for the budget
  bool exploring_ = true;                        ///< the budget doubles
  unsigned quick_ = 0;                           ///< timed pulls in a row with hardly any queueing
  /// The pull that is timed.
  struct Timed {
    std::uint32_t request = 0;
    std::size_t offset = 0;
    Time sent_at = kNever;  ///< kNever until it leaves
    bool armed = false;
  } timed_;
  Time check_at_{};
  Duration last_taken_{0};
  WindowedMin base_delay_{kBaseDelayWindow};
};

}  // namespace cluster::protocol
