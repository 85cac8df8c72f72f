#include "shm/mapped_regions.h"

namespace cluster::shm {

std::uint32_t MappedRegions::find_other(const RegionEntries& entries, std::uint64_t key) const {
  const std::uint32_t number = entries.find(key, RegionEntry::kLive);
  const auto found = views_.find(number);
  return found != views_.end() && found->second.mapping ? number : RegionEntries::kEntries;
}

std::byte* MappedRegions::at_another(const RegionEntries& entries, std::uint32_t number, std::uint64_t offset,
                                     std::size_t length) {
  if (number != last_number_ || entries.at(number).generation != last_->generation) select(entries, number);
  if (last_->mapping) return last_->mapping.at(offset, length);
  const bool looked_for = last_->uses >= kUsesBefore;
  return looked_for ? nullptr : use(entries, offset, length);
}

void MappedRegions::select(const RegionEntries& entries, std::uint32_t number) {
  View& view = views_[number];
  const std::uint64_t generation = entries.at(number).generation;
  if (view.generation != generation) {
    mappings_ -= static_cast<bool>(view.mapping);
    view = {.generation = generation, .key = entries.at(number).key};
  }
  last_ = &view;
  last_number_ = number;
}

/// A region that is not mapped, or not yet.
std::byte* MappedRegions::use(const RegionEntries& entries, std::uint64_t offset, std::size_t length) {
  if (++last_->uses < kUsesBefore) return nullptr;
  forget_closed(entries);
  const RegionEntry& entry = entries.at(last_number_);
  if (mappings_ == kMappingsMax || entry.length == kAllMemory) return nullptr;
  last_->mapping = os::PeerMapping::open(process_.number, process_.guard, entry.base, entry.length);
  if (!last_->mapping) return nullptr;
  ++mappings_;
  return last_->mapping.at(offset, length);
}

/// All but the last one, which is in use.
void MappedRegions::forget_closed(const RegionEntries& entries) {
  std::erase_if(views_, [&](const auto& each) {
    const auto& [number, view] = each;
    const bool live = (entries.state(number).load(std::memory_order_acquire) & RegionEntry::kLive) != 0 &&
                      std::atomic_ref(entries.at(number).generation).load() == view.generation;
    if (live || &view == last_) return false;
    mappings_ -= static_cast<bool>(view.mapping);
    return true;
  });
}

}  // namespace cluster::shm
