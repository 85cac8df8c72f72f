// The state of an RDMA device that a transport drives, for reports. All values belong to one moment.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>

namespace cluster::transport {

struct DeviceStats {
  std::string name;  ///< such as "rxe0/1"
  std::size_t queue_pairs = 0;
  std::size_t queue_pairs_max = 0;
  // Registrations of memory (os/pin_cache.h).
  std::uint64_t hits = 0;
  std::uint64_t misses = 0;
  std::uint64_t dropped = 0;
  std::size_t entries = 0;
  std::size_t bytes = 0;
  std::size_t bytes_max = 0;
  std::string keeps_nothing_because;  ///< empty: registrations are kept
};

}  // namespace cluster::transport
