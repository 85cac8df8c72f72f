// The ring to one peer of this node, with the socket that tells of its death. What has been written
// stays readable for the peer after this end is gone.
#pragma once

#include "base/environment.h"
#include "os/local_socket.h"
#include "os/shared_memory.h"
#include "shm/local_listener.h"
#include "shm/ring_writer.h"

namespace cluster::shm {

class RingOutbox final : public Outbox {
 public:
  RingOutbox(const SocketAddress& peer, os::LocalSocket socket, os::SharedMemory memory,
             const Geometry& geometry, const Environment& environment);

  std::size_t payload_max(const wire::Segment&) const override { return writer_.payload_max(); }
  bool post(const wire::Segment& segment, const Gather& payload, carrier::PayloadMode hold,
            carrier::Token token) override;
  bool immediate() const override { return true; }
  int descriptor() const override { return socket_.descriptor(); }
  std::size_t footprint() const override { return memory_.bytes().size(); }
  bool request_doorbell() override { return writer_.request_doorbell(); }
  void clear_doorbell() override { socket_.clear_doorbell(); }
  bool peer_gone() override;
  void ring_doorbell_if_stalled() override {
    if (writer_.newly_stalled()) socket_.send_doorbell();
  }
  bool drained() const override { return writer_.drained(); }

 private:
  RingWriter writer_;
  Environment environment_;
  os::SharedMemory memory_;
  os::LocalSocket socket_;
  SocketAddress peer_;
  bool complained_ = false;
};

}  // namespace cluster::shm
