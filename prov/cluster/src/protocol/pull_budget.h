// Limits how many bytes are pulled from all senders at once, so that many-to-one traffic overruns neither
// this host's switch port nor its receive ring. Some transports report when pulls leave; such pulls are dated
// (carrier::Traits). The pulls of the network transport are dated. The bytes that they request all come
// through this host's switch port, so dated pulls share one budget. All other pulls share another budget, of
// fixed size.
//
// The budget of dated pulls adapts its size. It times one pull at a time, from the transmission of the pull
// until the first requested bytes arrive, and subtracts the delay in both hosts. The smallest recent time is
// the base delay. Any time beyond the base delay counts as queueing behind other pulled bytes. At first the
// budget doubles with each timed pull. When a timed pull has queued longer than kTarget, the budget shrinks
// in proportion, at most by half. Afterwards the budget grows by an eighth with each timed pull that queues
// at most kTarget. After a few timed pulls in a row with hardly any queueing, it doubles again. The budget
// grows only if a request had to wait for it. For example, the budget is tens of kilobytes for a gigabit
// port, and a megabyte for a link at memory speed. The budget never shrinks below kBudgetMin, because so many
// bytes fit into the smallest switch buffers (64 KB). Without this minimum, one slow sender could keep the
// budget small forever.
//
// The budget of dated pulls looks for stalled peers. A peer is stalled if, between two checks, less than an
// eighth of its bytes in flight arrives and this side requests nothing more from it. The time between two
// checks is kStallTimeout, or four times the duration of the latest timed pull, whichever is longer. There
// are checks only while requests have bytes left to pull. This side lends the share of a stalled peer to
// other peers, and requests nothing more from the stalled peer. Once the peer sends enough bytes again, it
// has its share again.
//
// The queueing delay does not show every full queue of the switch port. If hundreds of senders start at once,
// the queue is full while the first pulls are timed. As a result the base delay is too long, and the budget
// grows too large. Later the queue drops bytes, and senders stall. So each check that finds new stalls halves
// the budget, unless the hosts themselves answer slowly. Hosts answer slowly, for example, if they have more
// processes than processors. Sources: Homa (SIGCOMM 2018) for receiver-driven grants, Swift (SIGCOMM 2020)
// for the target delay.
#pragma once

#include <algorithm>
#include <bit>
#include <optional>

#include "base/windowed_min.h"
#include "protocol/channel.h"

namespace cluster::protocol {

/// The time of an arrival. Rings in shared memory give no times, so pulls through rings are not timed.
struct ArrivalInfo {
  Time now{};
  /// The sum of the delays in both hosts. The delay in the peer's host lasts from the arrival of this side's
  /// newest frame until the peer answers. The delay in this host lasts from the arrival of the answer until
  /// this side reads the answer. There is no value if the delays are unknown.
  std::optional<Duration> host_delay{};
};

class PullBudget {
 public:
  enum class Size : std::uint8_t { fixed, found };

  PullBudget(std::size_t most, Size size);

  /// Requests with bytes left to pull, in the order of their turns.
  List<IncomingRequest, &IncomingRequest::waiting> waiting;

  /// Returns the largest number of bytes that one pull requests: the size of a piece.
  std::size_t piece() const {
    return std::clamp(std::bit_floor(limit_ / kPullsInFlight), kPieceMin, kPieceMax);
  }
  /// Returns true if this side may request another piece for `request`. At most kPullsInFlight pieces of one
  /// request are in flight.
  bool may_pull(const IncomingRequest& request) const {
    return !request.channel->pull.stalled && request.pull.in_flight() + piece() <= kPullsInFlight * piece();
  }
  /// Returns true if another piece fits into the budget, or if no bytes are in flight.
  bool available() const { return in_flight_ + piece() <= limit_ || in_flight_ == 0; }
  /// Records that a request waits because the budget is used up. The budget grows only after such a wait.
  void mark_limited() { limited_ = true; }
  std::size_t limit() const { return limit_; }

  /// Counts the next `bytes` bytes of the request as requested.
  void pulled(IncomingRequest& request, std::size_t bytes);
  /// Counts `bytes` bytes at `offset` as arrived.
  void arrived(IncomingRequest& request, std::size_t offset, std::size_t bytes, const ArrivalInfo& info);
  /// Takes back `bytes` requested bytes that will not arrive.
  void given_up(Channel& channel, std::size_t bytes);

  /// Records that the pulls posted so far are transmitted at `now`.
  void on_transmit(Time now) {
    if (timed_.armed && timed_.sent_at == kNever) timed_.sent_at = now;
  }
  /// Checks for stalled peers. All arrivals up to `now` must have been counted before. Returns true if a
  /// peer's share is newly lent to others.
  bool check_stalls(Time now);
  /// Returns when check_stalls() must be called, or kNever if no request has bytes left to pull.
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
  /// A peer is stalled if less than 1/kStallDivisor of its bytes in flight arrives between two checks for
  /// stalls.
  static constexpr std::size_t kStallDivisor = 8;
  /// If the hosts took longer than this for the latest timed pull, stalls do not halve the budget, because
  /// the hosts themselves cause the stalls.
  static constexpr Duration kHostDelayMax = 250us;
  static constexpr Duration kBaseDelayWindow = 10s;

  /// Returns true if at least 1/kStallDivisor of the peer's bytes in flight has arrived since the last check
  /// for stalls. Otherwise the peer may be stalled.
  static bool sends_enough(const PullShare& share) {
    return share.arrived * kStallDivisor >= share.in_flight;
  }
  void sample(Time now, Duration taken);
  void slow_down(std::size_t limit);
  void take_back(PullShare& share, std::size_t bytes);

  std::size_t most_;
  std::size_t least_;
  std::size_t limit_;
  std::size_t in_flight_ = 0;  ///< requested bytes that have not arrived, except those of stalled peers
  List<PullShare, &PullShare::hook> requested_;  ///< peers with bytes in flight
  bool limited_ = false;   ///< a request has waited for the budget since the last timed pull
  bool exploring_ = true;  ///< the budget is doubling
  unsigned quick_ = 0;     ///< timed pulls in a row with hardly any queueing
  /// The pull that is being timed.
  struct Timed {
    std::uint32_t request = 0;
    std::size_t offset = 0;
    Time sent_at = kNever;  ///< kNever until the pull leaves
    bool armed = false;
  } timed_;
  Time check_at_{};
  Duration last_taken_{0};
  Duration last_host_delay_{0};
  WindowedMin base_delay_{kBaseDelayWindow};
};

}  // namespace cluster::protocol
