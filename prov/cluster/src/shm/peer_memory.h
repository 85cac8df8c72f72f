// The memory of the process that sends a ring. A process number alone proves nothing: the peer may run in another
// PID namespace, and numbers are used again. So the hello carries a secret and its address. If the process of that number
// shows the secret there, it is the peer, and the kernel permits access. As long as the peer's handle says that
// its process has not ended, the number is still its own. Where there is no handle, the secret is read again each time.
//
// A message that a process has announced lies in its buffers until the process closes its end of the ring. After that its
// application may use them again.
#pragma once

#include <cstdint>
#include <string>

#include "carrier/memory_access.h"
#include "os/peer_process.h"
#include "shm/hello.h"
#include "shm/ring_reader.h"

namespace cluster::shm {

class PeerMemory final : public carrier::CrossMemory {
 public:
  /// `process` and `ring`, from that process, outlive it.
  PeerMemory(const os::PeerProcess& process, const RingReader& ring, const Proof& proof);

  /// False if this process may not access it. Then neither read() nor write() may be called.
  bool reachable() const { return reachable_; }
  /// Why not, in words for the log; empty if it is, or the peer does not offer it.
  std::string why_unreachable() const;

  bool read(std::uint64_t address, std::span<const Bytes> slices, std::size_t offset,
            std::size_t length) override;
  bool write(std::uint64_t address, const Gather& source) override;

 private:
  /// `error`: errno of the attempt, 0 if something was read.
  bool shows_proof(int& error) const;
  bool same_process() const;

  const os::PeerProcess& process_;
  const RingReader& ring_;
  Proof proof_;
  int error_ = 0;
  bool reachable_;
};

}  // namespace cluster::shm
