#include "engine/address_table.h"

namespace cluster::engine {

AddressTable::Handle AddressTable::insert(const SocketAddress& address) {
  const std::lock_guard guard(mutex_);
  if (const auto found = handles_.find(address); found != handles_.end()) {
    ++entries_[found->second].uses;
    return found->second;
  }
  Handle handle = entries_.size();
  if (free_.empty()) {
    entries_.push_back({address, 1});
  } else {
    handle = free_.top();
    free_.pop();
    entries_[handle] = {address, 1};
  }
  handles_.emplace(address, handle);
  generation_.fetch_add(1, std::memory_order_release);
  return handle;
}

bool AddressTable::remove(Handle handle) {
  const std::lock_guard guard(mutex_);
  if (handle >= entries_.size() || entries_[handle].uses == 0) return false;
  Entry& entry = entries_[handle];
  if (--entry.uses > 0) return true;
  handles_.erase(entry.address);
  entry.address = {};
  free_.push(handle);
  generation_.fetch_add(1, std::memory_order_release);
  return true;
}

SocketAddress AddressTable::lookup(Handle handle) const {
  const std::lock_guard guard(mutex_);
  return handle < entries_.size() ? entries_[handle].address : SocketAddress{};
}

std::optional<AddressTable::Handle> AddressTable::find(const SocketAddress& address) const {
  const std::lock_guard guard(mutex_);
  const auto found = handles_.find(address);
  if (found == handles_.end()) return std::nullopt;
  return found->second;
}

}  // namespace cluster::engine
