// The stream of one sender at one receiving member. It keeps frames that arrive out of order, delivers each
// body once and in order, and reports which frames have arrived and which are missing. Frames arrive by
// multicast, and may be lost, duplicated or reordered. Repairs arrive by multicast, or in segments over the
// carrier between the two members.
//
// Invariant: delivered() <= arrived() <= end(), and the stream keeps at most the kStreamWindow bodies from
// delivered() on.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <utility>
#include <vector>

#include "base/bytes.h"
#include "base/environment.h"
#include "base/units.h"
#include "group/limits.h"

namespace cluster::group {

/// Memory for the bodies that the streams of a group keep until delivery. The pool keeps some freed memory
/// for later bodies. Few bodies then need an allocation, because most bodies of a long message have full
/// length, and are delivered in the same turn in which they arrive.
class SpareBodies {
 public:
  using Body = std::unique_ptr<std::byte[]>;
  static constexpr std::size_t kSpareMax = 32;  ///< about as many bodies as arrive in one turn

  explicit SpareBodies(std::size_t body_max) : body_max_(body_max) {}

  /// Returns memory for a body of `size` bytes.
  Body take(std::size_t size) {
    if (!pooled(size)) return std::make_unique_for_overwrite<std::byte[]>(size);
    if (spare_.empty()) {
      spare_.reserve(kSpareMax);  // so that give() needs no memory
      return std::make_unique_for_overwrite<std::byte[]>(body_max_);
    }
    Body body = std::move(spare_.back());
    spare_.pop_back();
    return body;
  }
  /// Takes back the memory of a body, and keeps or frees it.
  void give(Body body, std::size_t size) {
    if (pooled(size) && spare_.size() < spare_.capacity()) spare_.push_back(std::move(body));
  }
  std::size_t spare() const { return spare_.size(); }

 private:
  /// Returns true if a body of this size uses memory of full size (body_max_). A body of at most half the
  /// full size would waste too much memory. A body from a sender with longer frames may exceed the full size.
  bool pooled(std::size_t size) const { return size > body_max_ / 2 && size <= body_max_; }

  std::size_t body_max_;
  std::vector<Body> spare_;
};

class ReceiverStream {
 public:
  /// `start`: the sequence number of the first frame for this member.
  ReceiverStream(std::uint32_t id, std::uint64_t start, Random& random, SpareBodies& spare);

  std::uint32_t id() const { return id_; }
  /// Returns the full sequence number of a frame. The header of the frame contains only the lower half,
  /// `low`.
  std::uint64_t widen(std::uint32_t low) const {
    return arrived_ + static_cast<std::uint64_t>(std::int64_t{
                          static_cast<std::int32_t>(low - static_cast<std::uint32_t>(arrived_))});
  }

  enum class Route : std::uint8_t { multicast, unicast };
  struct Arrival {
    std::uint64_t sequence;
    std::uint64_t end;   ///< sequence number after the last frame that the sender had sent
    ConstBytes body;     ///< empty if the frame only states the end
    bool status_wanted;  ///< true if the sender wants an immediate report
    Route route;
    Duration age;  ///< time for which the frame waited unread
  };
  /// Processes a frame or a repair. `group_size`: the number of members, which determines the delay of
  /// reports about gaps. Returns false if the frame has no body, is a duplicate, or is outside the window.
  bool receive(Time now, const Arrival& arrival, std::size_t group_size);
  /// Called when the sender asks for a report. The sender has sent all frames before `end`.
  void asked(Time now, std::uint64_t end, std::size_t group_size);

  /// Returns the undelivered bytes of the next body in order, or an empty span if that body has not arrived.
  ConstBytes front() const;
  /// Called after the caller has delivered `size` bytes of front().
  void consume(std::size_t size);

  std::uint64_t arrived() const { return arrived_; }
  std::uint64_t delivered() const { return delivered_; }
  std::uint64_t end() const { return end_; }

  struct StreamStatus {
    std::uint64_t arrived;
    std::uint64_t window_end;
    Duration age;
    bool by_multicast;
  };
  bool status_due(Time now) const { return now >= status_at_; }
  StreamStatus status(Time now) const;
  void status_sent();

  struct Gap {
    std::uint64_t first;
    std::uint64_t count;
  };
  bool nak_due(Time now) const { return now >= nak_at_; }
  /// Writes the ranges of missing frames to `gaps`, and returns their number. Sets the time at which frames
  /// that are then still missing are reported again.
  std::size_t take_gaps(Time now, std::array<Gap, kNakRanges>& gaps);

  Time deadline() const { return std::min(status_at_, nak_at_); }

 private:
  struct Kept {
    SpareBodies::Body bytes;
    std::size_t size = 0;  ///< 0 if the body has not arrived
  };

  /// Allocates the window when something first arrives from the sender, because most members of a large group
  /// send nothing.
  void prepare() {
    if (kept_.empty()) kept_.resize(kStreamWindow);
  }
  Kept& kept(std::uint64_t sequence) { return kept_[sequence % kStreamWindow]; }
  const Kept& kept(std::uint64_t sequence) const { return kept_[sequence % kStreamWindow]; }
  void want_status(Time when) { status_at_ = std::min(status_at_, when); }
  void watch_gap(Time now, std::size_t group_size);

  std::uint32_t id_;
  Random& random_;
  SpareBodies& spare_;
  std::uint64_t delivered_;   ///< all earlier frames have been delivered
  std::size_t consumed_ = 0;  ///< delivered bytes of the next body
  std::uint64_t arrived_;     ///< all earlier frames have arrived
  std::uint64_t end_;         ///< the sender has sent all earlier frames
  std::vector<Kept> kept_;
  std::uint64_t reported_delivered_;
  std::size_t unreported_ = 0;  ///< number of new frames since the last report
  Time newest_at_{};            ///< when the newest frame arrived at this node
  bool by_multicast_ = false;   ///< a frame has arrived by multicast since the last report
  Time status_at_ = kNever;
  Time nak_at_ = kNever;
  Duration nak_retry_ = kNakRetry;
};

}  // namespace cluster::group
