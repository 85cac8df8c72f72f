// Records which frames have arrived, and decides in which order they are delivered. Every frame before
// `expected` has arrived. From `expected` on, the window accepts `size` frames in any order.
//
// An unordered frame is delivered as soon as it arrives. An ordered frame is delivered once every frame
// before it has arrived. If an ordered frame is the expected one, it is delivered at once and without a copy.
// Other ordered frames are copied and wait in the window (at most `size` of them).
//
// If the protocol has no space for a segment of an ordered frame, the caller calls hold(), which puts back
// this segment and the rest of the frame. From then on the frame counts as not arrived, so this side does not
// acknowledge it. Later ordered frames wait behind it. resume() makes the frame count as arrived.
//
// A duplicate is either a copy that the network has made, or a spurious retransmission. A copy has the
// transmission number of the first arrival, a retransmission has another. Only spurious retransmissions are
// reported to the sender, which then waits longer before it declares losses (RFC 2883).
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "base/bytes.h"
#include "base/sequence.h"
#include "reliability/sequence_set.h"
#include "wire/ack.h"

namespace cluster::reliability {

class ReceiveWindow {
 public:
  enum class Arrival : std::uint8_t {
    fresh,  ///< the frame is new: call next() until it returns false
    duplicate,
    held,  ///< the frame is already held
  };

  /// `size`: number of frames that the window accepts. The window allocates memory for most of them only when
  /// a gap or a long run needs this memory.
  explicit ReceiveWindow(std::size_t size);
  /// Sets the sequence of the peer's first frame. Must be called before any frame arrives.
  void begin(Sequence first) { expected_ = highest_end_ = cursor_ = given_ = first; }

  enum class Place : std::uint8_t {
    within,
    /// Older than any frame that the peer may still send: a copy that the network has delayed, or a forgery.
    late,
    outside,
  };
  /// Compares the sequence with the limits of the window. The result does not say whether the frame has
  /// arrived.
  Place place_of(Sequence s) const;
  /// Records the arrival of a frame whose place is `within`.
  Arrival arrive(Sequence s, TransmissionNumber transmission, bool ordered, ConstBytes segments);
  /// Returns true if take_expected() may be called: no frame is missing or held, and all segments are handed
  /// on.
  bool complete() const { return !holding_ && !has_gap() && all_handed_on(); }
  /// Records the arrival of the expected frame, which the caller delivers itself. complete() must be true.
  void take_expected(TransmissionNumber transmission) {
    Slot& slot = at(expected_);
    slot.sequence = given_ = expected_;
    slot.transmission = transmission;
    ++expected_;
    highest_end_ = cursor_ = expected_;
  }
  /// Returns true if arrive_run() accepts `count` frames from `s` on: no frame is held, and all of these
  /// frames are new and within the window. If they are ordered, the first of them must also be the expected
  /// frame.
  bool takes_run(Sequence s, std::size_t count, bool ordered) const;
  /// Records the arrival of a run for which takes_run() has returned true. The caller must first deliver the
  /// frames of the run, then the segments that next() returns.
  Arrival arrive_run(Sequence s, TransmissionNumber transmission, std::size_t count);
  /// Sets `segments` to the next segments to deliver. Returns false if there are none. `segments` stays valid
  /// until the next call of next() or arrive().
  bool next(ConstBytes& segments);
  /// Takes back `rest`, the end of the segments that next() returned last. may_hold() must return true. Until
  /// resume() is called, next() returns only segments of unordered frames.
  void hold(ConstBytes rest);
  /// Returns true if hold() may be called: the segments that next() returned last were delivered in order.
  bool may_hold() const { return !holding_ && given_.before(expected_); }
  bool holding() const { return holding_; }
  /// Returns the segments that hold() has taken back, or nothing.
  ConstBytes held() const { return holding_ ? ConstBytes(at(expected_).segments) : ConstBytes{}; }
  /// Makes next() continue with the held frame. Returns the number of the transmission in which the frame
  /// arrived.
  TransmissionNumber resume();

  std::size_t size() const { return size_; }
  Sequence expected() const { return expected_; }
  /// Returns true if a frame after the expected one has arrived.
  bool has_gap() const { return highest_end_ != expected_; }
  /// If this function returns true, next() would return false. The reverse need not hold.
  bool all_handed_on() const { return current_.empty() && cursor_ == expected_; }
  std::size_t footprint() const;
  std::uint32_t spurious() const { return spurious_; }
  /// Writes the ranges of arrived frames after the expected one, lowest first, as many as a block holds.
  void fill_ranges(wire::Ack& ack) const;

 private:
  struct Slot {
    Sequence sequence;                ///< the frame that used this slot last
    TransmissionNumber transmission;  ///< number of the transmission in which that frame arrived
    bool kept = false;
    std::vector<std::byte> segments;  ///< the segments of the frame, if `kept`
  };

  static constexpr std::size_t kSparesMax = 8;
  static constexpr std::size_t kFirstSlots = 64;
  /// If a frame is older than `expected_` by more than this, it is `outside`, not `late`.
  static constexpr std::int32_t kStaleFrameMax = 65536;

  Slot& at(Sequence s) { return slots_[s.value & mask_]; }
  const Slot& at(Sequence s) const { return slots_[s.value & mask_]; }
  bool came_before(Sequence s) const { return s.before(expected_) || arrived_.contains(s); }
  void grow(std::size_t slots);
  void keep(Slot& slot, ConstBytes segments);
  void advance();
  void release_handed();

  std::size_t size_;
  std::vector<Slot> slots_;
  std::uint32_t mask_;
  SequenceSet arrived_;  ///< the frames from `expected_` on that have arrived
  Sequence expected_;
  Sequence highest_end_;  ///< the sequence after the highest frame that has arrived
  Sequence cursor_;       ///< ordered frames before this one have been delivered
  Sequence given_;        ///< the frame whose segments next() returned last
  bool holding_ = false;  ///< frame `expected_` is in its slot, but the protocol has no space for it
  std::uint32_t spurious_ = 0;
  /// Capacity of all buffers: those of waiting frames, `handed_`, and the spare ones.
  std::size_t bytes_ = 0;
  ConstBytes current_;             ///< segments that next() can return without a copy
  std::vector<std::byte> handed_;  ///< the copy that next() returned last
  std::vector<std::vector<std::byte>> spares_;
};

}  // namespace cluster::reliability
