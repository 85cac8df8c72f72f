// The stream of one sender at one member. It keeps what arrives out of order, delivers each body once and in
// order, and reports what has arrived and what is missing. Frames come by multicast, and may be lost,
// duplicated or reordered. Repairs come by multicast, or in a segment over the flow between the two members.
//
// Invariant: delivered() <= arrived() <= end(), and at most kStreamWindow bodies from delivered() on are
// kept.
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

/// Memory for the bodies that the streams of a group keep until delivery. Some is kept for later bodies: most
/// bodies of a long message have full length, and are delivered in the turn that brought them.
class SpareBodies {
 public:
  using Body = std::unique_ptr<std::byte[]>;
  static constexpr std::size_t kSpareMax = 32;  ///< about as many as one turn brings

  explicit SpareBodies(std::size_t body_max) : body_max_(body_max) {}

  /// Returns memory for a body of that size.
  Body take(std::size_t size) {
    if (!pooled(size)) return std::make_unique_for_overwrite<std::byte[]>(size);
    if (spare_.empty()) {
      spare_.reserve(kSpareMax);  // to give memory back never needs any
      return std::make_unique_for_overwrite<std::byte[]>(body_max_);
    }
    Body body = std::move(spare_.back());
    spare_.pop_back();
    return body;
  }
  /// Takes back the memory of a body. Frees what it does not keep.
  void give(Body body, std::size_t size) {
    if (pooled(size) && spare_.size() < spare_.capacity()) spare_.push_back(std::move(body));
  }
  std::size_t spare() const { return spare_.size(); }

 private:
  /// True if the body uses memory of full size. Shorter bodies would waste most of it, and longer ones (of a
  /// sender with longer frames) do not fit.
  bool pooled(std::size_t size) const { return size > body_max_ / 2 && size <= body_max_; }

  std::size_t body_max_;
  std::vector<Body> spare_;
};

class ReceiverStream {
 public:
  /// `start`: the first sequence for this member.
  ReceiverStream(std::uint32_t id, std::uint64_t start, Random& random, SpareBodies& spare);

  std::uint32_t id() const { return id_; }
  /// Returns the whole sequence of a frame, whose header holds only the low half.
  std::uint64_t widen(std::uint32_t low) const {
    return arrived_ + static_cast<std::uint64_t>(std::int64_t{
                          static_cast<std::int32_t>(low - static_cast<std::uint32_t>(arrived_))});
  }

  enum class Route : std::uint8_t { multicast, unicast };
  struct Arrival {
    std::uint64_t sequence;
    std::uint64_t end;   ///< how far the sender had sent the stream
    ConstBytes body;     ///< empty: the frame only states the end
    bool status_wanted;  ///< the sender wants a report at once
    Route route;
    Duration age;  ///< how long it waited unread
  };
  /// Takes in a frame or repair. `group_size` scales the delay of reports. Returns false for a copy, and for
  /// a frame beyond the window.
  bool receive(Time now, const Arrival& arrival, std::size_t group_size);
  /// The sender asks for a report, and says that there are frames up to `end`.
  void asked(Time now, std::uint64_t end, std::size_t group_size);

  /// Returns the next body in order, or nothing if there is none.
  ConstBytes front() const;
  /// The caller has delivered `size` bytes of the front body.
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
  /// Returns the ranges that are missing now, and postpones their next report.
  std::size_t take_gaps(Time now, std::array<Gap, kNakRanges>& gaps);

  Time deadline() const { return std::min(status_at_, nak_at_); }

 private:
  struct Kept {
    SpareBodies::Body bytes;
    std::size_t size = 0;  ///< 0: the body has not arrived
  };

  /// Allocates at the first sign of the sender: most members of a large group send nothing.
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
  std::uint64_t delivered_;   ///< all frames before it have been delivered
  std::size_t consumed_ = 0;  ///< bytes of the front body that have been delivered
  std::uint64_t arrived_;     ///< all frames before it have arrived
  std::uint64_t end_;         ///< the sender has sent the frames before it
  std::vector<Kept> kept_;
  std::uint64_t reported_delivered_;
  std::size_t unreported_ = 0;  ///< frames since the last report
  Time newest_at_{};            ///< when the newest frame reached this node
  bool by_multicast_ = false;   ///< a frame since the last report came by multicast
  Time status_at_ = kNever;
  Time nak_at_ = kNever;
  Duration nak_retry_ = kNakRetry;
};

}  // namespace cluster::group
