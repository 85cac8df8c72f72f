// Evaluates the peer's acknowledgements: removes acknowledged frames from the send window, reports the tokens
// of acknowledged segments, tells the paths about round trips and losses, and counts spurious
// retransmissions.
//
// Invariants: no token is reported twice. The token of an ordered segment is withheld until the peer has
// received every frame before the frame of that segment. Otherwise the application might end while the peer
// still misses an earlier frame. The peer could then never deliver the segment, although its token was
// reported.
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

  /// Returns false if a peer that follows the protocol cannot have sent this acknowledgement.
  bool valid(const wire::FrameView& view) const;
  /// Processes the acknowledgement in the frame. `arrived`: when this node received the frame, perhaps long
  /// before `now`.
  void process(Time now, const wire::FrameView& view, Time arrived);
  /// Returns true if take() can handle acknowledgements. This requires that no token is withheld, and that
  /// the last acknowledgement had neither ranges nor a new number of spurious retransmissions.
  bool ordinary() const { return withheld_.empty() && last_ && last_->without_ranges; }
  /// Returns true if the acknowledgement in the frame is valid, and not older than the last one. ordinary()
  /// must be true.
  bool expects(const wire::LoneFrame& lone) const {
    const SendWindow& window = queue_.window();
    return !lone.ack.before(window.first()) && !lone.ack.after(window.next()) &&
           !lone.largest_acked.before(last_->largest_acked) &&
           !lone.largest_acked.after(sender_.last_transmission());
  }
  /// Like process(), for an acknowledgement that expects() has accepted. The paths learn about round trips,
  /// losses and congestion only in settle().
  void take(Time now, const wire::LoneFrame& lone, Time arrived);
  /// Passes to the paths what take() has postponed. Call settle() before the paths or their deadlines are
  /// used.
  void settle();
  /// Sets `tokens` to the tokens of segments that the peer has acknowledged since the last call.
  void take_acked(std::vector<carrier::Token>& tokens) {
    tokens.clear();
    tokens.swap(acked_tokens_);
  }

 private:
  /// The values of an acknowledgement. `without_ranges`: the acknowledgement has neither ranges nor a new
  /// number of spurious retransmissions. If it is true for two equal acknowledgements in a row, the second is
  /// a repetition.
  struct Contents {
    Sequence ack;
    TransmissionNumber largest_acked;
    bool without_ranges = false;
    friend bool operator==(const Contents&, const Contents&) = default;
  };
  /// The token of an acknowledged frame, withheld until the peer has all frames before that one.
  struct Withheld {
    Sequence sequence;
    carrier::Token token;
  };

  /// What the paths learn from an acknowledgement that was handled at `now`.
  struct News {
    Time now;
    multipath::AckInfo ack;
  };

  std::size_t acknowledge_frames(Sequence ack, const wire::Ack* ranges);
  [[gnu::always_inline]] void on_frame_acked(Sequence s, SentFrame& frame, Sequence complete_before);
  /// Reports or withholds the token. `s`: the frame of the segment with this token, or the last frame of the
  /// run with this token. `complete_before`: the sequence before which the peer has every frame.
  [[gnu::always_inline]] void report(carrier::Token token, Sequence s, bool ordered,
                                     Sequence complete_before) {
    if (ordered && !s.before(complete_before)) [[unlikely]]
      return withhold(token, s);
    acked_tokens_.push_back(token);
  }
  void withhold(carrier::Token token, Sequence s);
  void release_withheld();
  std::uint32_t new_spurious(const wire::FrameView& view);

  SendQueue& queue_;
  const FrameSender& sender_;
  FrameSize& frame_size_;
  multipath::PathManager& paths_;
  RetransmissionTimer& timer_;
  std::optional<Contents> last_;
  std::uint32_t spurious_ = 0;  ///< the count of spurious retransmissions that the peer last reported
  std::vector<carrier::Token> acked_tokens_;
  std::vector<Withheld> withheld_;
  std::optional<News> unsettled_;  ///< what take() has postponed for settle()
};

}  // namespace cluster::reliability
