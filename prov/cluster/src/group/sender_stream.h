// The stream of this endpoint's messages to a group (docs/protocol.md 9.3). It cuts them into frames, keeps
// each frame until every listener has it, and retransmits frames that listeners miss. One multicast reaches
// all listeners. A listener that multicast does not reach gets each frame over its flow. The slowest
// listener's window limits how far the stream may go; the listener that loses most limits the speed (pace.h).
// A frame is lost when the first listener reports it missing.
//
// Invariants: all listeners have the frames before the base, and the base is at most kStreamWindow behind the
// end. Frames are cut once: a retransmitted frame has the same body.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "base/status.h"
#include "group/kept_frames.h"
#include "group/limits.h"
#include "group/outgoing_messages.h"
#include "group/pace.h"
#include "link/link.h"
#include "multipath/rtt_estimator.h"
#include "wire/segment.h"

namespace cluster::group {

class SenderStream {
 public:
  /// `body_max`: the longest body that also fits each listener by unicast.
  SenderStream(const StreamName& name, std::size_t body_max);

  std::uint32_t id() const { return name_.id; }

  /// Takes a message, and reports its token once the message is as far as `until` says. If it throws, the
  /// message is not taken.
  void post(const wire::Segment& shape, std::span<const ConstBytes> slices, std::size_t length, bool keep,
            Until until, MessageToken token);

  void add(Listener& listener);
  /// Ends a listener. If `why` is not ok, messages that the listener does not have end with this status.
  void remove(Listener& listener, Status why);
  void on_status(Time now, Listener& listener, std::uint64_t arrived, std::uint64_t window_end, Duration age,
                 bool heard);
  void on_nak(Time now, Listener& listener, std::uint64_t first, std::uint64_t count);

  /// Sends what may leave. Returns true if members must be served: something was posted to a listener's
  /// carrier, a listener was asked, or a listener has begun and must learn where. A listener that came in the
  /// middle of a message begins at the end of the message. `link` is null without multicast.
  bool transmit(Time now, link::Link* link, const link::Path& group);
  Time deadline() const;
  /// True if everything posted has been cut, every listener has it, and no message waits for more than that.
  bool drained() const {
    return messages_.all_cut() && frames_.base() == frames_.next() && !messages_.under_way();
  }
  std::uint64_t next() const { return frames_.next(); }
  /// No message follows, so members must report what they have.
  void end() {
    ending_ = true;
    ask_at_ = Time::min();
  }
  /// Ends all unfinished messages as canceled.
  void abandon() { messages_.abandon(Status::canceled); }
  RingQueue<FinishedMessage>& finished() { return messages_.finished(); }

 private:
  std::uint64_t limit() const;
  std::size_t define_starts();
  bool cut();
  void send_new(Time now, link::Link* link, const link::Path& group);
  std::size_t send_next(Time now, link::Link* link, const link::Path& group);
  bool send_by_unicast(Time now, Listener& listener);
  void repair(Time now, link::Link* link, const link::Path& group);
  void ask(Time now);
  Time when_to_ask(Time now) const;
  void advance(Time now, std::optional<Duration> age);
  void finish_ready();
  bool owes_report(const Listener& listener) const;

  const StreamName name_;
  OutgoingMessages messages_;
  KeptFrames frames_;
  std::uint64_t sent_ = 0;  ///< the link has taken the frames before this
  std::vector<Listener*> listeners_;
  std::vector<std::uint64_t> repairs_;  ///< due at repair_at_
  Pace pace_;
  multipath::RttEstimator rtt_;
  Time repair_at_ = kNever;
  Time ask_at_ = kNever;
  Time repeat_at_ = kNever;
  Time ready_at_ = kNever;  ///< when the pace, a carrier or the link allows more
  unsigned asks_ = 0;       ///< questions since the last arrival at a listener
  bool ending_ = false;
  bool starts_ = false;  ///< listeners have begun since the last transmit(), beside those just added
};

}  // namespace cluster::group
