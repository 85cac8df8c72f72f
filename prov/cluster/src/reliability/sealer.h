// Puts the finishing touch to a frame at the moment it is sent: header, opening and acknowledgement
// go in front of the stored segments, the checksum over everything.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>

#include "base/units.h"
#include "link/link.h"
#include "reliability/ack_scheduler.h"
#include "reliability/frame_body.h"
#include "reliability/handshake.h"
#include "reliability/receive_window.h"
#include "wire/frame.h"

namespace cluster::reliability {

/// What this side has to say about the peer's frames; the same for all frames of one transmission.
class Word {
 public:
  Word(Time now, const AckScheduler& acks, const ReceiveWindow& arrivals);

  /// It leaves only now.
  void date(Time now, const AckScheduler& acks) { age_ = acks.delay_field(now); }

  /// What a frame says of the word; with a block, also how many frames came in vain.
  enum class Said : std::uint8_t { nothing, main, all };
  /// Bytes of block that a frame with so much room left would carry, or nothing if the word cannot be
  /// said there: an acknowledgement that leaves its gaps out would be a lie.
  struct Fit {
    bool says;
    std::size_t block;
  };
  Fit fit(std::size_t room, bool bare) const;
  std::uint32_t spurious() const { return ack_ ? ack_->duplicates : 0; }
  void fill(wire::FrameHeader& header) const;
  /// Only for frames that carry a block.
  const wire::Ack& ack() const { return *ack_; }

 private:
  bool anything_;
  bool gap_;
  bool in_vain_is_news_;
  Sequence expected_;
  Sequence newest_;
  std::uint16_t age_;
  std::optional<wire::Ack> ack_;  ///< if there is something a block would say
};

/// What a frame says about itself.
struct Label {
  wire::FrameKind kind = wire::FrameKind::flow;
  std::uint8_t flags = 0;
  Sequence sequence;
  Sequence transmission;
};

/// Writes everything in front of body's segments and makes `out` refer to the whole. Returns
/// how much of `word` the frame says.
Word::Said seal(const Label& label, const Handshake& handshake, const Word& word, FrameBody& body,
                link::OutFrame& out);

/// Whether a rail works (probe, to the peer's probe responder) or is one at all (trial, to its engine).
struct Question {
  wire::FrameKind kind = wire::FrameKind::probe;
  std::uint32_t session = 0;  ///< of the engine that is asked
  std::uint32_t nonce = 0;    ///< comes back with the answer
};

/// Writes a header in front of `padding` and makes `out` refer to the whole.
void seal_question(const Question& question, FrameBody& padding, link::OutFrame& out);

}  // namespace cluster::reliability
