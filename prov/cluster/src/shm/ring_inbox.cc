#include "shm/ring_inbox.h"

namespace cluster::shm {

RingInbox::RingInbox(const Hello& hello, os::LocalSocket socket, os::SharedMemory memory, bool single_copy,
                     const Environment& environment)
    : reader_(memory.bytes(), hello.geometry),
      environment_(environment),
      memory_(std::move(memory)),
      socket_(std::move(socket)),
      memory_of_peer_(socket_, single_copy ? hello.proof : Proof{}),
      hello_(hello) {}

bool RingInbox::peek(PeekedSegment& arrival) {
  if (reader_.peek(arrival.segment, arrival.payload)) {
    stir();
    return true;
  }
  if (reader_.take_doorbell_due()) socket_.send_doorbell();
  if (!reader_.expects_two_lines()) settle(reader_.next_word(), reader_.idle_word());
  if (reader_.broken()) [[unlikely]]
    complain();
  return false;
}

void RingInbox::pop() {
  reader_.pop();
  expect(reader_.next_word(), reader_.next_value());
  if (reader_.take_doorbell_due()) socket_.send_doorbell();
  ++environment_.counters.shm_received;
}

void RingInbox::complain() {
  if (complained_) return;
  complained_ = true;
  ++environment_.counters.refused_malformed;
  environment_.log.warn("shared memory from %s dropped: the ring holds what no peer of ours writes",
                        hello_.writer.text().c_str());
}

}  // namespace cluster::shm
