#include "api/poll_set.h"

#include <algorithm>

#include "api/event_source.h"

namespace cluster::api {
namespace {

constinit fi_ops poll_fid_ops = fid_ops({.close = close_object<PollSet>});

constinit fi_ops_poll poll_ops = {
    .size = sizeof(fi_ops_poll),
    .poll = Method<&PollSet::poll>::entry,
    .poll_add = Method<&PollSet::add>::entry,
    .poll_del = Method<&PollSet::remove>::entry,
};

void release(struct fid& object) {
  with_event_source(object, [](auto& source) {
    source.drop_ref();
    return 0;
  });
}

}  // namespace

PollSet::PollSet(Domain& domain)
    : fid_poll{{FI_CLASS_POLL, nullptr, &poll_fid_ops}, &poll_ops},
      backoff_(domain.platform()),
      domain_(domain) {}

PollSet::~PollSet() {
  for (struct fid* const member : members_) release(*member);
}

int PollSet::open(Domain& domain, const fi_poll_attr* attributes, fid_poll** handle, void*) {
  if (attributes_at(attributes).flags != 0) return -FI_ENOSYS;
  *handle = new PollSet(domain);
  return 0;
}

int PollSet::add(struct fid* object, std::uint64_t flags) {
  if (object == nullptr || flags != 0) return -FI_EINVAL;
  const std::lock_guard guard(mutex_);
  if (std::find(members_.begin(), members_.end(), object) != members_.end()) return -FI_EALREADY;
  return with_event_source(*object, [&](auto& source) {
    members_.push_back(object);
    source.add_ref();
    return 0;
  });
}

int PollSet::remove(struct fid* object, std::uint64_t flags) {
  if (flags != 0) return -FI_EINVAL;
  const std::lock_guard guard(mutex_);
  if (std::erase(members_, object) == 0) return -FI_EINVAL;
  release(*object);
  return 0;
}

int PollSet::poll(void** contexts, int count) {
  if (count < 0 || (count > 0 && contexts == nullptr)) return -FI_EINVAL;
  const int found = collect({contexts, static_cast<std::size_t>(count)});
  if (found > 0) {
    backoff_.record_event();
  } else {
    backoff_.record_idle([this] { collect({}); });
  }
  return found;
}

/// Visits all members even if `contexts` is full, because each visit makes progress.
int PollSet::collect(std::span<void*> contexts) {
  const std::lock_guard guard(mutex_);
  std::size_t found = 0;
  for (struct fid* const member : members_) {
    if (has_events(*member) && found < contexts.size()) contexts[found++] = member->context;
  }
  return static_cast<int>(found);
}

}  // namespace cluster::api
