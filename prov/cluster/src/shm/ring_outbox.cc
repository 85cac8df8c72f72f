#include "shm/ring_outbox.h"

namespace cluster::shm {

RingOutbox::RingOutbox(const SocketAddress& peer, os::LocalSocket socket, os::SharedMemory memory,
                       const Geometry& geometry, const Environment& environment)
    : writer_(memory.bytes(), geometry),
      environment_(environment),
      memory_(std::move(memory)),
      socket_(std::move(socket)),
      peer_(peer) {}

bool RingOutbox::post(const wire::Segment& segment, const Gather& payload, carrier::PayloadMode,
                      carrier::Token) {
  if (!writer_.post(segment, payload)) return false;
  if (writer_.take_doorbell_due()) [[unlikely]]
    socket_.send_doorbell();
  ++environment_.counters.shm_sent;
  return true;
}

bool RingOutbox::peer_gone() {
  if (!writer_.broken()) return socket_.hung_up();
  // A peer that scribbles over its own head cannot be sent to: the same as gone.
  if (!complained_) {
    complained_ = true;
    ++environment_.counters.refused_malformed;
    environment_.log.warn("shared memory to %s dropped: the peer gave back more than it was sent",
                          peer_.text().c_str());
  }
  return true;
}

}  // namespace cluster::shm
