#include "transport/address_table.h"

#include <bit>
#include <new>

namespace cluster::transport {
namespace {

constexpr std::size_t kBucketsFirst = 64;
constexpr std::size_t kEntriesPerBucket = 2;
constexpr std::uint64_t kSpread = 0x9e3779b97f4a7c15;  // 2^64 divided by the golden ratio (Knuth)

std::size_t place_of(const SocketAddress& address, std::size_t buckets) {
  return (address.hash() * kSpread) >> (64 - std::countr_zero(buckets));
}

}  // namespace

std::uint32_t& AddressTable::bucket(const SocketAddress& address) {
  return buckets_[place_of(address, buckets_.size())];
}

std::uint32_t AddressTable::find_entry(const SocketAddress& address) const {
  if (buckets_.empty()) return kNone;
  std::uint32_t number = buckets_[place_of(address, buckets_.size())];
  while (number != kNone && entries_[number].address != address) number = entries_[number].next;
  return number;
}

void AddressTable::link(std::uint32_t number) {
  std::uint32_t& first = bucket(entries_[number].address);
  entries_[number].next = first;
  first = number;
}

void AddressTable::grow_buckets() {
  std::vector<std::uint32_t> wider(buckets_.empty() ? kBucketsFirst : buckets_.size() * 2, kNone);
  buckets_.swap(wider);
  for (std::uint32_t number = 0; number < entries_.size(); ++number) {
    if (!entries_[number].address.empty()) link(number);
  }
}

/// If the table will more than double, allocates one block of the right size. Without this call, the vector
/// would grow in several steps and copy its entries at each step.
void AddressTable::expect(std::size_t further) {
  const std::lock_guard guard(mutex_);
  if (further > entries_.size()) entries_.reserve(entries_.size() + further);
}

AddressTable::Handle AddressTable::insert(const SocketAddress& address) {
  const std::lock_guard guard(mutex_);
  if (const std::uint32_t found = find_entry(address); found != kNone) {
    ++further_uses_[found];
    return found;
  }
  if (entries_.size() >= buckets_.size() * kEntriesPerBucket) grow_buckets();
  Handle handle = entries_.size();
  if (free_.empty()) {
    if (handle == kNone) throw std::bad_alloc();
    entries_.push_back({address});
  } else {
    handle = free_.top();
    free_.pop();
    entries_[handle].address = address;
  }
  link(static_cast<std::uint32_t>(handle));
  generation_.fetch_add(1, std::memory_order_release);
  return handle;
}

bool AddressTable::remove(Handle handle) {
  const std::lock_guard guard(mutex_);
  if (handle >= entries_.size() || entries_[handle].address.empty()) return false;
  if (const auto further = further_uses_.find(handle); further != further_uses_.end()) {
    if (--further->second == 0) further_uses_.erase(further);
    return true;
  }
  free_.push(handle);
  user_ids_.erase(handle);
  Entry& entry = entries_[handle];
  std::uint32_t* number = &bucket(entry.address);
  while (*number != handle) number = &entries_[*number].next;
  *number = entry.next;
  entry = {};
  generation_.fetch_add(1, std::memory_order_release);
  return true;
}

SocketAddress AddressTable::lookup(Handle handle) const {
  const std::lock_guard guard(mutex_);
  return handle < entries_.size() ? entries_[handle].address : SocketAddress{};
}

AddressTable::Handle AddressTable::handles_end() const {
  const std::lock_guard guard(mutex_);
  return entries_.size();
}

std::optional<AddressTable::Handle> AddressTable::find(const SocketAddress& address) const {
  const std::lock_guard guard(mutex_);
  const std::uint32_t found = find_entry(address);
  if (found == kNone) return std::nullopt;
  return found;
}

bool AddressTable::set_user_id(Handle handle, std::uint64_t id) {
  const std::lock_guard guard(mutex_);
  if (handle >= entries_.size() || entries_[handle].address.empty()) return false;
  user_ids_[handle] = id;
  generation_.fetch_add(1, std::memory_order_release);
  return true;
}

AddressTable::Sender AddressTable::find_sender(const SocketAddress& address, std::uint64_t none) const {
  const std::lock_guard guard(mutex_);
  const std::uint32_t found = find_entry(address);
  if (found == kNone) return {none, none};
  const auto id = user_ids_.find(found);
  if (id != user_ids_.end()) return {found, id->second};
  return {found, user_ids_required_ ? none : found};
}

}  // namespace cluster::transport
