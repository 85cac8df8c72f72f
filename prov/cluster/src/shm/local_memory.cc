#include "shm/local_memory.h"

#include <algorithm>
#include <utility>

#include "base/on_exit.h"

namespace cluster::shm {
namespace {

using carrier::Outcome;

/// This side executes at most this many writes between hold() and resume() (recall.h). During this time the
/// target can take no segments.
constexpr std::size_t kHeldWrites = 32;

/// Returns true if `one` is the earlier number. Numbers wrap around.
bool before(Recall::Number one, Recall::Number other) { return static_cast<std::int32_t>(one - other) < 0; }

}  // namespace

template <typename Visit>
void PostedWrites::each(Visit&& visit) {
  // `visit` posts nothing, so the list does not change during the loop.
  bool complete = false;
  for (LocalMemory* const peer : peers_) {
    visit(*peer);
    complete |= peer->writes_.empty();
  }
  if (!complete) return;
  std::erase_if(peers_, [](LocalMemory* peer) {
    peer->listed_ = !peer->writes_.empty();
    return !peer->listed_;
  });
}

void PostedWrites::settle(std::optional<std::uint64_t> ticks) {
  each([&](LocalMemory& peer) { peer.settle(ticks); });
}

bool PostedWrites::recall() {
  bool all = true;
  each([&](LocalMemory& peer) {
    peer.report_taken();
    if (!peer.writes_.empty()) all &= peer.take_back();
  });
  return all;
}

LocalMemory::~LocalMemory() {
  if (listed_) std::erase(posted_->peers_, this);
}

Outcome LocalMemory::put(const carrier::RemoteRange& to, const Gather& source, carrier::AccessTerms terms,
                         carrier::AccessTicket ticket) {
  return put_by(*this, to, source, terms, ticket);
}

Outcome LocalMemory::get(const carrier::RemoteRange& from, const Scatter& target, carrier::AccessTerms terms,
                         carrier::AccessTicket) {
  return get_by(*this, from, target, terms);
}

/// Returns true if half a ring of segments was posted since the oldest pending write. If so, this side must
/// not post another write, because the ring keeps refusals only for a limited number of segments.
bool LocalMemory::full() const {
  return !writes_.empty() && ring_->next() - writes_.front().number >= ring_->capacity() / 2;
}

/// Returns true if the target polls, as far as this side knows, and full() is false.
bool LocalMemory::may_post() {
  if (ring_ == nullptr) return false;
  if (inattentive_) {
    if (ring_->taken() == taken_) return false;
    inattentive_ = false;
  }
  if (!full()) [[likely]]
    return true;
  report_taken();
  return !full();
}

/// Allocates the memory for the record of one more write, so that post() need not allocate after it has
/// written to the ring.
[[gnu::noinline]] void LocalMemory::reserve() {
  if (writes_.free() == 0) writes_.grow();
  std::vector<LocalMemory*>& peers = posted_->peers_;
  if (peers.size() == peers.capacity()) peers.reserve(2 * peers.size() + 1);
}

/// Posts the write to the ring. If the ring has no space, does nothing and returns false.
bool LocalMemory::post(const carrier::RemoteRange& to, const Gather& source, carrier::AccessTicket ticket) {
  const wire::WriteHeader header{.length = static_cast<std::uint32_t>(to.length),
                                 .address = to.address,
                                 .key = to.key,
                                 .unanswered = true};
  if (writes_.free() == 0 || posted_->peers_.size() == posted_->peers_.capacity()) [[unlikely]]
    reserve();
  const Recall::Number number = ring_->next();
  if (!ring_->post_write(header, source)) return false;
  if (writes_.empty()) moved_at_.reset();
  if (!std::exchange(listed_, true)) posted_->peers_.push_back(this);
  writes_.push_within() = {number, to.key, to.address, ticket};
  return true;
}

void LocalMemory::settle(std::optional<std::uint64_t> ticks) {
  const std::size_t left = writes_.size();
  report_taken();
  if (writes_.empty() || !ticks) return;
  if (writes_.size() != left || !moved_at_) {
    moved_at_ = ticks;
  } else if (*ticks - *moved_at_ > kPatience) {
    take_back();
    moved_at_ = ticks;
  }
}

/// Takes back and executes the pending writes in order, up to the first that only the target can execute.
/// Returns false if the target is taking segments now.
bool LocalMemory::take_back() {
  for (bool suited = true; suited && !writes_.empty();) {
    if (!ring_->hold()) return false;
    const OnExit resume([this] { ring_->resume(); });
    suited = take_back_some();
  }
  return true;
}

/// Takes back and executes up to kHeldWrites writes while the target is held. Returns false if only the
/// target can execute the next write.
bool LocalMemory::take_back_some() {
  report_taken();
  const Recall::Number taken = ring_->taken();
  for (std::size_t left = kHeldWrites; left > 0 && !writes_.empty(); --left) {
    const Write& front = writes_.front();
    const ConstBytes payload = ring_->payload(front.number);
    const Outcome outcome = write(front.key, front.address, {{&payload, 1}, 0, payload.size()});
    if (outcome == Outcome::unsuited) return false;
    ring_->withdraw(front.number);
    ++posted_->counters_.rma_alone;
    inattentive_ = true;
    taken_ = taken;  // if the target later passes the withdrawn writes, it polls again
    report_front(outcome == Outcome::done ? Status::ok : Status::access);
  }
  return true;
}

void LocalMemory::report_taken() {
  const Recall::Number taken = ring_->taken();
  while (!writes_.empty() && before(writes_.front().number, taken)) {
    report_front(ring_->take_refusal(writes_.front().number) ? Status::access : Status::ok);
  }
}

void LocalMemory::report_front(Status status) {
  const carrier::AccessTicket ticket = writes_.front().ticket;
  writes_.pop_front();
  posted_->reports_.over(*channel_, ticket, status);
}

void LocalMemory::settle() {
  if (writes_.empty()) return;
  const bool held = ring_->hold();
  report_taken();
  if (held) ring_->resume();
}

void LocalMemory::end(Status status) {
  settle();
  while (!writes_.empty()) report_front(status);
}

}  // namespace cluster::shm
