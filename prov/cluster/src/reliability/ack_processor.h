// Evaluates the peer's acknowledgements. It removes acknowledged frames from the send window, reports the
// tokens of acknowledged segments, tells the paths about round trips and losses, and counts spurious
// retransmissions.
//
// Invariants: each token is reported once. The token of an ordered segment is withheld until the peer has
// every frame before it: the peer cannot deliver data behind a gap. If this side ended before the gap is
// filled, that data would be lost.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "carrier/carrier.h"
#include "multipath/path_manager.h"
#include "reliability/frame_sender.h"
#include "reliability/frame_size.h"
#include "reliability/retransmission_timer.h"
#include "reliability/send_queue.h"
#include "wire/admit.h"

namespace cluster::reliability {

class AckProcessor {
 public:
  AckProcessor(SendQueue& queue, const FrameSender& sender, FrameSize& frame_size,
               multipath::PathManager& paths, RetransmissionTimer& timer);

  /// Returns false if no peer that follows the protocol can have sent this acknowledgement.
  bool valid(const wire::FrameView& view) const;
  /// `arrived`: when the frame came to this node, perhaps long before `now`.
  void process(Time now, const wire::FrameView& view, Time arrived);
  /// Appends the tokens of segments that the peer has acknowledged.
  void take_acked(std::vector<carrier::Token>& tokens);

 private:
  struct Contents {
    Sequence ack;
    TransmissionNumber largest_acked;
    bool without_ranges = false;
    friend bool operator==(const Contents&, const Contents&) = default;
  };
  /// The token of an acknowledged frame that waits for others before it.
  struct Withheld {
    Sequence sequence;
    carrier::Token token;
  };

  std::size_t acknowledge_frames(const wire::FrameView& view);
  void report(carrier::Token token, Sequence s, bool ordered, Sequence complete_before);
  void release_withheld();
  std::uint32_t new_spurious(const wire::FrameView& view);

  SendQueue& queue_;
  const FrameSender& sender_;
  FrameSize& frame_size_;
  multipath::PathManager& paths_;
  RetransmissionTimer& timer_;
  std::optional<Contents> last_;
  std::uint32_t spurious_ = 0;  ///< spurious retransmissions, as the peer last counted them
  std::vector<carrier::Token> acked_tokens_;
  std::vector<Withheld> withheld_;
};

}  // namespace cluster::reliability
