#include "shm/region_directory.h"

#include <utility>

#include "base/end_of_memory.h"

namespace cluster::shm {
namespace {

std::uint32_t live_state(const carrier::OfferedRegion& region) {
  return RegionEntry::kLive | (region.readable ? RegionEntry::kReadable : 0) |
         (region.writable ? RegionEntry::kWritable : 0) |
         (region.reads_served ? RegionEntry::kReadsServed : 0) |
         (region.writes_served ? RegionEntry::kWritesServed : 0);
}

}  // namespace

/// With the first region. False if there is no table: then this side's library serves all accesses.
bool RegionDirectory::open() {
  if (opened_) return static_cast<bool>(memory_);
  opened_ = true;
  std::string reason = "no place for a guard page";
  const bool tried = enough_memory_for([&] {
    guard_ = os::GuardPage::open(random_);
    if (guard_) memory_ = os::SharedMemory::create_unwritable(RegionEntries::kBytes, file_, reason);
  });
  if (!tried) reason.clear();
  if (!memory_) {
    log_.info("registered memory is offered to no peer of this node (%s): this side's library serves it",
              reason.c_str());
    return false;
  }
  entries_ = RegionEntries(memory_.bytes());
  for (Endpoint& endpoint : endpoints_) start(endpoint);
  return true;
}

void RegionDirectory::start(Endpoint& endpoint) {
  const RegionWelcome welcome{
      .guard = guard_.mark(), .reads_served = endpoint.reads_served, .writes_served = endpoint.writes_served};
  const bool started = enough_memory_for([&] {
    endpoint.server = std::make_unique<RegionServer>(endpoint.name, welcome, file_, users_, random_, log_);
    endpoint.server->start(keys_of_(endpoint.name));
  });
  if (!started) endpoint.server.reset();  // peers do without it: this side's library serves them
}

void RegionDirectory::offer(std::uint64_t key, const carrier::OfferedRegion& region) {
  const std::lock_guard guard(mutex_);
  if (!open()) return;
  const std::uint32_t number = entries_.find_vacant(key);
  if (number == RegionEntries::kEntries) {
    entries_.unlisted().fetch_add(1, std::memory_order_relaxed);
    return;
  }
  RegionEntry& entry = entries_.at(number);
  std::atomic_ref(entry.key).store(key, std::memory_order_relaxed);
  entry.base = region.base;
  entry.start = region.start;
  entry.length = region.length;
  std::atomic_ref(entry.generation).store(++generation_, std::memory_order_relaxed);
  entries_.state(number).store(live_state(region), std::memory_order_release);
}

void RegionDirectory::change(std::uint64_t key, const carrier::OfferedRegion& region) {
  const std::lock_guard guard(mutex_);
  if (!memory_) return;
  const std::uint32_t number = entries_.find(key, RegionEntry::kLive);
  if (number != RegionEntries::kEntries)
    entries_.state(number).store(live_state(region), std::memory_order_release);
}

/// While the uses are waited for, the entry is neither live nor vacant.
bool RegionDirectory::withdraw(std::uint64_t key) {
  std::uint32_t number;
  {
    const std::lock_guard guard(mutex_);
    if (!memory_) return true;
    number = entries_.find(key, RegionEntry::kLive | RegionEntry::kClosing);
    if (number == RegionEntries::kEntries) {
      entries_.unlisted().fetch_sub(1, std::memory_order_relaxed);
      return true;
    }
    entries_.state(number).store(RegionEntry::kClosing, std::memory_order_seq_cst);
  }
  if (!users_.wait_until_unused(number)) return false;
  entries_.state(number).store(RegionEntry::kVacant, std::memory_order_release);
  return true;
}

std::shared_ptr<void> RegionDirectory::serve(const SocketAddress& endpoint, bool reads_served,
                                             bool writes_served) {
  std::list<Endpoint>::iterator added;
  {
    const std::lock_guard guard(mutex_);
    added = endpoints_.insert(endpoints_.end(), {endpoint, reads_served, writes_served});
    if (memory_) start(*added);
  }
  // Where there is no memory for the handle, this ends the endpoint, which takes the lock.
  return std::shared_ptr<Endpoint>(&*added, [this, added](Endpoint*) { end(added); });
}

/// Outside the lock: it waits for accesses under way.
void RegionDirectory::end(std::list<Endpoint>::iterator endpoint) {
  std::unique_ptr<RegionServer> server;
  {
    const std::lock_guard guard(mutex_);
    server = std::move(endpoint->server);
    endpoints_.erase(endpoint);
  }
}

}  // namespace cluster::shm
