#include "shm/peer_memory.h"

#include "os/process_memory.h"

namespace cluster::shm {

PeerMemory::PeerMemory(const os::LocalSocket& socket, const Proof& proof) : socket_(socket) {
  const int process = proof.address != 0 ? socket.peer_process() : 0;
  if (process == 0) return;
  std::uint64_t seen = 0;
  const Bytes target[] = {as_bytes(&seen, sizeof seen)};
  if (os::read_process(process, proof.address, target, 0, sizeof seen) && seen == proof.value) {
    process_ = process;
  }
}

bool PeerMemory::read(std::uint64_t address, std::span<const Bytes> slices, std::size_t offset,
                      std::size_t length) {
  // Checked afterwards: what was read before the end of the connection was the peer's.
  return os::read_process(process_, address, slices, offset, length) && !socket_.hung_up();
}

bool PeerMemory::write(std::uint64_t address, const Gather& source) {
  return !socket_.hung_up() && os::write_process(process_, address, source);
}

}  // namespace cluster::shm
