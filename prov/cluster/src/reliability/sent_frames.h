// The frames of a send window by their sequence, from the first that the peer does not have to the last one
// queued, and the runs to which some of them belong. Their states are the matter of the window.
//
// Invariants: a frame has a body, or belongs to a run that says what it carries. A run is kept until all of
// its frames are acknowledged, so there are never more runs than frames.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

#include "base/bytes.h"
#include "base/sequence.h"
#include "base/units.h"
#include "carrier/carrier.h"
#include "reliability/frame_body.h"
#include "wire/segment.h"

namespace cluster::reliability {

/// One long payload that leaves as frames of equal length with consecutive sequences: one description for all
/// of them instead of a body each. The frames are described by arithmetic and encoded from it whenever one is
/// sent; the send window still knows of each when it left and whether it has arrived, so a loss concerns that
/// frame alone. The payload is referred to in user memory until the peer has all of it.
struct FrameRun {
  Sequence first;
  wire::Segment segment;  ///< of the first frame; those of the others continue it
  ConstBytes payload;     ///< of all frames together
  std::size_t part = 0;   ///< of it in each frame
  carrier::Token token = 0;
  bool ordered = false;
  std::size_t outstanding = 0;  ///< frames that the peer does not have; 0: the description is free

  std::size_t frames() const { return payload.size() / part; }
  Sequence end() const { return first + static_cast<std::uint32_t>(frames()); }
  /// Where the part of this frame begins.
  std::size_t offset_of(Sequence s) const { return static_cast<std::size_t>(s - first) * part; }
};

/// One frame of the window, sent or still queued (sent_packets in RFC 9002).
struct SentFrame {
  enum class State : std::uint8_t { queued, in_flight, lost, acknowledged };

  std::unique_ptr<FrameBody> body;  ///< null once acknowledged, and in a run
  Time sent_at{};                   ///< the latest sending
  TransmissionNumber transmission;  ///< the latest sending
  std::uint32_t sendings = 0;
  State state = State::queued;
  std::uint8_t path = 0;  ///< of the latest sending
  std::uint16_t run = 0;  ///< of SentFrames::runs_, counted from 1; 0: it is in none
};

class SentFrames {
 public:
  /// At most so many frames at once, numbered from `first` on; memory is taken as it is needed.
  SentFrames(std::size_t capacity, Sequence first);

  Sequence first() const { return first_; }
  Sequence end() const { return end_; }
  /// Frames from first() to end().
  std::size_t span() const { return static_cast<std::size_t>(end_ - first_); }
  std::size_t free_frames() const { return capacity_ - static_cast<std::size_t>(end_ - first_); }
  bool has_space(std::size_t frames) const { return frames <= free_frames(); }
  SentFrame& at(Sequence s) { return frames_[s.value & mask_]; }
  const SentFrame& at(Sequence s) const { return frames_[s.value & mask_]; }

  /// Queues a frame behind all others; there must be space.
  void push(std::unique_ptr<FrameBody> body);
  /// Queues the frames of a run, which begins at end(); there must be space.
  void push_run(const FrameRun& run);
  /// The run that the frame belongs to; null if it has a body.
  const FrameRun* run_of(const SentFrame& frame) const {
    return frame.run == 0 ? nullptr : &runs_[frame.run - 1u];
  }
  bool has_token(const SentFrame& frame) const { return frame.run != 0 || !frame.body->tokens.empty(); }
  /// The application waits until the peer has this frame, or has answered it.
  bool awaited(const SentFrame& frame) const { return has_token(frame) || frame.body->awaits_answer; }

 protected:
  /// The frames before this one are acknowledged.
  void set_first(Sequence s) { first_ = s; }
  FrameRun& run_at(std::uint16_t number) { return runs_[number - 1u]; }
  /// Bytes of memory they hold, bodies included.
  std::size_t frames_footprint() const;

 private:
  void widen();
  std::uint16_t free_run();

  static constexpr std::size_t kInitialFrames = 16;

  std::size_t capacity_;
  std::vector<SentFrame> frames_;
  std::uint32_t mask_;
  std::vector<FrameRun> runs_;
  Sequence first_;
  Sequence end_;
};

}  // namespace cluster::reliability
