// What the peer's acknowledgements mean for this side: which frames it has (they leave the send window),
// which posted segments are delivered (their tokens are reported), what the paths learn of round trips and
// losses, and how many retransmissions were spurious.
//
// Invariants: each token is reported once. The token of an ordered segment is withheld until the peer has
// every frame before it: what lies behind a gap cannot be handed to the application there, and would be lost
// with it if this side ended before the gap is filled.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "base/log.h"
#include "carrier/carrier.h"
#include "multipath/path_manager.h"
#include "multipath/path_mtu.h"
#include "reliability/frame_sender.h"
#include "reliability/handshake.h"
#include "reliability/retransmission_timer.h"
#include "reliability/send_queue.h"
#include "wire/admit.h"

namespace cluster::reliability {

class AckProcessor {
 public:
  AckProcessor(SendQueue& queue, const FrameSender& sender, Handshake& handshake,
               multipath::PathManager& paths, multipath::PathMtu& path_mtu, RetransmissionTimer& timer,
               Log& log);

  /// False if no peer that keeps to the protocol can have sent this acknowledgement.
  bool valid(const wire::FrameView& view) const;
  /// `arrived`: when the frame came to this node, perhaps long before `now`.
  void process(Time now, const wire::FrameView& view, Time arrived);
  /// Appends the tokens of segments that the peer has by now.
  void take_delivered(std::vector<carrier::Token>& tokens);

 private:
  /// What the last acknowledgement said; `plain`: it had no ranges.
  struct Last {
    Sequence ack;
    Sequence newest;
    bool plain = false;
    friend bool operator==(const Last&, const Last&) = default;
  };
  /// The token of an acknowledged frame that waits for others before it.
  struct Withheld {
    Sequence sequence;
    carrier::Token token;
  };

  std::size_t acknowledge_frames(const wire::FrameView& view);
  void report_tokens(Sequence s, const FrameBody& body, Sequence complete_before);
  void release_withheld();
  void on_pmtu_probe_acked();
  std::uint32_t new_spurious(const wire::FrameView& view);

  SendQueue& queue_;
  const FrameSender& sender_;
  Handshake& handshake_;
  multipath::PathManager& paths_;
  multipath::PathMtu& path_mtu_;
  RetransmissionTimer& timer_;
  Log& log_;
  std::optional<Last> last_;
  std::uint32_t spurious_ = 0;  ///< retransmissions, as the peer last counted them
  std::vector<carrier::Token> delivered_;
  std::vector<Withheld> withheld_;
};

}  // namespace cluster::reliability
