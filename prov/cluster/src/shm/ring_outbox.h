// The ring to one peer of this node, with the socket that tells of its death. What has been written
// stays readable for the peer after this end is gone.
#pragma once

#include "base/environment.h"
#include "os/local_socket.h"
#include "os/shared_memory.h"
#include "shm/host.h"
#include "shm/ring_writer.h"

namespace cluster::shm {

class RingOutbox final : public Outbox {
 public:
  RingOutbox(const SocketAddress& peer, os::LocalSocket socket, os::SharedMemory memory,
             const Geometry& geometry, const Environment& environment);

  std::size_t payload_max(const wire::Segment&) const override { return writer_.payload_max(); }
  bool post(const wire::Segment& segment, const Gather& payload, protocol::Hold hold,
            protocol::Token token) override;
  bool immediate() const override { return true; }
  int descriptor() const override { return socket_.descriptor(); }
  std::size_t footprint() const override { return memory_.bytes().size(); }
  bool ask() override { return writer_.ask_for_room(); }
  void hush() override { socket_.hush(); }
  bool peer_gone() override;
  void knock_if_unheard() override {
    if (writer_.newly_unheard()) socket_.knock();
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
