// The sending end of a ring to one peer of this node. What has been written stays readable for the peer after this end
// is gone. Where there is a key nothing is written before the peer has shown that it has it: until then the ring seems
// full.
#pragma once

#include <cstddef>
#include <memory>

#include "base/address.h"
#include "base/environment.h"
#include "carrier/carrier.h"
#include "carrier/lane.h"
#include "os/shared_memory.h"
#include "shm/peer_connection.h"
#include "shm/recall.h"
#include "shm/ring_writer.h"

namespace cluster::shm {

class Outbox final : public Recall, public carrier::Lane {
 public:
  Outbox(const SocketAddress& peer, GreetedSocket connection, os::SharedMemory memory,
         const Geometry& geometry, std::shared_ptr<const os::Doorbell> doorbell,
         const Environment& environment);
  ~Outbox() override;

  /// Once, before anything else: offers the peer the ring; false with `reason`.
  bool begin_greeting(std::string& reason);
  /// Looks whether the peer has answered the greeting of its connection (a system call), which opens the ring.
  HelloSender::State advance_greeting();

  std::size_t payload_max(const wire::Segment&) const override { return writer_.payload_max(); }
  bool post(const wire::Segment& segment, const Gather& payload, carrier::PayloadMode mode,
            carrier::Token token) override;
  bool drained() const override { return writer_.drained(); }
  /// post() of a whole eager message.
  bool post_short(const wire::EagerHeader& header, const void* payload) {
    if (!writer_.post_short(header, payload)) [[unlikely]]
      return false;
    if (writer_.take_doorbell_request()) [[unlikely]]
      ring();
    ++environment_.counters.shm_sent;
    return true;
  }

  Number next() const override { return writer_.next(); }
  Number taken() override { return writer_.taken(); }
  Number capacity() const override { return writer_.capacity(); }
  bool take_refusal(Number segment) override { return writer_.take_refusal(segment); }
  bool hold() override;
  ConstBytes payload(Number segment) const override { return writer_.payload(segment); }
  void withdraw(Number segment) override { writer_.withdraw(segment); }
  void resume() override;

  /// True once the peer is gone or has broken the ring's rules (a system call).
  bool peer_gone();
  /// True once the peer has closed its end, as it says itself.
  bool peer_closed() const { return writer_.reader_state() == EndState::kClosed; }
  /// The peer has attached the ring: an open connection has done its work.
  bool attached() const { return writer_.reader_state() == EndState::kAttached; }
  PeerConnection& connection() { return connection_; }
  /// True once no process has the peer's doorbell: one that executes another program says nothing else (system calls).
  bool doorbell_gone() const { return attached() && connection_.doorbell_gone(writer_.reader_doorbell()); }
  /// Bytes of memory that are mapped; pages that were never used take no memory.
  std::size_t footprint() const { return memory_.bytes().size(); }

  /// From now on the peer rings the doorbell when it frees space. True if it had not been asked: then
  /// os::fence_processes() and one more attempt to post are due before the caller sleeps.
  bool request_doorbell() { return writer_.request_doorbell(); }
  /// Rings the peer's doorbell without being asked, once, if segments wait and the peer has taken none since
  /// the last call.
  void ring_doorbell_if_stalled() {
    if (writer_.newly_stalled()) ring();
  }

 private:
  /// A peer that has not attached the ring yet is not asleep for want of it.
  void ring() {
    if (writer_.reader_state() != EndState::kUnknown) connection_.ring(writer_.reader_doorbell());
  }

  RingWriter writer_;
  Environment environment_;
  os::SharedMemory memory_;
  PeerConnection connection_;
  SocketAddress peer_;
  bool violation_reported_ = false;
};

}  // namespace cluster::shm
