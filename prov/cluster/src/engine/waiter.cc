#include "engine/waiter.h"

#include <array>
#include <cstdint>
#include <utility>

namespace cluster::engine {
namespace {

/// The owner of a descriptor that tells of the peer's end is marked by a bit that no pointer to a peer has.
constexpr std::uintptr_t kEnd = 1;
static_assert(alignof(Peer) > kEnd);

void* end_of(Peer* peer) { return reinterpret_cast<std::byte*>(peer) + kEnd; }
bool is_end(const void* owner) { return (reinterpret_cast<std::uintptr_t>(owner) & kEnd) != 0; }
Peer* peer_of(void* owner) {
  return reinterpret_cast<Peer*>(static_cast<std::byte*>(owner) - (is_end(owner) ? kEnd : 0));
}

}  // namespace

bool Waiter::open(const PeerTable& peers) {
  if (wait_set_ != nullptr) return true;
  if (link_ != nullptr && link_->descriptors().empty()) return false;
  std::unique_ptr<os::WaitSet> set = os::WaitSet::open();
  alarm_ = os::Alarm::open();
  bool complete = set != nullptr && alarm_ != nullptr && set->add(alarm_->descriptor(), alarm_.get());
  if (complete && link_ != nullptr) {
    for (const int descriptor : link_->descriptors()) complete = complete && set->add(descriptor, link_);
  }
  if (complete && listener_ != nullptr) complete = set->add(listener_->descriptor(), listener_);
  if (!complete) return false;
  wait_set_ = std::move(set);
  for (const std::unique_ptr<Peer>& peer : peers.all()) {
    if (peer->outbox != nullptr) watch(peer->outbox->descriptor(), *peer);
    if (peer->inbox == nullptr) continue;
    watch(peer->inbox->descriptor(), *peer);
    watch_process(peer->inbox->process_descriptor(), *peer);
  }
  return true;
}

void Waiter::watch(int descriptor, Peer& peer) { add(descriptor, &peer); }

void Waiter::watch_process(int descriptor, Peer& peer) {
  if (descriptor >= 0) add(descriptor, end_of(&peer));
}

/// Threads that sleep have not armed its doorbell: they are woken.
void Waiter::add(int descriptor, void* owner) {
  if (wait_set_ == nullptr) return;
  if (!wait_set_->add(descriptor, owner)) incomplete_ = true;
  changed_ = true;
  set_alarm(Time::min());
}

void Waiter::unwatch(int descriptor) {
  if (wait_set_ != nullptr && descriptor >= 0) wait_set_->remove(descriptor);
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
      events[kept++] = {Source::connection, nullptr, trouble};
    } else if (owner == link_) {
      if (trouble) events[kept++] = {Source::path_error, nullptr, trouble};
    } else {
      events[kept++] = {Source::peer, peer_of(owner), trouble || is_end(owner)};
    }
  }
  return kept;
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
