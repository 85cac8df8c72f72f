// The kernel has a table of hardware addresses for each address family. All network namespaces of a node
// share this table. If the table is full, the kernel refuses to send to a host that is not in the table, and
// returns ENOBUFS. A full queue of an interface causes the same error.
#pragma once

#include <cstdint>
#include <optional>

#include "base/address.h"
#include "base/environment.h"
#include "base/log.h"

namespace cluster::os {

/// Returns how often, since the node started, the kernel has refused an entry because the table of this
/// family was full. Returns 0 if the kernel does not report the number.
std::uint64_t neighbour_overflows(SocketAddress::Family family);

/// Distinguishes a full table from a full queue. A question to the kernel costs more than sending a frame, so
/// this class reuses an answer for the time kAskAgain. When a table is full for the first time in this
/// process, the class logs a warning.
class NeighbourTable {
 public:
  static constexpr Duration kAskAgain = 5ms;
  /// A full table stays full for at least 5 s, because the kernel keeps each entry for so long.
  static constexpr Duration kFullFor = 10s;
  /// Returns what neighbour_overflows() returns.
  using Overflows = std::uint64_t (*)(SocketAddress::Family);

  NeighbourTable(SocketAddress::Family family, Log& log, Overflows overflows = neighbour_overflows)
      : family_(family), log_(log), overflows_(overflows) {}
  /// Must be called when the kernel refuses a frame with ENOBUFS. Returns true if the table is full. The
  /// first call only notes how many refusals the kernel has counted, and returns false.
  bool is_full(Time now);
  /// Returns true if the table was full less than kFullFor ago.
  bool was_full(Time now) const { return full_until_ > now; }

 private:
  void warn();

  const SocketAddress::Family family_;
  Log& log_;
  Overflows overflows_;
  std::optional<std::uint64_t> seen_;
  Time asked_{};
  bool full_ = false;
  Time full_until_{};
};

}  // namespace cluster::os
