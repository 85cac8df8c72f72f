// A ring of slots in shared memory. Each slot carries its own sequence number in the line of its
// payload, so a small message costs the receiver one cache miss; larger ones take several slots.
#include <algorithm>
#include <atomic>
#include <cstring>

#include "bare.h"
#include "shared_pair.h"

namespace perf {
namespace {

constexpr std::uint64_t kSlots = 4096;
constexpr std::size_t kSlotBytes = 64;
constexpr std::size_t kPayloadMax = kSlotBytes - sizeof(std::uint64_t);
constexpr std::uint64_t kReportInterval = 64;  ///< how often the reader says how far it is

struct alignas(kSlotBytes) Slot {
  std::atomic<std::uint64_t> sequence;
  char payload[kPayloadMax];
};

/// One direction.
struct Ring {
  alignas(kSlotBytes) std::atomic<std::uint64_t> read{0};
  Slot slots[kSlots];
};

class Ends {
 public:
  Ends(ControlConnection& line, std::size_t bytes) : bytes_(bytes), rings_(line) {}

  void send() {
    for (std::size_t done = 0; done == 0 || done < bytes_; done += kPayloadMax) {
      ++written_;
      while (written_ > free_until_) free_until_ = out_->read.load(std::memory_order_acquire) + kSlots;
      Slot& slot = out_->slots[written_ % kSlots];
      std::memcpy(slot.payload, buffer_, std::min(kPayloadMax, bytes_ - done));
      slot.sequence.store(written_, std::memory_order_release);
    }
  }
  void receive() {
    for (std::size_t done = 0; done == 0 || done < bytes_; done += kPayloadMax) {
      ++read_;
      Slot& slot = in_->slots[read_ % kSlots];
      while (slot.sequence.load(std::memory_order_acquire) != read_) {
      }
      std::memcpy(buffer_, slot.payload, std::min(kPayloadMax, bytes_ - done));
      if (read_ % kReportInterval == 0) in_->read.store(read_, std::memory_order_release);
    }
  }

 private:
  std::size_t bytes_;
  SharedPair<Ring> rings_;
  Ring* const out_ = &rings_.mine();
  Ring* const in_ = &rings_.theirs();
  std::uint64_t written_ = 0, read_ = 0, free_until_ = kSlots;
  char buffer_[kPayloadMax] = {};
};

}  // namespace

Benchmark ring_measure(const Item& item, ControlConnection& line) {
  const auto ends = std::make_shared<Ends>(line, item.bytes);
  if (item.measure == "ring") return ping_pong(ends, item);
  Benchmark work;
  const unsigned window = item.window;
  work.figure = Figure::messages_per_second;
  work.messages = window;
  work.lead = [ends, window](std::uint64_t) {
    for (unsigned i = 0; i < window; ++i) ends->send();
    ends->receive();
  };
  work.follow = [ends, window](std::uint64_t) {
    for (unsigned i = 0; i < window; ++i) ends->receive();
    ends->send();
  };
  work.bytes = work.messages * static_cast<double>(item.bytes);
  return work;
}

Benchmark copy_measure(const Item& item) {
  const auto from = std::make_shared<std::vector<char>>(item.bytes, 'a');
  const auto to = std::make_shared<std::vector<char>>(item.bytes, 'b');
  Benchmark work;
  work.figure = Figure::bytes_per_second;
  work.bytes = static_cast<double>(item.bytes);
  work.lead = [from, to](std::uint64_t) {
    std::memcpy(to->data(), from->data(), from->size());
    asm volatile("" : : "r"(to->data()) : "memory");  // the copy is wanted for its own sake
  };
  return work;
}

}  // namespace perf
