// The engine falls asleep: arm() makes sure that its descriptor becomes readable as soon as poll() has
// something to do. It stands for everything that can happen to an engine: frames and path_errors (the
// link's sockets), segments and room in rings (bells), connections and deaths (local sockets), deadlines
// (an alarm).
//
// Many may sleep on one engine: threads in calls that wait, applications in select, the progress thread. None
// of them misses anything, by this invariant: as long as somebody sleeps, every source either is armed
// or keeps the descriptor readable. What is readable stays so until arm() deals with it, and arm() arms
// again whatever it has dealt with. Whatever other threads change meanwhile (a new ring, an earlier
// deadline, a message to oneself) goes past mind_sleepers(), which moves the alarm. So nothing has to be
// disarmed on waking; at worst an awake engine gets one knock per ring in vain.
#include <array>

#include "engine/core.h"
#include "os/process_fence.h"

namespace cluster::engine {
namespace {

constexpr std::size_t kEventsPerArm = 32;
/// A process that has connected says its first words right behind; it may be stopped in between.
constexpr Duration kExpectation = 1ms;

}  // namespace

bool Core::watch_everything() {
  if (parts_.link != nullptr && parts_.link->descriptors().empty()) return false;
  std::unique_ptr<os::WaitSet> set = os::WaitSet::open();
  alarm_clock_ = os::Alarm::open();
  bool complete =
      set != nullptr && alarm_clock_ != nullptr && set->add(alarm_clock_->descriptor(), alarm_clock_.get());
  if (complete && parts_.link != nullptr) {
    for (const int descriptor : parts_.link->descriptors()) {
      complete = complete && set->add(descriptor, parts_.link.get());
    }
  }
  if (complete && parts_.host != nullptr) complete = set->add(parts_.host->descriptor(), parts_.host.get());
  if (!complete) return false;
  watch_ = std::move(set);
  for (const std::unique_ptr<Peer>& peer : peers_.all()) {
    if (peer->outbox != nullptr) watch(peer->outbox->descriptor(), *peer);
    if (peer->inbox != nullptr) watch(peer->inbox->descriptor(), *peer);
  }
  return true;
}

int Core::descriptor() {
  const bool there = watch_ != nullptr || watch_everything();
  return there ? watch_->descriptor() : -1;
}

bool Core::arm() {
  if (watch_ == nullptr && !watch_everything()) return false;
  heed_events();
  unasked_ = false;
  ask_for_knocks();
  if (parts_.link != nullptr) parts_.link->before_sleep();
  if (poll() || unasked_ || unwatched_) return false;
  Time wake = next_deadline();
  if (parts_.host != nullptr && parts_.host->has_half_open()) {
    wake = std::min(wake, parts_.environment.clock.now() + kExpectation);
  }
  if (wake != alarm_) set_alarm(wake);
  return true;
}

void Core::heed_events() {
  std::array<os::WaitSet::Event, kEventsPerArm> events;
  const std::size_t count = watch_->collect(events);
  for (std::size_t i = 0; i < count; ++i) {
    const auto [owner, trouble] = events[i];
    if (owner == alarm_clock_.get()) {
      set_alarm(kNever);
    } else if (owner == parts_.host.get()) {
      accept_local();
    } else if (owner == parts_.link.get()) {
      if (trouble) hear_complaints(parts_.environment.clock.now());
    } else {
      Peer& peer = *static_cast<Peer*>(owner);
      if (peer.inbox != nullptr) peer.inbox->clear_doorbell();
      if (peer.outbox != nullptr) peer.outbox->clear_doorbell();
      if (trouble) check_local_death(peer);
    }
  }
}

void Core::ask_for_knocks() {
  bool news = false;
  for (Peer* peer : locals_) news |= peer->inbox->request_doorbell();
  if (messenger_.busy()) {
    for (const std::unique_ptr<Peer>& peer : peers_.all()) {
      if (peer->outbox != nullptr && peer->channel.busy) news |= peer->outbox->request_doorbell();
    }
  }
  if (news) os::fence_processes();
}

void Core::watch(int descriptor, Peer& peer) {
  if (watch_ == nullptr) return;
  if (!watch_->add(descriptor, &peer)) unwatched_ = true;
  unasked_ = true;
  set_alarm(Time::min());  // whoever sleeps has not asked here
}

void Core::unwatch(int descriptor) {
  if (watch_ != nullptr) watch_->remove(descriptor);
}

void Core::set_alarm(Time when) {
  alarm_ = when;
  alarm_clock_->set(when);
}

/// Somebody may be asleep, and does not know what has just been done here.
void Core::tell_sleepers() {
  const bool now = self_.waiting() || (messenger_.busy() && !locals_.empty()) || !doomed_.empty();
  const Time wake = now ? Time::min() : next_deadline();
  if (wake < alarm_) set_alarm(wake);
}

}  // namespace cluster::engine
