// The carrier of a flow. It keeps what the protocol has posted to the peer until the peer has acknowledged
// it. post() packs segments into frames. A frame that is closed waits in the send window for the frame
// sender.
//
// Small segments are copied and share an open frame. A large payload that stays valid until it is
// acknowledged is not copied. Instead, each frame refers to its part of the payload in user memory. Such a
// part may follow segments that the open frame already contains. If the part would not fill the frame, it is
// copied, so that the next segment can fill the frame. A frame that is not full would end a super-frame
// (link/link.h). Long payloads that are not copied become runs (post_run), which need no body for each frame.
//
// Limits: while kQueuedMax frames wait for transmission, posts are refused, so that the protocol can still
// decide the order of later posts. A segment must fit into one frame of the size that handshake and path
// allow now.
//
// A frame that contains only answers (`done`) may stay open while an acknowledgement is owed. The answers and
// the acknowledgement leave in the next frame that this side sends, or when the acknowledgement is due
// (Flow::transmit).
//
// Invariant: a frame contains ordered or unordered segments, never both. So unordered data never waits at the
// receiver for a missing frame. Answers are an exception: they may join a frame of either kind, so that they
// need no frame of their own. An answer in an ordered frame waits at the receiver only in the rare case that
// an earlier frame is lost.
#pragma once

#include <cstddef>
#include <memory>
#include <optional>
#include <utility>

#include "carrier/carrier.h"
#include "multipath/path_manager.h"
#include "reliability/flow_status.h"
#include "reliability/frame_body.h"
#include "reliability/frame_size.h"
#include "reliability/handshake.h"
#include "reliability/send_window.h"
#include "wire/segment.h"

namespace cluster::reliability {

class SendQueue final : public carrier::Carrier {
 public:
  /// If the flow has ended, or if there is no memory for a frame, posts are refused as if the queue were
  /// full.
  SendQueue(const Handshake& handshake, const FrameSize& frame_size, const multipath::PathManager& paths,
            BodyPool& bodies, const FlowStatus& status);

  std::size_t payload_max(const wire::Segment& segment) const override;
  std::size_t fragment_max(const wire::Segment& segment) const override;
  /// Returns half of the bytes that the congestion windows of all paths and Handshake::window() allow in
  /// flight now.
  std::size_t eager_limit() const override;
  bool device_reads() const override { return handshake_.device_reads(); }
  bool post(const wire::Segment& segment, const Gather& payload, carrier::PayloadMode mode,
            carrier::Token token) override;
  /// Posts one run, which has at most as many whole frames as the payload's first piece of memory fills.
  /// Returns how many bytes were posted.
  std::size_t post_run(const wire::Segment& segment, const Gather& payload, carrier::Token token) override;

  /// Returns true if post_alone() takes a segment of `size` bytes, header included: no other frame waits to
  /// be sent or retransmitted, and few are in flight. Answers in the open frame leave with the segment.
  bool takes_alone(std::size_t size) const {
    if (open_) [[unlikely]] {
      if (!open_->only_answers) return false;
      size += open_->filled;
    }
    return status_.alive() && window_.queued() == 0 && !window_.has_lost() && window_.span() < kAloneMax &&
           size <= frame_size_.segment_capacity();
  }
  /// Queues a frame that contains this message or write, and the answers of the open frame. Returns false if
  /// there is no memory.
  bool post_alone(const wire::EagerHeader& header, const void* payload, carrier::Token token) {
    return post_alone_as(header, payload, token);
  }
  bool post_alone(const wire::WriteHeader& header, const void* payload) {
    return post_alone_as(header, payload, 0);
  }
  /// Adds an answer to the open frame. The open frame must contain only answers, if there is one
  /// (takes_alone()). Returns false if there is no memory.
  bool post_answer(const wire::AnswerHeader& answer);

  /// Returns true if what is left to send should wait for further segments, so that they leave in one burst.
  /// This is so if other frames are in flight, none is lost, and the next segment either fits into the open
  /// frame or makes the burst better.
  bool may_coalesce() const {
    if (window_.outstanding() == 0 || window_.has_lost() || window_.queued() >= kGoodBurst) return false;
    return gathered_ < kGatheredMax || (open_ && open_->filled + last_ <= frame_size_.segment_capacity());
  }
  /// Returns true if the peer has acknowledged everything that was posted.
  bool drained() const { return !open_ && window_.first() == window_.end(); }
  bool has_open_frame() const { return open_ != nullptr; }
  /// Returns true if nothing is left to send except answers in the open frame.
  bool only_answers_left() const {
    return open_ != nullptr && open_->only_answers && window_.queued() == 0 && !window_.has_lost();
  }
  /// Queues the open frame, even if it is not full.
  void close_open_frame() {
    if (open_) window_.push(std::move(open_));
  }
  /// Queues a frame with `size` bytes of padding. Returns its sequence, or nothing if there is no space.
  std::optional<Sequence> push_padding(std::size_t size);
  void recycle(std::unique_ptr<FrameBody> body) { bodies_.give(std::move(body)); }

  SendWindow& window() { return window_; }
  const SendWindow& window() const { return window_; }

 private:
  bool takes_more() const {
    return status_.alive() && window_.queued() < kQueuedMax && window_.has_space(kFramesMax);
  }
  bool fits(const wire::Segment& segment, std::size_t size, std::size_t capacity) const {
    return open_ != nullptr && open_->filled + size <= capacity && mixes(*open_, segment);
  }
  static bool mixes(const FrameBody& open, const wire::Segment& segment) {
    return open.only_answers || segment.kind == wire::SegmentKind::done ||
           open.ordered == wire::ordered(segment.kind);
  }
  template <typename Header>
  bool post_alone_as(const Header& header, const void* payload, carrier::Token token) {
    std::byte* const at = push_alone(header.size() + header.length, token);
    if (at == nullptr) return false;
    header.write(at);
    copy_short(at + header.size(), static_cast<const std::byte*>(payload), header.length);
    return true;
  }
  std::byte* push_alone(std::size_t size, carrier::Token token);
  void open_frame(std::unique_ptr<FrameBody> body);
  void note_joined(const wire::Segment& segment);
  bool post_reference(const wire::Segment& segment, const Gather& payload, carrier::Token token,
                      std::size_t capacity);
  void post_copy(const wire::Segment& segment, const Gather& payload, carrier::Token token,
                 std::size_t capacity);

  static constexpr std::size_t kQueuedMax = 88;
  static constexpr std::size_t kAloneMax = 8;  ///< takes_alone() requires fewer frames than this in flight
  /// The most frames that one post() uses, including the one that it leaves open.
  static constexpr std::size_t kFramesMax = 3;
  /// Payloads shorter than this are copied, because a copy is cheaper than a reference to user memory.
  static constexpr std::size_t kReferenceMin = 256;
  static constexpr std::size_t kShareMin = 64;
  static constexpr std::size_t kRunMin = 4;
  /// A burst of this many frames shares the cost of one call well enough. While a longer burst is gathered,
  /// the peer would have nothing to do.
  static constexpr std::size_t kGoodBurst = 16;
  /// Once this many segments wait and the open frame is full, they leave, even in fewer frames than
  /// kGoodBurst: to deliver them takes the peer longer than a call.
  static constexpr std::size_t kGatheredMax = 48;

  const Handshake& handshake_;
  const FrameSize& frame_size_;
  const multipath::PathManager& paths_;
  BodyPool& bodies_;
  const FlowStatus& status_;
  SendWindow window_;
  std::unique_ptr<FrameBody> open_;
  std::size_t gathered_ = 0;  ///< segments posted since nothing was left to send
  std::size_t last_ = 0;      ///< bytes of the last segment that was copied into an open frame
};

}  // namespace cluster::reliability
