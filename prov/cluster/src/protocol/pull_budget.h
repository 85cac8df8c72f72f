// How much may be pulled at once from all senders, so that many-to-one traffic overruns neither the switch in
// front of this host nor its receive ring. One budget serves all peers whose transport dates pulls
// (carrier::Traits), as the network does: these peers share that port. Another serves all other peers. Its
// size is fixed.
//
// The budget of dated pulls finds its size. It times one pull at a time, from its departure until its
// first bytes arrive, less the delay in both hosts. The smallest recent time is the base delay; the rest is
// queueing behind other pulled bytes. Up to kTarget of queueing the budget grows: it doubles until a timed
// pull waits too long, and again after a few timed pulls with hardly any queueing; otherwise it grows by an
// eighth. Beyond kTarget it shrinks in proportion, at most by half. So a gigabit port holds tens of
// kilobytes, a memory-speed link a megabyte. The budget never shrinks below kBudgetMin, which fits into the
// smallest switch buffers (64 KB). One slow sender must not look like a slow port forever.
//
// A peer is stalled if it has sent less than an eighth of the requested bytes while others wait. After
// kStallTimeout (or four timed pulls, if they take longer) its share is lent to others, and this side
// requests nothing more from it. Once an eighth of the requested bytes has arrived, the share counts again.
// Sources: Homa (SIGCOMM 2018) for receiver-driven grants, Swift (SIGCOMM 2020) for the target delay.
#pragma once

#include <algorithm>
#include <bit>
#include <optional>

#include "base/windowed_min.h"
#include "protocol/channel.h"

namespace cluster::protocol {

/// What this side knows about the moment of an arrival. Rings give no times, so their pulls are not timed.
struct ArrivalInfo {
  Time now{};
  /// How long the peer's host held our newest frame before it answered, plus how long our host held the
  /// answer before reading it. Nothing if unknown.
  std::optional<Duration> host_delay{};
};

class PullBudget {
 public:
  enum class Size : std::uint8_t { fixed, found };

  PullBudget(std::size_t most, Size size);

  /// Requests with bytes left to pull, in the order of their turns.
  List<IncomingRequest, &IncomingRequest::waiting> waiting;

  /// The largest piece that one pull requests.
  std::size_t piece() const {
    return std::clamp(std::bit_floor(limit_ / kPullsInFlight), kPieceMin, kPieceMax);
  }
  /// True if this side may request another piece: at most kPullsInFlight are in flight for one request.
  bool may_pull(const IncomingRequest& request) const {
    return !request.channel->pull.stalled && request.pull.in_flight() + piece() <= kPullsInFlight * piece();
  }
  /// True if another piece fits into the budget.
  bool available() const { return in_flight_ + piece() <= limit_ || in_flight_ == 0; }
  /// A request waits for the budget: the budget may grow.
  void mark_limited() { limited_ = true; }
  std::size_t limit() const { return limit_; }

  /// This side has requested the next `bytes`.
  void pulled(IncomingRequest& request, std::size_t bytes);
  /// `bytes` at `offset` have arrived.
  void arrived(IncomingRequest& request, std::size_t offset, std::size_t bytes, const ArrivalInfo& info);
  /// These bytes will not come.
  void given_up(Channel& channel, std::size_t bytes);

  /// The requested pulls leave at `now`.
  void on_transmit(Time now) {
    if (timed_.armed && timed_.sent_at == kNever) timed_.sent_at = now;
  }
  /// Checks for stalled peers, after all arrivals up to `now`. Returns true if it lent the share of a peer to
  /// others.
  bool check_stalls(Time now);
  /// When to call check_stalls(); kNever if no request waits to be pulled.
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
  /// The part of what is in flight that must arrive within kStallTimeout.
  static constexpr std::size_t kStallDivisor = 8;
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
  std::size_t in_flight_ = 0;  ///< bytes requested and not arrived, without the shares of stalled peers
  List<PullShare, &PullShare::hook> requested_;  ///< peers with bytes in flight
  bool limited_ = false;                         ///< a request has waited for the budget
  bool exploring_ = true;                        ///< the budget is doubling
  unsigned quick_ = 0;                           ///< timed pulls in a row with hardly any queueing
  /// The pull that is timed.
  struct Timed {
    std::uint32_t request = 0;
    std::size_t offset = 0;
    Time sent_at = kNever;  ///< kNever until the pull leaves
    bool armed = false;
  } timed_;
  Time check_at_{};
  Duration last_taken_{0};
  WindowedMin base_delay_{kBaseDelayWindow};
};

}  // namespace cluster::protocol
