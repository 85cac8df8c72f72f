// The kernel's table of hardware addresses. All network namespaces of a node share it. If it is full, the kernel
// refuses to send to hosts that are not in it, with ENOBUFS. A full queue of an interface causes the same error.
#pragma once

#include <cstdint>

#include "base/address.h"
#include "base/log.h"

namespace cluster::os {

/// Returns how often the table of this family was full since the node started, or 0 if the kernel does not say.
std::uint64_t neighbour_overflows(SocketAddress::Family family);

/// Tells the user once in a process that the table is full. Must be called when the kernel refuses a frame with
/// ENOBUFS.
class NeighbourWarning {
 public:
  NeighbourWarning(SocketAddress::Family family, Log& log) : family_(family), log_(log) {}
  void on_no_buffer();

 private:
  const SocketAddress::Family family_;
  Log& log_;
  std::uint32_t refusals_ = 0;
};

}  // namespace cluster::os
