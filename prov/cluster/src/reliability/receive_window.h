// What has arrived and in which order it is handed on. Everything before `expected` has arrived; beyond it up
// to `size` frames are accepted, whatever is missing between them.
//
// Unordered frames are handed on as they come. An ordered frame is handed on once every frame before it has
// arrived: at once and without a copy if it is the expected one, else from a copy that waits here (at most
// `size` of them).
//
// What the protocol has no space for is held: hold() puts the rest of the frame back. From then on the frame
// counts as not arrived, so neither it nor the ordered frames behind it are acknowledged. resume() lets
// it arrive.
//
// A duplicate is either a copy made by the network (the same transmission twice) or a spurious retransmission
// (another transmission of the frame); only the second kind is reported to the sender, which adapts (RFC
// 2883).
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
    fresh,  ///< call next() until it is false
    duplicate,
    held,  ///< the frame that is held already
  };

  /// Memory is taken as gaps need it.
  explicit ReceiveWindow(std::size_t size);
  /// The peer's frames begin with this one. Nothing has arrived yet.
  void begin(Sequence first) { expected_ = highest_end_ = cursor_ = given_ = first; }

  enum class Place : std::uint8_t {
    within,
    late,  ///< further back than anything that the peer still sends: a copy that the network kept, or forged
    outside,
  };
  /// Where a frame lies, whether it has come or not.
  Place place_of(Sequence s) const;
  /// A frame within the window has come.
  Arrival arrive(Sequence s, TransmissionNumber transmission, bool ordered, ConstBytes segments);
  /// True if `count` frames from `s` on would all be new here, so that arrive_run() takes them. Ordered ones
  /// must be the expected ones.
  bool takes_run(Sequence s, std::size_t count, bool ordered) const;
  /// Those frames have arrived. The caller hands them on before anything else, then what next() gives.
  Arrival arrive_run(Sequence s, TransmissionNumber transmission, std::size_t count);
  /// The next run of segments; valid until the next call of next() or arrive().
  bool next(ConstBytes& segments);
  /// Takes back `rest`, the end of what next() gave last from an ordered frame. Until resume() only
  /// unordered frames are handed on.
  void hold(ConstBytes rest);
  /// True if what next() gave last came in its turn, so that it can be held.
  bool may_hold() const { return !holding_ && given_.before(expected_); }
  bool holding() const { return holding_; }
  ConstBytes held() const { return holding_ ? ConstBytes(at(expected_).segments) : ConstBytes{}; }
  /// next() goes on with what was held. Returns the sending that had brought it.
  TransmissionNumber resume();

  std::size_t size() const { return size_; }
  Sequence expected() const { return expected_; }
  /// True if something beyond `expected` has arrived.
  bool has_gap() const { return highest_end_ != expected_; }
  /// True if next() has nothing to give.
  bool all_handed_on() const { return current_.empty() && cursor_ == expected_; }
  std::size_t footprint() const;
  std::uint32_t spurious() const { return spurious_; }
  /// Writes the ranges beyond `expected`, lowest first, as many as a block takes.
  void fill_ranges(wire::Ack& ack) const;

 private:
  struct Slot {
    Sequence sequence;                ///< what was here last, as long as nothing newer needs the place...
    TransmissionNumber transmission;  ///< ...and the sending that brought it
    bool kept = false;
    std::vector<std::byte> segments;  ///< waiting to be handed on, if kept
  };

  static constexpr std::size_t kSparesMax = 8;
  static constexpr std::size_t kFirstSlots = 64;
  /// A frame that lies further back is no late one.
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
  Sequence highest_end_;  ///< one after the highest that arrived
  Sequence cursor_;       ///< ordered frames before this one have been handed on
  Sequence given_;        ///< the frame that next() gave last
  bool holding_ = false;  ///< `expected_` is here, but there is no space for it
  std::uint32_t spurious_ = 0;
  std::size_t bytes_ = 0;          ///< capacity of all copies: those that wait, the one looked at, spares
  ConstBytes current_;             ///< arrived and can be handed on as it lies
  std::vector<std::byte> handed_;  ///< copy that the caller is looking at
  std::vector<std::vector<std::byte>> spares_;
};

}  // namespace cluster::reliability
