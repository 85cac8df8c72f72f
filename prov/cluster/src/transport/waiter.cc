#include "transport/waiter.h"

#include <algorithm>
#include <array>
#include <span>
#include <utility>

namespace cluster::transport {
namespace {

/// The time of an alarm that has gone off. It is in the past, and differs from the time of an alarm that is
/// set to go off at once.
constexpr Time kGoneOff = Time::min() + Duration(1);

}  // namespace

bool Waiter::open() {
  if (wait_set_ != nullptr) return true;
  if (forbidden_) return false;
  std::unique_ptr<os::WaitSet> set = os::WaitSet::open();
  alarm_ = os::Alarm::open();
  bool complete = set != nullptr && alarm_ != nullptr && set->add(alarm_->descriptor(), nullptr);
  for (const Watched& each : watched_) complete = complete && set->add(each.descriptor, each.source);
  if (!complete) return false;
  wait_set_ = std::move(set);
  return true;
}

/// Sets the alarm to go off at once, because threads that already sleep have not armed the new source.
void Waiter::watch(int descriptor, WakeSource& source) {
  if (descriptor >= 0) watched_.push_back({descriptor, &source});
  if (wait_set_ == nullptr) return;
  if (descriptor >= 0 && !wait_set_->add(descriptor, &source)) incomplete_ = true;
  changed_ = true;
  set_alarm(Time::min());
}

void Waiter::unwatch(int descriptor) {
  if (descriptor < 0) return;
  std::erase_if(watched_, [=](const Watched& each) { return each.descriptor == descriptor; });
  if (wait_set_ != nullptr) wait_set_->remove(descriptor);
}

void Waiter::dispatch() {
  std::array<os::WaitSet::Event, kEventsMax> ready;
  const std::size_t count = wait_set_->collect(ready);
  for (const auto& [owner, trouble] : std::span(ready).first(count)) {
    if (owner == nullptr) {
      alarm_at_ = kGoneOff;
    } else {
      static_cast<WakeSource*>(owner)->on_ready(trouble);
    }
  }
}

bool Waiter::quiet() const {
  if (!may_sleep() || !can_sleep()) return false;
  std::array<os::WaitSet::Event, 1> event;
  return wait_set_->collect(event) == 0;
}

void Waiter::set_alarm(Time when) {
  alarm_at_ = when;
  alarm_->set(when);
}

void Waiter::cancel_alarm() {
  alarm_->set(kNever);
  alarm_at_ = Time::min();
}

}  // namespace cluster::transport
