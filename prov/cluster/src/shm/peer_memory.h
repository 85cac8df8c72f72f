// The memory of the process at the other end of a connection. A process number alone proves nothing (the
// peer may run in another PID namespace, and numbers are used again), so the hello carries a secret and its
// address: memory that shows the secret there is the peer's, and the kernel permits access. From then on the
// connection vouches for the number: as long as it has not ended, the number is still that process's.
#pragma once

#include <cstdint>

#include "carrier/cross_memory.h"
#include "os/local_socket.h"

namespace cluster::shm {

/// Where `value` lies in the memory of the process that sends this.
struct Proof {
  std::uint64_t address = 0;  ///< 0: its memory is not offered
  std::uint64_t value = 0;
};

class PeerMemory final : public carrier::CrossMemory {
 public:
  /// `socket` outlives it.
  PeerMemory(const os::LocalSocket& socket, const Proof& proof);

  /// False if this process may not access it. Then neither read() nor write() may be called.
  bool reachable() const { return process_ != 0; }

  bool read(std::uint64_t address, std::span<const Bytes> slices, std::size_t offset,
            std::size_t length) override;
  bool write(std::uint64_t address, const Gather& source) override;

 private:
  const os::LocalSocket& socket_;
  int process_ = 0;
};

}  // namespace cluster::shm
