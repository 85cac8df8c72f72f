// Counts how many times the program makes each MPI call, and how many times the library takes the call over.
// With CLUSTER_COLL=report, each rank prints the counts in MPI_Finalize.
#pragma once

#include <array>
#include <atomic>
#include <cstdint>
#include <string>

#include "settings.h"

namespace coll {

class CallCounters {
 public:
  /// Returns the counters of this process.
  static CallCounters& get();

  void count(Call call, bool taken) {
    Counter& counter = counters_[static_cast<std::size_t>(call)];
    counter.made.fetch_add(1, std::memory_order_relaxed);
    if (taken) counter.taken.fetch_add(1, std::memory_order_relaxed);
  }
  /// Returns how many calls the library has taken over, for example "barrier 3 of 3, bcast 0 of 7, ...".
  std::string text() const;

 private:
  struct Counter {
    std::atomic<std::uint64_t> made{0};
    std::atomic<std::uint64_t> taken{0};
  };

  std::array<Counter, kCalls> counters_;
};

}  // namespace coll
