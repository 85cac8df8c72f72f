#include "shm/ring_inbox.h"

#include <atomic>
#include <cerrno>
#include <utility>

#include "os/process_memory.h"

namespace cluster::shm {

PeerMemory::PeerMemory(const os::PeerProcess& process, const RingReader& ring, const Proof& proof)
    : process_(process),
      ring_(ring),
      proof_(proof),
      reachable_(proof.address != 0 && process.number() != 0 && shows_proof(error_)) {}

std::string PeerMemory::why_unreachable() const {
  return reachable_ || proof_.address == 0 ? std::string() : os::why_unreached(process_.number(), error_);
}

bool PeerMemory::shows_proof(int& error) const {
  std::uint64_t seen = 0;
  const Bytes target[] = {as_bytes(&seen, sizeof seen)};
  const bool read = os::read_process(process_.number(), proof_.address, target, 0, sizeof seen);
  error = read ? 0 : errno;
  return read && seen == proof_.value;
}

bool PeerMemory::same_process() const {
  int error = 0;
  return process_.descriptor() >= 0 ? !process_.ended() : shows_proof(error);
}

bool PeerMemory::read(std::uint64_t address, std::span<const Bytes> slices, std::size_t offset,
                      std::size_t length) {
  if (!os::read_process(process_.number(), address, slices, offset, length)) return false;
  // The checks follow the copy. If the process still exists, the bytes are from the peer. If the ring is also
  // open, they are the bytes of the announced message.
  std::atomic_thread_fence(std::memory_order_acquire);
  return !ring_.writer_closed() && same_process();
}

bool PeerMemory::write(std::uint64_t address, const Gather& source) {
  return same_process() && os::write_process(process_.number(), address, source);
}

RingInbox::RingInbox(const Hello& hello, const os::LocalSocket& socket, os::SharedMemory memory,
                     bool single_copy, std::shared_ptr<const os::Doorbell> doorbell,
                     std::uint64_t doorbell_number, const Environment& environment)
    : reader_(memory.bytes(), hello.geometry),
      environment_(environment),
      memory_(std::move(memory)),
      doorbell_(std::move(doorbell)),
      peer_doorbell_(doorbell_name(hello.doorbell)),
      process_(socket),
      peer_memory_(process_, reader_, single_copy ? hello.proof : Proof{}),
      peer_(hello.writer()),
      peer_epoch_(hello.epoch) {
  reader_.attach(doorbell_number);
  watch(reader_.next_word(), reader_.next_value());
}

RingInbox::~RingInbox() {
  reader_.close();
  doorbell_->ring(peer_doorbell_);
}

bool RingInbox::peek(PeekedSegment& segment) {
  if (reader_.peek(segment.segment, segment.payload)) {
    unsettle();
    return true;
  }
  settle_empty();
  if (reader_.broken()) [[unlikely]]
    report_violation();
  return false;
}

void RingInbox::report_violation() {
  if (violation_reported_) return;
  violation_reported_ = true;
  ++environment_.counters.refused_malformed;
  environment_.log.warn(
      "shared memory from %s is closed: the ring contains an invalid segment, so this memory is "
      "corrupt",
      peer_.text().c_str());
}

}  // namespace cluster::shm
