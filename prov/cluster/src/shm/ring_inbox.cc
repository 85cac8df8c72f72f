#include "shm/ring_inbox.h"

#include <utility>

namespace cluster::shm {

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
      hello_(hello) {
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
      "shared memory from %s closed: the ring holds an invalid segment (the peer's memory is corrupt)",
      hello_.writer.text().c_str());
}

}  // namespace cluster::shm
