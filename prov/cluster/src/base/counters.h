// Counters holds the counters of one engine. They are plain numbers, which only that engine and its links
// write. The table in counters.def lists the counters. The macros below generate the members and each() from
// this table.
#pragma once

#include <cstdint>

namespace cluster {

struct Counters {
#define COUNTER(name, help) std::uint64_t name = 0;
#include "base/counters.def"
#undef COUNTER

  /// Calls visit(name, value, help) for every counter, in the order of the table.
  template <typename Visitor>
  void each(Visitor&& visit) const {
#define COUNTER(name, help) visit(#name, name, help);
#include "base/counters.def"
#undef COUNTER
  }
};

}  // namespace cluster
