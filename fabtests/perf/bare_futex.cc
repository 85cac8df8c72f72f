// A word in shared memory whose reader sleeps until it has changed: the kernel's own wake-up inside a node.
#include <linux/futex.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <atomic>

#include "bare.h"
#include "shared_pair.h"

namespace perf {
namespace {

struct Word {
  alignas(64) std::atomic<std::uint32_t> count{0};
};

class Sleepers {
 public:
  explicit Sleepers(ControlConnection& line) : words_(line) {}

  void send() {
    words_.mine().count.fetch_add(1, std::memory_order_release);
    futex(words_.mine(), FUTEX_WAKE, 1);
  }
  void receive() {
    while (words_.theirs().count.load(std::memory_order_acquire) == seen_)
      futex(words_.theirs(), FUTEX_WAIT, seen_);
    ++seen_;
  }

 private:
  static void futex(Word& word, int operation, std::uint32_t value) {
    ::syscall(SYS_futex, &word.count, operation, value, nullptr, nullptr, 0);
  }

  SharedPair<Word> words_;
  std::uint32_t seen_ = 0;  ///< of what the other side has counted
};

}  // namespace

Benchmark futex_measure(const Item& item, ControlConnection& line) {
  return ping_pong(std::make_shared<Sleepers>(line), item, kFallAsleepSeconds);
}

}  // namespace perf
