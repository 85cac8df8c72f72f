// How long frames to the peer may be (docs/protocol.md 4.7). Each side names the longest frame that its link
// carries. The network between the links may carry only shorter frames, and silently drop longer ones. Before
// the flow sends frames longer than kBasePlpmtu, it sends a PMTU probe to find out whether such frames arrive
// (RFC 8899). A short companion frame leaves with the probe. If only the companion arrives, the probe was
// probably too long. Frames of at most kBasePlpmtu bytes need no probe at first, because a probe would cost
// each session a long frame.
//
// A black hole is a path that has begun to drop frames of some length silently. The flow assumes a black hole
// if it has sent a frame several times without an acknowledgement, and no frame of that length has arrived
// for a while. (A full queue also drops a frame repeatedly, but lets others of that length pass.) From then
// on frames are at most kInitialFrameSize long. After a second black hole they are at most least() long. If
// the search for the longest frame was complete, it begins again, because an outage or a peer that computes
// looks like a black hole. Queued and outstanding frames keep their sequences. So those that are now too long
// leave in parts (PartEncoder).
//
// Invariant: at most one PMTU probe is outstanding. If the probe is lost, the flow retransmits it without its
// padding.
#pragma once

#include <algorithm>
#include <cstddef>
#include <optional>

#include "base/log.h"
#include "base/sequence.h"
#include "multipath/path_manager.h"
#include "reliability/frame_body.h"
#include "reliability/handshake.h"

namespace cluster::reliability {

class SendQueue;

class FrameSize {
 public:
  /// `overhead`: bytes that the link adds to each frame.
  FrameSize(const Handshake& handshake, const multipath::PathManager& paths, Log& log,
            std::size_t overhead = 0)
      : handshake_(handshake),
        paths_(paths),
        log_(log),
        overhead_(overhead),
        initial_max_(kInitialFrameSize - overhead),
        least_(kLeastFrameSize - overhead),
        base_(kBasePlpmtu - overhead),
        path_max_(base_),
        proven_(base_) {}

  /// Returns the size of the longest frame that both links and, as far as is known, the path carry, header
  /// included.
  std::size_t frame_max() const {
    return std::min(handshake_.link_frame_max(), handshake_.knows_peer() ? path_max_ : initial_max_);
  }
  /// Returns the same for one path, which may have a limit of its own.
  std::size_t frame_max_on(const multipath::PathState& path) const {
    if (path.frame_max == multipath::PathState::kNone) return frame_max();
    return std::min(frame_max(), path.frame_max - overhead_);
  }
  /// Returns how many bytes of segments the longest frame can carry.
  std::size_t segment_capacity() const {
    return frame_max() - sizeof(wire::FrameHeader) - handshake_.opening_size();
  }
  /// Returns true if the search for the longest frame is complete (RFC 8899 5.2).
  bool search_complete() const { return probe_size() <= proven_; }

  /// Called for a frame of `size` bytes that was sent `sendings` times and is due for retransmission. Returns
  /// true if the frame has probably met a black hole.
  bool suspects(Time now, std::size_t size, std::uint32_t sendings) {
    size = std::min(size, frame_max());  // if the frame leaves in parts, the size of the longest part
    if (size <= least() || !handshake_.peer_takes_parts()) return false;
    if (!in_doubt()) doubted_since_ = now;
    doubted_ = std::max(doubted_, size);
    return sendings >= (size > initial_max_ ? 1 : 2) * kBlackHoleSendings &&
           now - doubted_since_ >= kBlackHoleLasts;
  }
  /// Returns true if on_arrived() must be called for acknowledged frames.
  bool in_doubt() const { return doubted_ != 0; }
  void on_arrived(std::size_t size) {
    if (std::min(size, frame_max()) >= doubted_) doubted_ = 0;
  }
  /// Called when a frame of `size` bytes was retransmitted, in the transmission with number `t`.
  void on_sent_again(TransmissionNumber t, std::size_t size) {
    if (in_doubt() && std::min(size, frame_max()) >= doubted_) witness_ = t;
  }
  /// Called when the peer has acknowledged transmission `largest`, but no new frame. A peer that has no space
  /// for a frame answers in this way (docs/protocol.md 3.2). That frame has arrived all the same, so the path
  /// carries frames of its length.
  void on_answer(TransmissionNumber largest) {
    if (in_doubt() && witness_ == largest) doubted_ = 0;
  }
  /// Like on_arrived(), for frames of a run. `part`: bytes of the payload in each of these frames.
  void on_run_arrived(std::size_t part) { on_arrived(part + sizeof(wire::FrameHeader) + kRunSegmentBytes); }
  /// Shortens frames from `end` on. Frames before `end` are already queued with their old length, and leave
  /// one by one from now on.
  void on_black_hole(Sequence end);
  /// Returns true if frames must leave one by one, because some of the frames in the window may be probes or
  /// longer than frame_max(). `first` is the first frame in the window. In a burst, the link might merge
  /// frames into a super-frame. The arrival of a super-frame shows nothing about the length of single frames.
  bool singly(Sequence first) {
    if (!singly_before_) [[likely]]
      return false;
    if (!first.before(*singly_before_)) singly_before_.reset();
    return singly_before_.has_value();
  }

  /// Queues a PMTU probe unless one is outstanding or the search is complete. Called when the peer has our
  /// opening.
  void send_pmtu_probe(SendQueue& queue);
  /// Called before a lost frame is retransmitted. If the frame is a PMTU probe, it leaves without its
  /// padding.
  void on_retransmit(Sequence s, FrameBody& body) {
    if (pmtu_probe_ == s && padded_) on_pmtu_probe_lost(body);
  }
  /// Returns the sequence of the outstanding PMTU probe, or nothing if there is none or its padding was
  /// removed.
  std::optional<Sequence> pmtu_probe() const { return padded_ ? pmtu_probe_ : std::nullopt; }
  void on_acked(Sequence s, std::uint32_t sendings) {
    if (!pmtu_probe_) return;
    if (companion_ == s) companion_arrived_ = sendings == 1;
    if (pmtu_probe_ == s) on_pmtu_probe_acked();
  }

 private:
  /// A frame of this size fits on every IPv6 path (1280 bytes, RFC 8200), and on nearly every IPv4 path.
  static constexpr std::size_t kInitialFrameSize = 1232;
  /// A frame of this size fits on every path that carries IPv4 datagrams of 576 bytes (RFC 1122 3.3.2).
  /// Nearly every path does.
  static constexpr std::size_t kLeastFrameSize = 548;
  /// Until a black hole is found, frames of this size leave without a probe. The longest frame over IPv4 and
  /// UDP has this size on an Ethernet with an MTU of 1500.
  static constexpr std::size_t kBasePlpmtu = 1472;
  static constexpr unsigned kProbesMax = 4;
  static constexpr std::size_t kRunSegmentBytes = 20;  ///< bytes of the segment header in a frame of a run
  static constexpr std::uint32_t kBlackHoleSendings = 3;
  static constexpr Duration kBlackHoleLasts = 250ms;

  void on_pmtu_probe_lost(FrameBody& body);
  void on_pmtu_probe_acked();
  void report();
  /// Returns the limit of frames after a second black hole. With this size, even the longest frame needs at
  /// most kPartsMax parts.
  std::size_t least() const {
    return std::max(least_, sizeof(wire::FrameHeader) + sizeof(wire::PartBlock) + 1 +
                                handshake_.link_frame_max() / wire::kPartsMax);
  }
  std::size_t shorter(std::size_t size) const;
  std::size_t probe_size() const { return std::min(handshake_.link_frame_max(), probed_max_); }

  const Handshake& handshake_;
  const multipath::PathManager& paths_;
  Log& log_;
  const std::size_t overhead_;
  const std::size_t initial_max_;
  const std::size_t least_;
  const std::size_t base_;
  std::size_t path_max_;
  /// The size of the longest frame that has arrived since the last black hole, or that needs no probe.
  std::size_t proven_;
  std::size_t probed_max_ = wire::kFrameMax;  ///< the longest size to probe
  /// The size of the longest frame that was due for retransmission, or 0 once a frame of that length has
  /// arrived.
  std::size_t doubted_ = 0;
  Time doubted_since_{};
  std::optional<TransmissionNumber> witness_;  ///< last transmission of a frame of at least `doubted_` bytes
  std::size_t swallowed_ = 0;                  ///< the shortest size that did not arrive in this search, or 0
  std::size_t reported_ = 0;                   ///< the size that the last log line has reported
  std::optional<Sequence> singly_before_;      ///< frames before this one leave one by one
  std::optional<Sequence> pmtu_probe_;
  std::optional<Sequence> companion_;  ///< the companion of the last probe
  bool padded_ = false;                ///< the outstanding probe still has its padding
  bool companion_arrived_ = false;
  unsigned lost_ = 0;  ///< how many probes of probe_size() were lost because of their length
};

}  // namespace cluster::reliability
