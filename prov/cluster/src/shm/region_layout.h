// Registered memory of one domain, in memory that the processes of its node share: an initiator finds a region
// by its key, checks bounds and access, and copies by itself. The target need not be in its library.
//
//   the target's table, which only it can write:    header | entries, 64 bytes each
//   a page of each initiator, which both can write:  the entry that it uses now | revoked
//
// Entries. The entry of a key is among the kProbes ones from its hash on. Fields are written while the entry
// is vacant, and its state last. A region for which there is no vacant entry is served by the target's
// library, and `unlisted` says that the table is not complete.
//
// Two ways to the bytes. The kernel copies them (os/process_memory.h); or the region lies in memory that its owner maps
// shared, and the initiator has mapped that, too (shm/peer_regions.h), and loads and stores by itself. What follows
// holds for both. The owner may unmap such memory, or map something else in its place, before it closes the
// region: the initiator then still uses the file of before, which belongs to nobody else.
//
// Use. One word for each initiator instead of a count for each region: a count would not say which of its
// users has died. An initiator (1) writes the number of the entry into its page, (2) executes a full fence,
// (3) finds the entry still live, with its key, (4) copies, and (5) clears the word. The target that closes a
// region (1) takes the live state away, (2) executes a full fence, and (3) looks at the pages of all of its
// initiators: it waits for each that names the entry. Either the initiator's look at the state comes late
// enough to find the region closed, or the target's look at the page comes late enough to find the use. So
// when the target has looked, no byte of the region is copied any more; and while the word names a live entry,
// its fields do not change. A use lasts for one piece of kPieceBytes. An initiator keeps mappings from one use to the next:
// by the generation it sees that the entry has belonged to another region meanwhile.
//
// Death. The page counts until the initiator says in it that it has ended, or its process has ended. If a process dies during a
// copy, a close waits until then: for the kernel a process has ended when the last of its threads has left it
// (pidfd_open(2)). The connection that brought the page is closed after the welcome, so neither side has a descriptor of the
// other.
//
// Trust. Peers are processes of the same user. They can only read the table. An initiator that never clears its word, or that a
// debugger stops during a copy, delays a close for kUseMax; then the close fails. An initiator need not trust
// what it reads: addresses are the target's, and it touches only the target's memory (os/process_memory.h).
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

/// Part of the name of listening sockets: another version is not found rather than refused.
inline constexpr std::uint32_t kRegionVersion = 3;

/// The length of a region of all memory.
inline constexpr std::uint64_t kAllMemory = ~std::uint64_t{0};

/// How long a close waits for one initiator that lives: far longer than a piece takes.
inline constexpr Duration kUseMax = 5s;
/// What is copied in one use: some hundred microseconds.
inline constexpr std::size_t kPieceBytes = 4 << 20;

struct RegionEntry {
  // In `state`; 0: never used, and none behind it in the same run of probes.
  static constexpr std::uint32_t kVacant = 1;
  static constexpr std::uint32_t kLive = 2;
  static constexpr std::uint32_t kReadable = 4;
  static constexpr std::uint32_t kWritable = 8;
  static constexpr std::uint32_t kReadsServed = 16;   ///< by the target's library
  static constexpr std::uint32_t kWritesServed = 32;  ///< likewise
  static constexpr std::uint32_t kClosing = 64;       ///< may still be in use

  std::uint32_t state;
  std::uint32_t reserved;
  std::uint64_t key;
  std::uint64_t base;
  std::uint64_t start;
  std::uint64_t length;
  std::uint64_t generation;  ///< another one each time that the entry becomes live, never 0
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

/// The first of the two messages by which an initiator and a target begin, with a descriptor of the initiator's UsePage. They
/// travel between processes of one host and one version, so their integers are the host's.
struct RegionHello {
  static constexpr std::uint64_t kMagic = 0x6e6f6967652d6c63;  // "cl-egion"

  std::uint64_t magic = kMagic;
};

/// The target's answer, with a descriptor of its table.
struct RegionWelcome {
  static constexpr std::uint64_t kMagic = 0x6f636c65772d6c63;  // "cl-welco"

  std::uint64_t magic = kMagic;
  os::GuardMark guard{};            ///< of the target's process
  std::uint32_t reads_served = 0;   ///< by the target's library, all of them
  std::uint32_t writes_served = 0;  ///< likewise
};
static_assert(sizeof(RegionWelcome) == 32, "no padding: every byte that is sent is set");

/// The abstract socket name under which an endpoint's regions are found.
std::string region_socket_name(const SocketAddress& endpoint);

/// The table, as both ends see it. Only the target calls what writes.
class RegionEntries {
 public:
  static constexpr std::uint32_t kEntries = 1 << 13;
  static constexpr std::uint32_t kProbes = 32;
  static constexpr std::size_t kBytes = sizeof(RegionHeader) + kEntries * sizeof(RegionEntry);

  RegionEntries() = default;
  /// `memory`: kBytes, of pages.
  explicit RegionEntries(Bytes memory)
      : header_(reinterpret_cast<RegionHeader*>(memory.data())),
        entries_(reinterpret_cast<RegionEntry*>(header_ + 1)) {}

  RegionEntry& at(std::uint32_t number) const { return entries_[number]; }
  std::atomic_ref<std::uint32_t> state(std::uint32_t number) const {
    return std::atomic_ref(entries_[number].state);
  }
  std::atomic_ref<std::uint64_t> unlisted() const { return std::atomic_ref(header_->unlisted); }

  /// The entry of the key whose state has one of these bits; kEntries if there is none.
  std::uint32_t find(std::uint64_t key, std::uint32_t bits) const {
    return probe(key, [&](std::uint32_t number, std::uint32_t state) {
      return (state & bits) != 0 &&
             std::atomic_ref(entries_[number].key).load(std::memory_order_relaxed) == key;
    });
  }
  /// An entry that the key may have; kEntries if there is none.
  std::uint32_t find_vacant(std::uint64_t key) const {
    return probe(
        key, [](std::uint32_t, std::uint32_t state) { return state == 0 || state == RegionEntry::kVacant; });
  }

 private:
  /// Keys that follow each other share pages and do not share entries.
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
