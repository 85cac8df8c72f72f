// Plain memory with a ring in it, segments with recognisable payload, and an environment that remembers
// what was said: what the tests of shm/ share.
#pragma once

#include <unistd.h>

#include <cstdlib>
#include <memory>
#include <string>
#include <vector>

#include "base/bytes.h"
#include "base/environment.h"
#include "shm/layout.h"
#include "wire/segment.h"

namespace cluster::shm {

inline constexpr Geometry kSmall{Geometry::kSlotsMin, Geometry::kArenaMin};

class RingMemory {
 public:
  explicit RingMemory(const Geometry& cut = kSmall)
      : geometry(cut),
        memory_(static_cast<std::byte*>(std::aligned_alloc(4096, cut.total_bytes())), &std::free) {
    std::memset(memory_.get(), 0, cut.total_bytes());
  }
  Bytes bytes() { return {memory_.get(), geometry.total_bytes()}; }
  Slot& slot(std::uint32_t i) { return reinterpret_cast<Slot*>(memory_.get() + geometry.slots_begin())[i]; }
  RingControl& control() { return *reinterpret_cast<RingControl*>(memory_.get()); }

  const Geometry geometry;

 private:
  std::unique_ptr<std::byte, void (*)(void*)> memory_;
};

/// Bytes that differ from their neighbours, long enough for any message of a test.
inline const std::byte* pattern() {
  static const std::vector<std::byte> bytes = [] {
    std::vector<std::byte> made(200'000);
    for (std::size_t i = 0; i < made.size(); ++i) made[i] = static_cast<std::byte>(i * 7 + (i >> 8));
    return made;
  }();
  return bytes.data();
}

/// A tagged message whose tag is `number` and whose bytes follow from it.
struct Message {
  Message(std::uint64_t number, std::size_t size)
      : bytes(pattern() + number % 4093, pattern() + number % 4093 + size) {
    segment.flags = wire::segment_flag::kTagged;
    segment.tag = number;
    segment.length = static_cast<std::uint32_t>(size);
    slice = bytes;
  }
  Message(const Message&) = delete;
  Message& operator=(const Message&) = delete;

  Gather gather() const { return {{&slice, 1}, 0, bytes.size()}; }
  bool equals(const wire::Segment& other, ConstBytes payload) const {
    return other.kind == segment.kind && other.flags == segment.flags && other.tag == segment.tag &&
           other.length == segment.length && payload.size() == bytes.size() &&
           (bytes.empty() || std::memcmp(payload.data(), bytes.data(), bytes.size()) == 0);
  }

  wire::Segment segment;
  std::vector<std::byte> bytes;
  ConstBytes slice;
};

class Surroundings : public Clock, public Random, public Log {
 public:
  Time now() override { return time; }
  /// Doorbells are named by them: test programs that run at once, and their children, are kept apart.
  std::uint64_t next() override { return static_cast<std::uint64_t>(::getpid()) << 32 | ++numbers_drawn; }
  bool enabled(LogLevel) const override { return true; }
  void write(LogLevel, const char* line) override { said += std::string(line) + "\n"; }
  Environment environment() { return {*this, *this, *this, counters}; }

  Counters counters;
  std::string said;
  Time time{};

 private:
  static inline std::uint32_t numbers_drawn = 3;  ///< by the process
};

}  // namespace cluster::shm
