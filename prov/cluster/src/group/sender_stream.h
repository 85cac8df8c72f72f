// The stream of this endpoint's messages to a group (docs/protocol.md 9.3). The stream divides the messages
// into frames, keeps each frame until every listener has it, and retransmits frames that listeners miss. A
// frame that is sent once by multicast reaches all listeners. If multicast does not reach a listener, the
// stream sends each frame to that listener by unicast, over the listener's carrier. The window of the slowest
// listener limits which frames may be sent. The listener with the most losses limits the speed (pace.h). A
// frame counts as lost for each listener that reports the frame as missing before its first repair.
//
// Invariants: all listeners have the frames before base(), and the stream keeps at most kStreamWindow frames
// from base() on. The body of a frame never changes, so a retransmitted frame has the same body.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "base/outage.h"
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
  /// `body_max`: the maximal length of a body, which must also fit into a segment to each listener. `outage`:
  /// during an outage, the silence of listeners does not count; may be null.
  SenderStream(const StreamName& name, std::size_t body_max, const Outage* outage = nullptr);

  std::uint32_t id() const { return name_.id; }

  /// Accepts a message. Once the event `until` has occurred, finished() contains the token of the message. If
  /// this function throws, the message was not accepted.
  void post(const wire::Segment& shape, std::span<const ConstBytes> slices, std::size_t length, bool keep,
            Until until, MessageToken token);

  void add(Listener& listener);
  /// Removes a listener. If `why` is not ok, messages that the listener has not received end with this
  /// status.
  void remove(Listener& listener, Status why);
  void on_status(Time now, Listener& listener, std::uint64_t arrived, std::uint64_t window_end, Duration age,
                 bool heard);
  void on_nak(Time now, Listener& listener, std::uint64_t first, std::uint64_t count);

  /// Sends all frames that may be sent now. Returns true if the group must serve its members, because
  /// something was posted to a carrier, or because a new listener must be told its start. A listener that
  /// joins in the middle of a message starts with the next message. `link`: null if there is no multicast.
  bool transmit(Time now, link::Link* link, const link::Path& group);
  Time deadline() const;
  /// Returns true if all messages have been cut, every listener has all frames, and every message is
  /// finished.
  bool drained() const {
    return messages_.all_cut() && frames_.base() == frames_.next() && !messages_.under_way();
  }
  std::uint64_t next() const { return frames_.next(); }
  /// Called when no more messages follow. Asks the listeners for their last reports.
  void end() {
    ending_ = true;
    ask_at_ = Time::min();
  }
  /// Ends all unfinished messages with Status::canceled.
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
  const Outage* const outage_;
  OutgoingMessages messages_;
  KeptFrames frames_;
  std::uint64_t sent_ = 0;  ///< the frames before this have been sent
  std::vector<Listener*> listeners_;
  std::vector<std::uint64_t> repairs_;  ///< frames to retransmit at repair_at_
  Pace pace_;
  multipath::RttEstimator rtt_;
  Time repair_at_ = kNever;
  Time ask_at_ = kNever;
  Time repeat_at_ = kNever;
  Time ready_at_ = kNever;  ///< when more frames may be sent
  unsigned asks_ = 0;       ///< rounds of questions since the slowest listener last reported new frames
  bool ending_ = false;
  bool starts_ = false;  ///< listeners have started since the last transmit()
};

}  // namespace cluster::group
