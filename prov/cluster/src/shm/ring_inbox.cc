#include "shm/ring_inbox.h"

#include <utility>

namespace cluster::shm {

RingInbox::RingInbox(const Hello& hello, os::LocalSocket socket, os::SharedMemory memory, bool single_copy,
                     const Environment& environment)
    : reader_(memory.bytes(), hello.geometry),
      environment_(environment),
      memory_(std::move(memory)),
      socket_(std::move(socket)),
      peer_memory_(socket_, single_copy ? hello.proof : Proof{}),
      hello_(hello) {
  socket_.watch_process();
  watch(reader_.next_word(), reader_.next_value());
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
