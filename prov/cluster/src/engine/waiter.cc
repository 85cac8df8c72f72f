#include "engine/waiter.h"

#include <array>
#include <utility>

namespace cluster::engine {

bool Waiter::open(const PeerTable& peers) {
  if (wait_set_ != nullptr) return true;
  if (link_ != nullptr && link_->descriptors().empty()) return false;
  std::unique_ptr<os::WaitSet> set = os::WaitSet::open();
  alarm_ = os::Alarm::open();
  bool complete = set != nullptr && alarm_ != nullptr && set->add(alarm_->descriptor(), alarm_.get());
  if (complete && link_ != nullptr) {
    for (const int descriptor : link_->descriptors()) complete = complete && set->add(descriptor, link_);
  }
  for (const int descriptor : group_descriptors_) complete = complete && set->add(descriptor, &multicast_);
  if (complete && listener_ != nullptr)
    complete = set->add(listener_->descriptor(), listener_) && set->add(listener_->doorbell(), &doorbell_);
  if (!complete) return false;
  wait_set_ = std::move(set);
  for (const std::unique_ptr<Peer>& peer : peers.all()) watch_all(*peer);
  return true;
}

void Waiter::watch_all(Peer& peer) {
  if (peer.outbox != nullptr) {
    watch(peer.outbox->connection().descriptor(), peer);
    watch(peer.outbox->connection().process_descriptor(), peer);
  }
  if (peer.inbox != nullptr) watch(peer.inbox->process_descriptor(), peer);
}

void Waiter::watch(int descriptor, Peer& peer) { add(descriptor, &peer); }

/// Threads that sleep have not armed the peer's doorbell: they are woken.
void Waiter::add(int descriptor, void* owner) {
  if (wait_set_ == nullptr) return;
  if (descriptor >= 0 && !wait_set_->add(descriptor, owner)) incomplete_ = true;
  changed_ = true;
  set_alarm(Time::min());
}

void Waiter::unwatch(int descriptor) {
  if (wait_set_ != nullptr && descriptor >= 0) wait_set_->remove(descriptor);
}

void Waiter::watch_group(int descriptor) {
  group_descriptors_.push_back(descriptor);
  add(descriptor, &multicast_);
}

void Waiter::unwatch_group(int descriptor) {
  std::erase(group_descriptors_, descriptor);
  unwatch(descriptor);
}

std::size_t Waiter::collect(std::span<Event> events) {
  std::array<os::WaitSet::Event, kEventsMax> ready;
  const std::size_t most = std::min(events.size(), ready.size());
  const std::size_t count = wait_set_->collect(std::span(ready).first(most));
  std::size_t kept = 0;
  for (std::size_t i = 0; i < count; ++i) {
    const auto [owner, trouble] = ready[i];
    if (owner == alarm_.get()) {
      set_alarm(kNever);
    } else if (owner == listener_) {
      events[kept++] = {Source::connection, nullptr};
    } else if (owner == &doorbell_) {
      events[kept++] = {Source::doorbell, nullptr};
    } else if (owner == &multicast_) {
      events[kept++] = {Source::multicast, nullptr};
    } else if (owner == link_) {
      if (trouble) events[kept++] = {Source::path_error, nullptr};
    } else {
      events[kept++] = {Source::peer, static_cast<Peer*>(owner)};
    }
  }
  return kept;
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

}  // namespace cluster::engine
