// The stream of this endpoint's messages to a group: cuts them into frames, keeps each frame until every listener has
// it, and repeats what listeners miss. One multicast reaches them all; a listener that multicast does not reach is
// sent each frame over its flow.
//
// How far it may go: as far as the window of the slowest listener. How fast: as the slowest listener gets what is sent (pace.h);
// a frame is lost when the first listener says that it misses it.
//
// Reports of missing frames are collected for kRepairHold; then a frame that few miss is repeated to those few, in a
// segment over their flows, and one that many miss once to all. A listener that reports nothing about
// frames that it was sent is asked, over its flow; one that does not answer is left to Group to remove. Where no message waits
// for reports they are few: the newest frame is sent once more instead, so that a listener that has lost it need not be asked.
//
// Invariants: of the frames kept, all listeners have what lies before the base; the base never is more than kStreamWindow behind
// the end. Frames are cut once: what is repeated is the same body.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "base/status.h"
#include "group/kept_frames.h"
#include "group/limits.h"
#include "group/listener.h"
#include "group/outgoing_messages.h"
#include "group/pace.h"
#include "link/link.h"
#include "multipath/rtt_estimator.h"
#include "wire/segment.h"

namespace cluster::group {

class SenderStream {
 public:
  /// `body_max`: the longest body that each listener can be sent by unicast, too.
  SenderStream(const StreamName& name, std::size_t body_max);

  std::uint32_t id() const { return name_.id; }

  /// Takes a message; its token is reported when it is as far as `until` says. If it throws, the message is not taken.
  void post(const wire::Segment& shape, std::span<const ConstBytes> slices, std::size_t length, bool keep,
            Until until, MessageToken token);

  void add(Listener& listener);
  /// It listens no more. If `why` is not ok, messages that it has not got end with it.
  void remove(Listener& listener, Status why);
  void on_status(Time now, Listener& listener, std::uint64_t arrived, std::uint64_t window_end, Duration age,
                 bool heard);
  void on_nak(Time now, Listener& listener, std::uint64_t first, std::uint64_t count);

  /// Sends what may leave; true if something was posted to a listener's carrier, or one was asked, or has begun and is to be notified
  /// where: one that came inside of a message begins at the end of it, which no member may report. `link` null: there is no
  /// multicast. If it throws for want of memory, the next call goes on.
  bool transmit(Time now, link::Link* link, const link::Path& group);
  Time deadline() const;
  /// Everything posted has been cut, every listener has it, and no message waits for more than that.
  bool drained() const { return cutter_.empty() && frames_.base() == frames_.next() && !progress_.waits(); }
  std::uint64_t next() const { return frames_.next(); }
  /// No message comes any more: members are to report what they have.
  void end() {
    ending_ = true;
    ask_at_ = Time::min();
  }
  /// Messages that are not over never will be.
  void abandon() { progress_.abandon(Status::canceled); }
  RingQueue<FinishedMessage>& finished() { return progress_.finished(); }

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
  MessageCutter cutter_;
  MessageProgress progress_;
  KeptFrames frames_;
  std::uint64_t sent_ = 0;  ///< frames before it have been given to the link
  std::vector<Listener*> listeners_;
  std::vector<std::uint64_t> repairs_;  ///< due at repair_at_
  Pace pace_;
  multipath::RttEstimator rtt_;
  Time repair_at_ = kNever;
  Time ask_at_ = kNever;
  Time repeat_at_ = kNever;
  Time ready_at_ = kNever;  ///< the pace, a carrier or the link lets more leave
  unsigned asks_ = 0;       ///< since something arrived
  bool ending_ = false;
  bool starts_ = false;  ///< listeners have begun since the last transmit(), beside those just added
};

}  // namespace cluster::group
