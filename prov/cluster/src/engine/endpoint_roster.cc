#include "engine/endpoint_roster.h"

#include <algorithm>
#include <cstring>
#include <utility>

namespace cluster::engine {

EndpointRoster::Entry::Entry(std::shared_ptr<EndpointRoster> roster, const SocketAddress& name)
    : roster_(std::move(roster)), name_(name) {
  if (roster_ == nullptr) return;
  const std::lock_guard guard(roster_->mutex_);
  roster_->listed_.push_back({name_});
}

EndpointRoster::Entry::~Entry() {
  if (roster_ == nullptr) return;
  const std::lock_guard guard(roster_->mutex_);
  std::erase_if(roster_->listed_, [this](const Listed& one) { return one.name == name_; });
}

void EndpointRoster::Entry::set_told() {
  if (roster_ == nullptr) return;
  const std::lock_guard guard(roster_->mutex_);
  for (Listed& one : roster_->listed_) one.told |= one.name == name_;
}

SocketAddress EndpointRoster::sibling_of(const SocketAddress& name) const {
  const std::lock_guard guard(mutex_);
  if (listed_.empty()) return {};
  const auto told = std::ranges::find(listed_, true, &Listed::told);
  const SocketAddress& known = told != listed_.end() ? told->name : listed_.front().name;
  return known == name ? SocketAddress{} : known;
}

bool EndpointRoster::contains(const wire::RailBlock& name) const {
  const std::lock_guard guard(mutex_);
  return std::ranges::any_of(listed_, [&name](const Listed& one) {
    const wire::RailBlock block = wire::rail_block(one.name);
    return std::memcmp(&block, &name, sizeof block) == 0;
  });
}

}  // namespace cluster::engine
