#include "api/event_wait_set.h"

#include <algorithm>

#include "api/event_source.h"
#include "api/wait.h"

namespace cluster::api {
namespace {

constinit fi_ops wait_fid_ops =
    fid_ops({.close = close_object<EventWaitSet>, .control = Method<&EventWaitSet::control>::entry});

constinit fi_ops_wait wait_ops = {
    .size = sizeof(fi_ops_wait),
    .wait = Method<&EventWaitSet::wait>::sleeping_entry,
};

}  // namespace

EventWaitSet::EventWaitSet(Fabric& fabric, std::unique_ptr<engine::Sleeper> sleeper)
    : fid_wait{{FI_CLASS_WAIT, nullptr, &wait_fid_ops}, &wait_ops},
      sleeper_(std::move(sleeper)),
      fabric_(fabric) {}

int EventWaitSet::open(Fabric& fabric, const fi_wait_attr* attributes, fid_wait** handle, void*) {
  const fi_wait_attr& wanted = attributes_at(attributes);
  const int object = number_of(wanted.wait_obj);
  if (wanted.flags != 0 || (object != FI_WAIT_UNSPEC && object != FI_WAIT_FD)) return -FI_ENOSYS;
  std::unique_ptr<engine::Sleeper> sleeper = fabric.platform().open_sleeper();
  if (sleeper == nullptr) return -FI_EMFILE;
  *handle = new EventWaitSet(fabric, std::move(sleeper));
  return 0;
}

/// Wakes a thread that waits, because that thread has not armed the new member.
void EventWaitSet::add(struct fid& member, const engine::Sleeper& sleeper) {
  const std::lock_guard guard(mutex_);
  members_.push_back(&member);
  sleeper_->add(sleeper);
  sleeper_->wake();
}

void EventWaitSet::remove(const struct fid& member, const engine::Sleeper& sleeper) {
  const std::lock_guard guard(mutex_);
  std::erase(members_, &member);
  sleeper_->remove(sleeper);
}

bool EventWaitSet::has_events() {
  const std::lock_guard guard(mutex_);
  return std::any_of(members_.begin(), members_.end(),
                     [](struct fid* member) { return api::has_events(*member); });
}

int EventWaitSet::arm() {
  const std::lock_guard guard(mutex_);
  sleeper_->clear();
  const bool armed = std::all_of(members_.begin(), members_.end(), [](struct fid* member) {
    return with_event_source(*member, [](auto& source) { return source.arm(); }) == 0;
  });
  if (!armed) sleeper_->wake();  // members behind the first one that has events are not armed
  return armed ? 0 : -FI_EAGAIN;
}

int EventWaitSet::wait(int timeout) {
  const ssize_t result = wait_until(
      *this, timeout, [this]() -> ssize_t { return has_events() ? 0 : -FI_EAGAIN; },
      [this](engine::Sleeper&) { return arm() == 0 ? kForever : 0ms; });
  return result == -FI_EAGAIN ? -FI_ETIMEDOUT : static_cast<int>(result);
}

int EventWaitSet::control(int command, void* argument) {
  if (command != FI_GETWAITOBJ && command != FI_GETWAIT) return -FI_ENOSYS;
  if (argument == nullptr) return -FI_EINVAL;
  if (command == FI_GETWAITOBJ) {
    *static_cast<fi_wait_obj*>(argument) = FI_WAIT_FD;
  } else {
    *static_cast<int*>(argument) = sleeper_->descriptor();
  }
  return 0;
}

WaitSetMembership::~WaitSetMembership() {
  if (set_) set_->remove(*member_, *sleeper_);
}

int WaitSetMembership::join(struct fid& member, Progress& progress, fid_wait* set) {
  if (progress.wait_object() != FI_WAIT_SET) return 0;
  sleeper_ = progress.sleeper();
  if (sleeper_ == nullptr) return -FI_EMFILE;
  EventWaitSet& joined = object_of<EventWaitSet>(set);
  joined.add(member, *sleeper_);
  member_ = &member;
  set_.set(joined);
  return 0;
}

}  // namespace cluster::api
