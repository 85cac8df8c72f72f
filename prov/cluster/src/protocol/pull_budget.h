// How much may be pulled at once, over all senders: what keeps many-to-one from overrunning the
// switch in front of this host or its receive ring. One budget for all peers across the network, which
// share that port; one for those on this node, which share nothing but memory.
//
// The budget across the network finds its size. One pull at a time is timed, from the turn in which it
// leaves until the first of its bytes is here, less what either side was away meanwhile; the shortest such
// time of late is distance, the rest is waiting behind other bytes that were pulled. Up to kTarget of waiting
// the budget grows, by doubling until the first time it was too much and again after a few timed pulls that
// hardly waited, else by an eighth; beyond it shrinks in proportion, at most by half. So a gigabit port holds
// tens of kilobytes, a memory-speed link a megabyte. It never shrinks below kLeast: that fits into the
// smallest switch buffers (64 KB), and a slow sender must not be taken for a slow port for ever.
//
// A peer that has sent less than an eighth of what was asked for while others wait is not allowed to hold the
// budget: after kPatience (or four timed pulls, if they take that long) its share is lent out, it is asked
// for nothing more, and an eighth of it makes all good. Sources: Homa (SIGCOMM 2018) for the receiver's say,
// Swift (SIGCOMM 2020) for the delay.
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

  /// Matched messages of which not all has been asked for, in the order of their turns.
  List<RecvRequest, &RecvRequest::order> waiting;

  /// What one pull asks for at most.
  std::size_t piece() const {
    return std::clamp(std::bit_floor(limit_ / kPullsUnderWay), kPieceMin, kPieceMax);
  }
  /// May this message be asked for another piece? So many of them may be under way.
  bool may_pull(const RecvRequest& receive) const {
    return !receive.channel->pull_stalled &&
           receive.requested - receive.arrived + piece() <= kPullsUnderWay * piece();
  }
  bool room() const { return out_ + piece() <= limit_ || out_ == 0; }
  /// Somebody would pull if there were room.
  void lacking() { lacked_ = true; }
  std::size_t limit() const { return limit_; }

  /// `bytes` at `receive.requested` are asked for.
  void pulled(RecvRequest& receive, std::size_t bytes);
  /// `bytes` at `offset` have arrived.
  void arrived(RecvRequest& receive, std::size_t offset, std::size_t bytes, const ArrivalInfo& info);
  /// So many bytes will not come.
  void given_up(Channel& channel, std::size_t bytes);

  /// What has been pulled leaves at `now`.
  void on_transmit(Time now) {
    if (timed_.armed && timed_.sent_at == kNever) timed_.sent_at = now;
  }
  /// All arrivals up to `now` have been processed. True if the share of a stalled peer was lent out.
  bool check_stalls(Time now);
  /// When check_stalls() wants to be called; kNever if no message waits to be pulled.
  Time deadline() const { return waiting.empty() ? kNever : check_at_; }

 private:
  static constexpr std::size_t kPieceMin = 16 * 1024;
  static constexpr std::size_t kPieceMax = 256 * 1024;
  static constexpr std::size_t kPullsUnderWay = 4;
  static constexpr std::size_t kLeast = 3 * kPieceMin;
  static constexpr std::size_t kFirst = 4 * kPieceMin;
  static constexpr Duration kTarget = 200us;
  static constexpr unsigned kQuickEnough = 4;
  static constexpr Duration kPatience = 2ms;
  static constexpr std::size_t kLeastPart = 8;  ///< of what is out, within kPatience
  static constexpr Duration kMemory = 10s;

  /// True if it brings what it is asked for, and not crumbs of it to keep its share.
  static bool moves(const Channel& channel) { return channel.brought * kLeastPart >= channel.pulled; }
  void sample(Time now, Duration taken);
  void take_back(Channel& channel, std::size_t bytes);

  std::size_t most_;
  std::size_t least_;
  std::size_t limit_;
  std::size_t out_ = 0;                   ///< pulled and not arrived, without the shares of those who stall
  List<Channel, &Channel::pulls> asked_;  ///< channels with something pulled
  bool lacked_ = false;
  bool exploring_ = true;
  unsigned quick_ = 0;  ///< timed pulls in a row that hardly waited
  /// The pull that is timed.
  struct Timed {
    std::uint32_t receive = 0;
    std::size_t offset = 0;
    Time sent_at = kNever;  ///< kNever until it leaves
    bool armed = false;
  } timed_;
  Time check_at_{};
  Duration last_taken_{0};
  WindowedMin distance_{kMemory};
};

}  // namespace cluster::protocol
