#include "group/sender_stream.h"

#include <algorithm>
#include <array>
#include <utility>

namespace cluster::group {
namespace {

constexpr Duration kLinkRetry = 50us;  ///< until the next attempt after the link or a carrier had no space
constexpr unsigned kAsksPatient = 6;   ///< after this many unanswered questions the pace is halved
constexpr unsigned kBackoffMax = 8;    ///< the largest number of doublings of the time between two questions

/// Returns true if one repair by multicast costs less than repairs by unicast. `missing`: the number of
/// listeners that miss the frame. `members`: the number of all listeners.
bool multicast_pays(std::size_t missing, std::size_t members) {
  return missing >= std::clamp(members / 8, kRepairMany, kRepairAll);
}

/// Returns true if these `count` frames must be sent by multicast.
bool multicast_wanted(std::uint64_t first, std::size_t count, std::span<Listener* const> listeners) {
  const std::uint64_t probe = (first + kProbeInterval - 1) / kProbeInterval * kProbeInterval;
  if (probe < first + count && !listeners.empty()) return true;
  return std::any_of(listeners.begin(), listeners.end(),
                     [](const Listener* listener) { return listener->started && !listener->by_unicast; });
}

}  // namespace

SenderStream::SenderStream(const StreamName& name, std::size_t body_max, const Outage* outage)
    : name_(name), outage_(outage), frames_(name, body_max) {}

void SenderStream::post(const wire::Segment& shape, std::span<const ConstBytes> slices, std::size_t length,
                        bool keep, Until until, MessageToken token) {
  messages_.post(shape, slices, length, keep, until, token);
  ready_at_ = Time::min();
}

void SenderStream::add(Listener& listener) {
  listeners_.push_back(&listener);
  starts_ |= define_starts() > 1;
}

void SenderStream::remove(Listener& listener, Status why) {
  if (std::erase(listeners_, &listener) == 0) return;
  for (std::uint64_t i = frames_.base(); i < frames_.next(); ++i)
    std::erase(frames_.at(i).missing, &listener);
  if (why != Status::ok && listener.started) messages_.fail(listener.name, listener.arrived, why);
  advance({}, std::nullopt);
  if (!messages_.all_cut()) ready_at_ = Time::min();  // the removed listener may have limited the window
}

/// Makes new listeners start with the first message that is not cut yet. Returns the number of these
/// listeners.
std::size_t SenderStream::define_starts() {
  if (!messages_.between()) return 0;
  std::size_t count = 0;
  for (Listener* listener : listeners_) {
    if (listener->started) continue;
    listener->started = listener->start_due = true;
    ++count;
    listener->start = listener->arrived = listener->cursor = frames_.next();
    listener->window_end = frames_.next() + kStreamWindow;
  }
  return count;
}

void SenderStream::on_status(Time now, Listener& listener, std::uint64_t arrived, std::uint64_t window_end,
                             Duration age, bool heard) {
  if (!listener.started || arrived > sent_ || arrived < listener.start) return;
  listener.asked_at = {};
  listener.silent = Duration::zero();
  listener.window_end = std::max(listener.window_end, std::min(window_end, arrived + kStreamWindow));
  if (heard) {
    listener.unheard = 0;
    listener.by_unicast = false;
  } else if (!listener.by_unicast && sent_ > listener.start && ++listener.unheard >= kUnheardMax) {
    listener.by_unicast = true;
    listener.cursor = std::max(arrived, listener.arrived);
  }
  if (arrived > listener.arrived) {
    listener.arrived = arrived;
    listener.cursor = std::max(listener.cursor, arrived);
    advance(now, age);
  } else {
    finish_ready();
  }
}

void SenderStream::on_nak(Time now, Listener& listener, std::uint64_t first, std::uint64_t count) {
  listener.asked_at = {};
  listener.silent = Duration::zero();
  const std::uint64_t end = std::min(first + std::min<std::uint64_t>(count, kStreamWindow), sent_);
  for (std::uint64_t i = std::max({first, frames_.base(), listener.arrived}); i < end; ++i) {
    KeptFrame& lost = frames_.at(i);
    const bool under_way = lost.repaired && now < lost.repaired_at + rtt_.smoothed();
    if (under_way || (listener.by_unicast && i >= listener.cursor)) continue;
    if (std::find(lost.missing.begin(), lost.missing.end(), &listener) != lost.missing.end()) continue;
    // The listener is added to `missing` last. If an allocation fails before, the listener sends its report
    // again, and this report must still count as new.
    if (!lost.repair_due) {
      repairs_.push_back(i);
      lost.repair_due = true;
      const Duration hold = listeners_.size() > 1 ? kRepairHold : Duration::zero();
      repair_at_ = std::min(repair_at_, now + hold);
    }
    lost.missing.push_back(&listener);
    if (!lost.repaired && i >= pace_.counts_from()) ++listener.missed;
  }
}

/// Returns the sequence number at which the window of the slowest listener ends.
std::uint64_t SenderStream::limit() const {
  std::uint64_t end = frames_.base() + kStreamWindow;
  for (const Listener* listener : listeners_) {
    if (listener->started) end = std::min(end, listener->window_end);
  }
  return end;
}

bool SenderStream::cut() {
  starts_ |= define_starts() > 0;
  const std::size_t size = messages_.cut(frames_.blank(), frames_.next() + 1);
  if (size != 0) frames_.append(size);
  return size != 0;
}

/// Sends one burst of cut frames. Returns the number of frames sent.
std::size_t SenderStream::send_next(Time now, link::Link* link, const link::Path& group) {
  std::array<std::uint64_t, link::kBurstMax> sequences;
  const std::size_t count = std::min<std::size_t>(frames_.next() - sent_, pace_.burst());
  for (std::size_t i = 0; i < count; ++i) sequences[i] = sent_ + i;
  if (link == nullptr || !multicast_wanted(sent_, count, listeners_)) {
    for (std::size_t i = 0; i < count; ++i) frames_.at(sequences[i]).sent_at = now;
    return count;
  }
  // Listeners report after every kFramesPerStatus frames, which is enough to move the window. But if all
  // messages are cut, the messages that are not finished wait only for reports. In this case the burst asks
  // all listeners for an immediate report.
  const bool waits = messages_.all_cut() && messages_.under_way();
  return frames_.send(now, *link, group, {sequences.data(), count}, waits);
}

void SenderStream::send_new(Time now, link::Link* link, const link::Path& group) {
  const std::uint64_t end = limit();
  for (std::size_t allowed = pace_.allowance(now); allowed > 0;) {
    const std::uint64_t burst_end = std::min(end, sent_ + std::min(allowed, pace_.burst()));
    while (frames_.next() < burst_end && cut()) {
    }
    const std::size_t ready = std::min<std::size_t>(frames_.next() - sent_, pace_.burst());
    if (ready == 0) break;
    const std::size_t taken = send_next(now, link, group);
    sent_ += taken;
    pace_.on_sent(now, taken);
    if (taken > 0) repeat_at_ = now + kRepeatNewest;
    if (asks_ == 0 || ask_at_ == kNever) ask_at_ = std::min(ask_at_, when_to_ask(now));
    if (taken < ready) {
      ready_at_ = now + kLinkRetry;
      return;
    }
    allowed -= std::min(allowed, taken);
  }
  const bool more = sent_ < frames_.next() || (!messages_.all_cut() && frames_.next() < end);
  if (more) {
    ready_at_ = std::min(ready_at_, pace_.ready());
  } else {
    pace_.on_pause();
  }
}

/// Sends the listener its next frames by unicast. Returns true if it has sent a frame.
bool SenderStream::send_by_unicast(Time now, Listener& listener) {
  const std::uint64_t before = listener.cursor;
  while (listener.cursor < sent_ && frames_.post(listener, listener.cursor)) ++listener.cursor;
  if (listener.cursor < sent_) ready_at_ = std::min(ready_at_, now + kLinkRetry);
  return listener.cursor != before;
}

/// Retransmits the frames in `repairs_`. Frames that cannot be sent yet remain in the list. If memory runs
/// out, the rest of the list remains, too, and the next call skips the frames that were sent.
void SenderStream::repair(Time now, link::Link* link, const link::Path& group) {
  std::size_t later = 0;
  Time next = now + kLinkRetry;
  for (const std::uint64_t sequence : repairs_) {
    if (sequence < frames_.base()) continue;
    KeptFrame& lost = frames_.at(sequence);
    const bool to_all = link != nullptr && multicast_pays(lost.missing.size(), listeners_.size());
    if (to_all && pace_.allowance(now) == 0) {
      repairs_[later++] = sequence;
      next = std::min(next, pace_.ready());
      continue;
    }
    lost.repaired = true;
    lost.repaired_at = now;
    if (to_all) {
      if (frames_.send(now, *link, group, {&sequence, 1}, false) == 1) lost.missing.clear();
      pace_.on_sent(now, 1);
    } else {
      std::erase_if(lost.missing, [&](Listener* listener) { return frames_.post(*listener, sequence); });
    }
    lost.repair_due = !lost.missing.empty();
    if (lost.repair_due) repairs_[later++] = sequence;
  }
  repairs_.resize(later);
  repair_at_ = repairs_.empty() ? kNever : next;
}

/// Returns true if the stream waits for a report from this listener.
bool SenderStream::owes_report(const Listener& listener) const {
  const bool stands = !messages_.all_cut() && listener.window_end <= frames_.next();
  return listener.started && (listener.arrived < sent_ || stands);
}

Time SenderStream::when_to_ask(Time now) const {
  const bool awaited = ending_ || messages_.under_way() || !messages_.all_cut();
  return now + std::max(rtt_.rto(), awaited ? kAskMin : kAskIdle);
}

void SenderStream::ask(Time now) {
  bool waits = false;
  for (Listener* listener : listeners_) {
    if (!owes_report(*listener)) continue;
    waits = true;
    const bool again = listener->asked_at != Time{};
    if (again) {
      const Duration since = std::min<Duration>(now - listener->asked_at, 2 * kAskInterval);
      const Duration cut_off = outage_ != nullptr ? outage_->within(now - since, now) : Duration{};
      listener->silent += since - cut_off;
    }
    listener->asked_at = now;
    if (listener->carrier == nullptr || (again && listener->silent < kAskInterval)) continue;
    const wire::Segment question{
        .kind = wire::SegmentKind::group_ask, .id = name_.id, .offset = sent_, .key = name_.key};
    if (carrier::post_copy(*listener->carrier, question, {})) listener->posted = true;
  }
  const Duration wait = (when_to_ask(now) - now) * (1u << std::min(asks_++, kBackoffMax));
  if (waits && asks_ == kAsksPatient) pace_.on_silence();
  ask_at_ = waits ? now + std::min<Duration>(wait, kAskInterval) : kNever;
}

bool SenderStream::transmit(Time now, link::Link* link, const link::Path& group) {
  starts_ |= define_starts() > 0;
  bool posted = now >= std::min(repair_at_, ask_at_);
  if (now >= repair_at_) repair(now, link, group);
  ready_at_ = kNever;
  send_new(now, link, group);
  starts_ |= define_starts() > 0;
  if (now >= repeat_at_) {
    repeat_at_ = kNever;
    // Listeners cannot detect the loss of the newest frame, because they see no gap. So the stream repeats
    // the newest frame, unless a message waits for reports: then it asks the listeners instead.
    const bool wanted = link != nullptr && frames_.base() != sent_ && !messages_.under_way() &&
                        multicast_wanted(sent_ - 1, 1, listeners_);
    if (wanted && frames_.repeat(now, *link, group, sent_ - 1)) pace_.on_sent(now, 1);
  }
  for (Listener* listener : listeners_) {
    if (!listener->started || (link != nullptr && !listener->by_unicast)) continue;
    posted |= send_by_unicast(now, *listener);
  }
  if (ask_at_ == kNever && !messages_.all_cut()) ask_at_ = now + kAskInterval;
  if (now >= ask_at_) ask(now);
  // No listener reports frames that were cut after the last listener had left and before the next listener
  // started. Such frames are released by this call of advance().
  const auto waits = [&](const Listener* listener) { return listener->started && listener->arrived < sent_; };
  if (std::none_of(listeners_.begin(), listeners_.end(), waits)) advance(now, std::nullopt);
  const auto started = [](const Listener* listener) { return listener->started; };
  if (!messages_.all_cut() && std::none_of(listeners_.begin(), listeners_.end(), started)) ready_at_ = now;
  return std::exchange(starts_, false) || posted;
}

Time SenderStream::deadline() const { return std::min({repair_at_, ask_at_, repeat_at_, ready_at_}); }

/// Called when a listener has reported more frames, or is removed. `age`: the time between the arrival of the
/// newest frame at the listener and its report; nullopt if there is no report.
void SenderStream::advance(Time now, std::optional<Duration> age) {
  std::uint64_t reached = sent_;
  for (const Listener* listener : listeners_) {
    if (listener->started) reached = std::min(reached, listener->arrived);
  }
  const std::uint64_t base = frames_.base();
  if (reached > base) {
    const KeptFrame& newest = frames_.at(reached - 1);
    if (age && !newest.repaired && now > newest.sent_at + *age) {
      const Duration round_trip = now - newest.sent_at - *age;
      rtt_.sample(round_trip);
      pace_.on_round_trip(now, round_trip);
    }
    if (pace_.train_over(reached)) {
      std::uint64_t most = 0;
      for (Listener* listener : listeners_) most = std::max(most, std::exchange(listener->missed, 0));
      pace_.judge(reached, sent_, most);
    }
    frames_.release_before(reached);
    asks_ = 0;
    ask_at_ = reached == sent_ ? kNever : when_to_ask(now);
  }
  finish_ready();
}

void SenderStream::finish_ready() {
  std::uint64_t delivered = frames_.base();
  for (const Listener* listener : listeners_) {
    if (listener->started) delivered = std::min(delivered, listener->window_end - kStreamWindow);
  }
  messages_.advance(frames_.base(), delivered);
}

}  // namespace cluster::group
