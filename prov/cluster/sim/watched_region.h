// Memory that one incarnation of a process exposes to its peers, watched byte by byte.
//
//   guard | reading part: bytes that never change | writing part: blank, cut into slots | guard
//
// Every remote write has a slot of its own, so the bytes of different writes are never mixed:
//   awaited   the write may be under way: each byte is blank or right
//   sealed    the write is complete, and all its bytes were there; the region has then overwritten them, so
//             that a second execution of the write shows
//   failed    the write ended with an error: each byte is blank or right
// All other bytes never change. A closed region does not change at all.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "protocol/region_table.h"
#include "sim/content.h"
#include "sim/seeded_random.h"
#include "sim/sim_network.h"

namespace cluster::sim {

class WatchedRegion {
 public:
  struct Shape {
    HostNumber host = 0;
    std::uint32_t incarnation = 0;
    std::uint64_t key = 0;
    std::uint64_t start = 0;  ///< remote address of its first byte
    std::size_t reading = 0;
    std::size_t writing = 0;
    bool readable = false;
    bool writable = false;
  };

  explicit WatchedRegion(const Shape& shape);

  const Shape& shape() const { return shape_; }
  std::size_t length() const { return shape_.reading + shape_.writing; }
  /// Returns the region as it is registered with the library.
  protocol::MemoryRegion region();
  bool open() const { return !frozen_.has_value(); }
  /// The region has been deregistered.
  void close() { frozen_ = memory_; }

  /// Returns the offset of a slot for a write, or nothing if the next bytes are still in use.
  std::optional<std::size_t> allocate_slot(std::size_t length, SeededRandom& random);
  /// The write of this slot was never posted.
  void release_slot(std::size_t offset);
  /// Says what the write puts into its slot: the bytes [from, from + length of the slot) of this content.
  void expect(std::size_t offset, MessageNumber content, std::size_t from);
  /// Returns true if all bytes of the slot are in place, or if the slot is sealed.
  bool landed(std::size_t offset) const;
  void seal(std::size_t offset);
  void fail(std::size_t offset) { slots_.at(offset).state = State::failed; }
  /// Returns what a read of this place must return.
  ConstBytes at(std::size_t offset, std::size_t length) const;

  /// Describes what is wrong with the region; empty if nothing is.
  std::string violation() const;

 private:
  enum class State : std::uint8_t { awaited, sealed, failed };
  static constexpr std::byte kBlank{0x11};

  struct Slot {
    std::size_t length = 0;
    MessageNumber content = 0;
    std::size_t from = 0;
    std::byte blank = kBlank;  ///< the value of its bytes before the write
    State state = State::awaited;
  };

  std::byte* base() { return memory_.data() + kMarginBytes; }
  const std::byte* base() const { return memory_.data() + kMarginBytes; }
  bool slot_intact(std::size_t offset, const Slot& slot) const;
  static constexpr std::size_t kMarginBytes = 64;

  Shape shape_;
  std::vector<std::byte> memory_;
  std::optional<std::vector<std::byte>> frozen_;  ///< the memory when the region was closed
  std::map<std::size_t, Slot> slots_;             ///< by offset in the region
  std::size_t next_ = 0;
};

}  // namespace cluster::sim
