// Which frames of one flow leave next, and by which path: in this order the frame that a tail loss probe or a
// retransmission timeout repeats (whatever the windows allow), lost frames, new ones. Selecting sends
// nothing; the frame sender does, and gives back what its link did not take.
//
// A frame that is repeated after a timeout leaves on another path than before, if there is one.
#pragma once

#include <array>
#include <cstddef>
#include <optional>

#include "link/link.h"
#include "multipath/path_manager.h"
#include "reliability/handshake.h"
#include "reliability/send_queue.h"

namespace cluster::reliability {

class FrameSelector {
 public:
  FrameSelector(SendQueue& queue, const Handshake& handshake, const multipath::PathManager& paths)
      : queue_(queue), handshake_(handshake), paths_(paths) {}

  struct Pick {
    Sequence sequence;
    bool repeat = false;     ///< repeat() asked for it
    bool from_lost = false;  ///< it was taken out of the queue of lost frames

    bool retransmission() const { return repeat || from_lost; }
  };
  /// What leaves with one call of the link.
  struct Selection {
    std::array<Pick, link::kBurstMax> picks;
    std::size_t count = 0;
    std::size_t path = 0;             ///< an IP path
    bool frames_left = false;         ///< something is left that has to wait
    bool retransmissions = false;     ///< a frame in it is retransmitted
    bool completion_awaited = false;  ///< a token waits for the acknowledgement of a frame in it or in flight

    bool single_new_frame() const { return count == 1 && !retransmissions; }
  };

  Selection select(Time now);
  /// True if the peer should acknowledge the last frame of the selection at once.
  bool wants_ack(const Selection& selection) const;
  /// The link did not take this frame: it is selected again.
  void put_back(const Pick& pick);
  /// The frame is selected next, whatever the windows allow.
  void repeat(Sequence frame) { repeat_ = frame; }

 private:
  void select_new(Selection& selection, std::size_t limit);

  static constexpr std::size_t kSmallWindow =
      132;  ///< twice what is acknowledged by count (reliability/ack_scheduler.h)

  SendQueue& queue_;
  const Handshake& handshake_;
  const multipath::PathManager& paths_;
  std::optional<Sequence> repeat_;
};

}  // namespace cluster::reliability
