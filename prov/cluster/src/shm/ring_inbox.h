// The ring from one peer of this node, with the socket that tells of its death. What the peer wrote
// before it died can still be read: the mapping is ours.
#pragma once

#include "base/environment.h"
#include "os/local_socket.h"
#include "os/shared_memory.h"
#include "shm/hello.h"
#include "shm/local_listener.h"
#include "shm/peer_memory.h"
#include "shm/ring_reader.h"

namespace cluster::shm {

class RingInbox final : public Inbox {
 public:
  RingInbox(const Hello& hello, os::LocalSocket socket, os::SharedMemory memory, bool single_copy,
            const Environment& environment);

  const SocketAddress& peer() const override { return hello_.writer; }
  std::uint64_t peer_epoch() const override { return hello_.epoch; }
  bool peek(PeekedSegment& arrival) override;
  void pop() override;
  bool broken() const override { return reader_.broken(); }
  int descriptor() const override { return socket_.descriptor(); }
  std::size_t footprint() const override { return memory_.bytes().size(); }
  bool request_doorbell() override { return reader_.request_doorbell(); }
  void clear_doorbell() override { socket_.clear_doorbell(); }
  carrier::CrossMemory* memory() override { return memory_of_peer_.reachable() ? &memory_of_peer_ : nullptr; }
  bool peer_gone() override { return socket_.hung_up(); }

 private:
  void complain();

  RingReader reader_;
  Environment environment_;
  os::SharedMemory memory_;
  os::LocalSocket socket_;
  PeerMemory memory_of_peer_;
  Hello hello_;
  bool complained_ = false;
};

}  // namespace cluster::shm
