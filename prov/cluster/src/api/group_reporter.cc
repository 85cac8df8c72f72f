#include "api/group_reporter.h"

#include <mutex>

namespace cluster::api {

void GroupReporter::add(fid_mc& group) {
  const std::lock_guard guard(lock_);
  const auto [place, fresh] = groups_.try_emplace(group.fi_addr, &group);
  if (fresh) return;
  place->second = &group;
  report(group);
}

void GroupReporter::remove(const fid_mc& group) {
  const std::lock_guard guard(lock_);
  groups_.erase(group.fi_addr);
}

void GroupReporter::group_joined(std::uint64_t group) {
  const std::lock_guard guard(lock_);
  const auto [place, early] = groups_.try_emplace(group, nullptr);
  if (!early) report(*place->second);
}

void GroupReporter::report(fid_mc& group) {
  const fi_eq_entry entry{&group.fid, group.fid.context, 0};
  eq_.write(FI_JOIN_COMPLETE, &entry, sizeof entry, 0);
}

}  // namespace cluster::api
