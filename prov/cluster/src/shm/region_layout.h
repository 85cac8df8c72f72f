// The protocol by which a process accesses registered memory of another process on the same node. The target
// shares a table of the regions of one domain. An initiator finds a region by its key in the table, checks
// bounds and access rights, and copies the data itself. The target's library need not run meanwhile.
//
//   the target's table, which only it can write:    header | entries, 64 bytes each
//   a page of each initiator, which both can write:  the entry in use | revoked | ended
//
// Entries. The entry of a key is one of kProbes consecutive entries. The hash of the key selects the first of
// them. The target writes the fields while the entry is vacant, and the state last. If there is no vacant
// entry for a region, the target's library executes the accesses to it, and `unlisted` says that the table is
// not complete.
//
// Copies. There are two ways to copy. The kernel copies any memory (os/process_memory.h). If the region is in
// memory that the target has mapped shared, the initiator can map this memory, too (shm/peer_regions.h), and
// copy by loads and stores. The target may unmap such memory, or map another file at its place, before it
// closes the region. In this case the initiator still uses the old file, which does no harm. The following
// paragraphs hold for both ways.
//
// Use. Each initiator has one word, which names the entry in use. (A count of users in each region would not
// say which of the users has died.) An access has five steps. The initiator (1) writes the number of the
// entry into its page and (2) executes a full fence. It (3) checks that the entry is still live and has the
// right key. It (4) copies and (5) clears the word.
// To close a region, the target (1) ends the live state of the entry, (2) executes a full fence, and (3)
// reads the pages of all its initiators. It waits for each initiator whose word contains the entry. Because
// of the fences, either the initiator finds that the region is closed, or the target finds that the region is
// in use. So after the target has read all pages and waited, nobody copies a byte of the region. While a word
// contains a live entry, the fields of the entry do not change. A use lasts for one piece of at most
// kPieceBytes. An initiator keeps its mappings between uses. The generation says whether the entry has
// belonged to another region meanwhile.
//
// Death. As long as an initiator lives, every close reads the initiator's page. The initiator is dead once
// this page says so, or once its process has ended. If a process is killed during a copy, a close waits until
// the last thread of the process has ended (pidfd_open(2)). Both sides close the connection after the
// welcome, so neither side needs a descriptor for the other. (If the target has no other means to notice the
// end of the initiator's process, it keeps the connection.)
//
// Trust. Peers are processes of the same user. They can read the table, but not write it. Perhaps an
// initiator does not clear its word, for example because a debugger stops it during a copy. In this case
// the initiator delays a close for kUseMax, and the close fails. An initiator need not trust the table,
// because all addresses in it are addresses of the target. The initiator accesses only the target's memory:
// through the kernel (os/process_memory.h) or inside the bounds of its own mapping (os/peer_mapping.h).
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

/// The version is part of the names of listening sockets, so a process with another version finds no socket.
inline constexpr std::uint32_t kRegionVersion = 3;

/// The length of a region that covers all memory.
inline constexpr std::uint64_t kAllMemory = ~std::uint64_t{0};

/// How long a close waits for one initiator that is alive. The copy of a piece takes far less time.
inline constexpr Duration kUseMax = 5s;
/// The largest number of bytes that an initiator copies in one use. The copy takes some hundred microseconds.
inline constexpr std::size_t kPieceBytes = 4 << 20;

struct RegionEntry {
  // Bits of `state`. If `state` is 0, the entry was never used, so the search for a key can end at this
  // entry.
  static constexpr std::uint32_t kVacant = 1;
  static constexpr std::uint32_t kLive = 2;
  static constexpr std::uint32_t kReadable = 4;
  static constexpr std::uint32_t kWritable = 8;
  static constexpr std::uint32_t kReadsServed = 16;   ///< the target's library executes reads
  static constexpr std::uint32_t kWritesServed = 32;  ///< the target's library executes writes
  static constexpr std::uint32_t kClosing = 64;       ///< the region is closed, but perhaps still in use

  std::uint32_t state;
  std::uint32_t reserved;
  std::uint64_t key;
  std::uint64_t base;
  std::uint64_t start;
  std::uint64_t length;
  std::uint64_t generation;  ///< a new value each time the entry becomes live, never 0
  std::uint64_t unused[2];
};
static_assert(sizeof(RegionEntry) == 64);

struct RegionHeader {
  std::uint64_t unlisted;  ///< number of regions that have no entry
  std::uint64_t unused[511];
};
static_assert(sizeof(RegionHeader) == 4096);

/// The page of an initiator. Each comment begins with the side that writes the field.
struct UsePage {
  std::uint32_t entry;    ///< the initiator: 1 + the number of the entry in use, or 0
  std::uint32_t revoked;  ///< the target: not 0 once the endpoint is closed, which forbids further uses
  std::uint32_t ended;    ///< the initiator: not 0 if it will use nothing more
  std::byte unused[4084];
};
static_assert(sizeof(UsePage) == 4096);

/// The initiator's first message, sent with a descriptor of its UsePage. Integers are in host byte order,
/// because both processes run on one host and use the same version.
struct RegionHello {
  static constexpr std::uint64_t kMagic = 0x6e6f6967652d6c63;  // "cl-egion"

  std::uint64_t magic = kMagic;
};

/// The target's answer, sent with a descriptor of its table.
struct RegionWelcome {
  static constexpr std::uint64_t kMagic = 0x6f636c65772d6c63;  // "cl-welco"

  std::uint64_t magic = kMagic;
  os::GuardMark guard{};            ///< identifies the target's process
  std::uint32_t reads_served = 0;   ///< not 0 if the target's library executes all reads
  std::uint32_t writes_served = 0;  ///< not 0 if the target's library executes all writes
};
static_assert(sizeof(RegionWelcome) == 32, "no padding: every byte that is sent is set");

/// Returns the abstract name of the socket at which initiators ask for an endpoint's regions.
std::string region_socket_name(const SocketAddress& endpoint);

/// Gives both sides access to the table. Only the target writes to it.
class RegionEntries {
 public:
  static constexpr std::uint32_t kEntries = 1 << 13;
  static constexpr std::uint32_t kProbes = 32;
  static constexpr std::size_t kBytes = sizeof(RegionHeader) + kEntries * sizeof(RegionEntry);

  RegionEntries() = default;
  /// `memory` has kBytes bytes, in whole pages.
  explicit RegionEntries(Bytes memory)
      : header_(reinterpret_cast<RegionHeader*>(memory.data())),
        entries_(reinterpret_cast<RegionEntry*>(header_ + 1)) {}

  RegionEntry& at(std::uint32_t number) const { return entries_[number]; }
  std::atomic_ref<std::uint32_t> state(std::uint32_t number) const {
    return std::atomic_ref(entries_[number].state);
  }
  std::atomic_ref<std::uint64_t> unlisted() const { return std::atomic_ref(header_->unlisted); }

  /// Returns the number of the key's entry if its state has one of these bits, else kEntries.
  std::uint32_t find(std::uint64_t key, std::uint32_t bits) const {
    return probe(key, [&](std::uint32_t number, std::uint32_t state) {
      return (state & bits) != 0 &&
             std::atomic_ref(entries_[number].key).load(std::memory_order_relaxed) == key;
    });
  }
  /// Returns the number of a vacant entry for the key, or kEntries if there is none.
  std::uint32_t find_vacant(std::uint64_t key) const {
    return probe(
        key, [](std::uint32_t, std::uint32_t state) { return state == 0 || state == RegionEntry::kVacant; });
  }

 private:
  /// Consecutive keys get different entries, most of them on the same page.
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
