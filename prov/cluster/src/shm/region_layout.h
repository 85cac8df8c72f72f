// The shared table of the registered memory of one domain. An initiator on the same node finds a region by
// its key, checks bounds and access rights, and copies by itself. The target need not be in its library.
//
//   the target's table, which only it can write:    header | entries, 64 bytes each
//   a page of each initiator, which both can write:  the entry that it uses now | revoked
//
// Entries. The entry of a key is one of the kProbes entries that begin at the hash of the key. The target
// writes the fields while the entry is vacant, and the state last. If there is no vacant entry for a region,
// the target's library serves the region, and `unlisted` says that the table is not complete.
//
// Two ways to the bytes. Either the kernel copies them (os/process_memory.h). Or the region lies in memory
// that its owner maps shared; then the initiator maps this memory, too (shm/peer_regions.h), and copies by
// loads and stores. What follows holds for both ways. The owner may unmap such memory, or map something else
// in its place, before it closes the region. The initiator then still uses the old file, which belongs to
// nobody else.
//
// Use. Each initiator has one word. A count for each region would not say which of its users has died. An
// initiator (1) writes the number of the entry into its page, (2) executes a full fence,
// (3) finds the entry still live, with its key, (4) copies, and (5) clears the word. The target that closes a
// region (1) takes the live state away, (2) executes a full fence, and (3) looks at the pages of all of its
// initiators: it waits for each that names the entry. Either the initiator looks at the state late enough to
// find the region closed, or the target looks at the page late enough to find the use. So once the target has
// looked and waited, nobody copies a byte of the region any more. While the word names a live entry, the
// entry's fields do not change. A use lasts for one piece of kPieceBytes. An initiator keeps mappings from
// one use to the next; the generation tells whether the entry has belonged to another region meanwhile.
//
// Death. The page counts until the initiator says in it that it has ended, or until the initiator's process
// has ended. If a process dies during a copy, a close waits until the process has ended: for the kernel that
// is when its last thread has left (pidfd_open(2)). The connection that brought the page is closed after the
// welcome, so neither side has a descriptor of the other.
//
// Trust. Peers are processes of the same user. They can only read the table. An initiator that never clears
// its word, or that a debugger stops during a copy, delays a close for kUseMax; then the close fails. An
// initiator need not trust what it reads: all addresses are those of the target, and the initiator touches
// only the target's memory (os/process_memory.h).
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <string>

#include "base/address.h"
#include "base/bytes.h"
#include "base/units.h"
#include "os/process_memory.h"

namespace cluster::shm {

/// Part of the name of listening sockets, so a process with another version finds no socket at all.
inline constexpr std::uint32_t kRegionVersion = 3;

/// The length of a region that covers all memory.
inline constexpr std::uint64_t kAllMemory = ~std::uint64_t{0};

/// How long a close waits for one initiator that lives: far longer than a piece takes.
inline constexpr Duration kUseMax = 5s;
/// How much one use copies at most: some hundred microseconds.
inline constexpr std::size_t kPieceBytes = 4 << 20;

struct RegionEntry {
  // Bits of `state`. 0: the entry was never used, and no entry of the same run of probes lies behind it.
  static constexpr std::uint32_t kVacant = 1;
  static constexpr std::uint32_t kLive = 2;
  static constexpr std::uint32_t kReadable = 4;
  static constexpr std::uint32_t kWritable = 8;
  static constexpr std::uint32_t kReadsServed = 16;   ///< the target's library serves reads
  static constexpr std::uint32_t kWritesServed = 32;  ///< the target's library serves writes
  static constexpr std::uint32_t kClosing = 64;       ///< closed, and perhaps still in use

  std::uint32_t state;
  std::uint32_t reserved;
  std::uint64_t key;
  std::uint64_t base;
  std::uint64_t start;
  std::uint64_t length;
  std::uint64_t generation;  ///< a new one each time the entry becomes live, never 0
  std::uint64_t unused[2];
};
static_assert(sizeof(RegionEntry) == 64);

struct RegionHeader {
  std::uint64_t unlisted;  ///< regions that have no entry
  std::uint64_t unused[511];
};
static_assert(sizeof(RegionHeader) == 4096);

/// The page of an initiator.
struct UsePage {
  std::uint32_t entry;    ///< the initiator: 1 + number of the entry in use; 0: none
  std::uint32_t revoked;  ///< the target: the endpoint is closed, nothing may be begun
  std::uint32_t ended;    ///< the initiator: it uses nothing any more
  std::byte unused[4084];
};
static_assert(sizeof(UsePage) == 4096);

/// The initiator's first message, with a descriptor of its UsePage. Both processes run on one host and use
/// one version, so integers are in host byte order.
struct RegionHello {
  static constexpr std::uint64_t kMagic = 0x6e6f6967652d6c63;  // "cl-egion"

  std::uint64_t magic = kMagic;
};

/// The target's answer, with a descriptor of its table.
struct RegionWelcome {
  static constexpr std::uint64_t kMagic = 0x6f636c65772d6c63;  // "cl-welco"

  std::uint64_t magic = kMagic;
  os::GuardMark guard{};            ///< of the target's process
  std::uint32_t reads_served = 0;   ///< the target's library serves all reads
  std::uint32_t writes_served = 0;  ///< the target's library serves all writes
};
static_assert(sizeof(RegionWelcome) == 32, "no padding: every byte that is sent is set");

/// The abstract socket name under which an endpoint's regions are found.
std::string region_socket_name(const SocketAddress& endpoint);

/// The table, as both ends see it. Only the target writes to it.
class RegionEntries {
 public:
  static constexpr std::uint32_t kEntries = 1 << 13;
  static constexpr std::uint32_t kProbes = 32;
  static constexpr std::size_t kBytes = sizeof(RegionHeader) + kEntries * sizeof(RegionEntry);

  RegionEntries() = default;
  /// `memory` consists of whole pages, kBytes in all.
  explicit RegionEntries(Bytes memory)
      : header_(reinterpret_cast<RegionHeader*>(memory.data())),
        entries_(reinterpret_cast<RegionEntry*>(header_ + 1)) {}

  RegionEntry& at(std::uint32_t number) const { return entries_[number]; }
  std::atomic_ref<std::uint32_t> state(std::uint32_t number) const {
    return std::atomic_ref(entries_[number].state);
  }
  std::atomic_ref<std::uint64_t> unlisted() const { return std::atomic_ref(header_->unlisted); }

  /// Returns the entry of the key if its state has one of these bits, else kEntries.
  std::uint32_t find(std::uint64_t key, std::uint32_t bits) const {
    return probe(key, [&](std::uint32_t number, std::uint32_t state) {
      return (state & bits) != 0 &&
             std::atomic_ref(entries_[number].key).load(std::memory_order_relaxed) == key;
    });
  }
  /// Returns a vacant entry for the key, or kEntries if there is none.
  std::uint32_t find_vacant(std::uint64_t key) const {
    return probe(
        key, [](std::uint32_t, std::uint32_t state) { return state == 0 || state == RegionEntry::kVacant; });
  }

 private:
  /// Consecutive keys hash to different entries on the same pages.
  static std::uint32_t hash(std::uint64_t key) {
    return static_cast<std::uint32_t>(key ^ (key >> 13) ^ (key >> 31) ^ (key >> 47));
  }
  template <typename Wanted>
  std::uint32_t probe(std::uint64_t key, Wanted&& wanted) const {
    const std::uint32_t first = hash(key);
    for (std::uint32_t i = 0; i < kProbes; ++i) {
      const std::uint32_t number = (first + i) % kEntries;
      const std::uint32_t state = this->state(number).load(std::memory_order_acquire);
      if (wanted(number, state)) return number;
      if (state == 0) break;
    }
    return kEntries;
  }

  RegionHeader* header_ = nullptr;
  RegionEntry* entries_ = nullptr;
};

}  // namespace cluster::shm
