// Keeps which frames have arrived, and decides in which order they are delivered. Everything before
// `expected` has arrived. Beyond it the window accepts up to `size` frames, whatever is missing between them.
//
// Unordered frames are delivered as they come. An ordered frame is delivered once every frame before it has
// arrived. The expected frame is delivered at once and without a copy; others are copied and wait here (at
// most `size` of them).
//
// What the protocol has no space for is held: hold() puts the rest of the frame back. From then on the frame
// counts as not arrived, so neither it nor the ordered frames behind it are acknowledged. resume() lets
// it arrive.
//
// A duplicate is either a copy made by the network (the same transmission twice) or a spurious retransmission
// (another transmission of the frame). Only spurious retransmissions are reported to the sender, which adapts
// (RFC 2883).
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
    fresh,  ///< call next() until it returns false
    duplicate,
    held,  ///< the frame is already held
  };

  /// Memory is taken as gaps need it.
  explicit ReceiveWindow(std::size_t size);
  /// Sets the first frame of the peer. Nothing has arrived yet.
  void begin(Sequence first) { expected_ = highest_end_ = cursor_ = given_ = first; }

  enum class Place : std::uint8_t {
    within,
    late,  ///< older than any frame that the peer still sends: a copy that the network kept, or a forgery
    outside,
  };
  /// Returns where the frame lies, whether it has arrived or not.
  Place place_of(Sequence s) const;
  /// Takes in a frame within the window.
  Arrival arrive(Sequence s, TransmissionNumber transmission, bool ordered, ConstBytes segments);
  /// True if arrive_run() takes `count` frames from `s` on: all of them are new. Ordered ones must begin with
  /// the expected frame.
  bool takes_run(Sequence s, std::size_t count, bool ordered) const;
  /// The frames of such a run have arrived. The caller delivers them before anything else, and then what
  /// next() gives.
  Arrival arrive_run(Sequence s, TransmissionNumber transmission, std::size_t count);
  /// Gives the next run of segments. It is valid until the next call of next() or arrive().
  bool next(ConstBytes& segments);
  /// Takes back `rest`, the end of what next() gave last from an ordered frame. Until resume() only
  /// unordered frames are handed on.
  void hold(ConstBytes rest);
  /// True if what next() gave last came in its turn, so that it can be held.
  bool may_hold() const { return !holding_ && given_.before(expected_); }
  bool holding() const { return holding_; }
  ConstBytes held() const { return holding_ ? ConstBytes(at(expected_).segments) : ConstBytes{}; }
  /// Lets next() continue with the held frame. Returns the transmission that brought it.
  TransmissionNumber resume();

  std::size_t size() const { return size_; }
  Sequence expected() const { return expected_; }
  /// True if a frame beyond `expected` has arrived.
  bool has_gap() const { return highest_end_ != expected_; }
  /// True if next() has nothing left to give.
  bool all_handed_on() const { return current_.empty() && cursor_ == expected_; }
  std::size_t footprint() const;
  std::uint32_t spurious() const { return spurious_; }
  /// Writes the ranges beyond `expected`, lowest first, as many as a block holds.
  void fill_ranges(wire::Ack& ack) const;

 private:
  struct Slot {
    Sequence sequence;                ///< the last frame in this slot, until a newer one needs the slot...
    TransmissionNumber transmission;  ///< ...and the transmission that brought it
    bool kept = false;
    std::vector<std::byte> segments;  ///< segments that wait for delivery, if kept
  };

  static constexpr std::size_t kSparesMax = 8;
  static constexpr std::size_t kFirstSlots = 64;
  /// A frame that lies further back is outside the window, not late.
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
  SequenceSet arrived_;  ///< at or beyond expected_
  Sequence expected_;
  Sequence highest_end_;  ///< one after the highest frame that has arrived
  Sequence cursor_;       ///< ordered frames before this one have been delivered
  Sequence given_;        ///< the frame that next() gave last
  bool holding_ = false;  ///< `expected_` is here, but there is no space for it
  std::uint32_t spurious_ = 0;
  std::size_t bytes_ = 0;          ///< capacity of all copies: waiting, being read, spare
  ConstBytes current_;             ///< segments that can be delivered where they lie
  std::vector<std::byte> handed_;  ///< the copy that the caller reads
  std::vector<std::vector<std::byte>> spares_;
};

}  // namespace cluster::reliability
