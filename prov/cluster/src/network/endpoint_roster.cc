#include "network/endpoint_roster.h"

#include <algorithm>
#include <cstring>
#include <utility>

namespace cluster::network {

EndpointRoster::Entry::Entry(std::shared_ptr<EndpointRoster> roster, const SocketAddress& name)
    : roster_(std::move(roster)), name_(name) {
  if (roster_ == nullptr) return;
  const std::lock_guard guard(roster_->mutex_);
  roster_->listed_.push_back({name_});
}

EndpointRoster::Entry::~Entry() {
  if (roster_ == nullptr) return;
  const std::lock_guard guard(roster_->mutex_);
  roster_->listed_.erase(std::ranges::find(roster_->listed_, name_, &Listed::name));
}

void EndpointRoster::Entry::set_published() {
  if (roster_ == nullptr) return;
  const std::lock_guard guard(roster_->mutex_);
  for (Listed& one : roster_->listed_) one.published |= one.name == name_;
}

SocketAddress EndpointRoster::sibling_of(const SocketAddress& name) const {
  const std::lock_guard guard(mutex_);
  if (listed_.empty()) return {};
  const auto published = std::ranges::find(listed_, true, &Listed::published);
  const SocketAddress& known = published != listed_.end() ? published->name : listed_.front().name;
  return known == name ? SocketAddress{} : known;
}

bool EndpointRoster::contains(const wire::RailBlock& name) const {
  const std::lock_guard guard(mutex_);
  return std::ranges::any_of(listed_, [&name](const Listed& one) {
    const wire::RailBlock block = wire::rail_block(one.name);
    return std::memcmp(&block, &name, sizeof block) == 0;
  });
}

}  // namespace cluster::network
