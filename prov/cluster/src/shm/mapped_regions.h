// Which regions of one peer its initiator has mapped (os/peer_mapping.h), by the number of their entry in the
// peer's table. Looking for a region's file costs some hundred microseconds, as much as fifty copies by the
// kernel: it is done once a region, when that has been used kUsesBefore times.
//
// A mapping belongs to one registration, known by the generation of the entry: a region that is closed and registered again may
// lie elsewhere. A mapping whose region is gone keeps memory alive that the peer may have freed. It is dropped when its
// entry turns out to belong to another region, or when the next region is mapped.
#pragma once

#include <unordered_map>

#include "os/peer_mapping.h"
#include "shm/region_layout.h"

namespace cluster::shm {

class MappedRegions {
 public:
  static constexpr std::uint32_t kUsesBefore = 16;
  static constexpr std::size_t kMappingsMax = 256;  ///< a process has some ten thousand in all

  /// How the process of the peer is found.
  struct Process {
    int number = 0;
    os::GuardMark guard{};
  };

  void set_process(const Process& process) { process_ = process; }
  /// Part of the region of an entry that is in use; null: it is not mapped. This counts as a use.
  std::byte* at(const RegionEntries& entries, std::uint32_t number, std::uint64_t offset,
                std::size_t length) {
    if (number == last_number_ && entries.at(number).generation == last_->generation &&
        last_->mapping.ready()) [[likely]]
      return last_->mapping.begin() + offset;
    return at_another(entries, number, offset, length);
  }
  /// The entry of the key if it is likely to be mapped, it need not be in use; kEntries: it is not.
  std::uint32_t find(const RegionEntries& entries, std::uint64_t key) const {
    if (mappings_ == 0) return RegionEntries::kEntries;
    const bool last = last_->key == key && last_->mapping;
    return last ? last_number_ : find_other(entries, key);
  }

 private:
  struct View {
    std::uint64_t generation = 0;
    std::uint64_t key = 0;
    std::uint32_t uses = 0;  ///< so far; not counted any more once the region's file was looked for
    os::PeerMapping mapping{};
  };

  std::uint32_t find_other(const RegionEntries& entries, std::uint64_t key) const;
  std::byte* at_another(const RegionEntries& entries, std::uint32_t number, std::uint64_t offset,
                        std::size_t length);
  void select(const RegionEntries& entries, std::uint32_t number);
  std::byte* use(const RegionEntries& entries, std::uint64_t offset, std::size_t length);
  void forget_closed(const RegionEntries& entries);

  Process process_;
  std::unordered_map<std::uint32_t, View> views_;  ///< nodes stay where they are
  std::uint32_t last_number_ = ~std::uint32_t{0};
  View* last_ = nullptr;  ///< that of last_number_
  std::size_t mappings_ = 0;
};

}  // namespace cluster::shm
