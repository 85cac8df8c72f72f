// The sending end of a ring to one peer of this node. What has been written stays readable for the peer after this end
// is gone.
//
// It holds the connection over which the ring was sent until the peer has attached it (release_connection()): a peer that
// refuses or dies before says so there, and nowhere else. Until the peer's own ring has come, with a
// handle of its process, the outbox holds one.
#pragma once

#include <cstddef>
#include <memory>
#include <optional>

#include "base/address.h"
#include "base/environment.h"
#include "carrier/carrier.h"
#include "carrier/recall.h"
#include "os/doorbell.h"
#include "os/local_socket.h"
#include "os/peer_process.h"
#include "os/shared_memory.h"
#include "shm/ring_writer.h"

namespace cluster::shm {

class Outbox final : public carrier::Carrier, public carrier::Recall {
 public:
  Outbox(const SocketAddress& peer, os::LocalSocket socket, os::SharedMemory memory, const Geometry& geometry,
         std::shared_ptr<const os::Doorbell> doorbell, const Environment& environment);
  ~Outbox() override;

  std::size_t payload_max(const wire::Segment&) const override { return writer_.payload_max(); }
  bool post(const wire::Segment& segment, const Gather& payload, carrier::PayloadMode mode,
            carrier::Token token) override;
  bool acked_on_post() const override { return true; }
  bool drained() const override { return writer_.drained(); }
  carrier::Recall* recall() override { return this; }
  /// post() of a whole eager message.
  bool post_short(const wire::EagerHeader& header, const void* payload) {
    if (!writer_.post_short(header, payload)) [[unlikely]]
      return false;
    if (writer_.take_doorbell_request()) [[unlikely]]
      doorbell_->ring(peer_doorbell_);
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
  /// True if the peer is gone because it could not take the connection (a system call).
  bool refused() { return socket_.refused(); }
  /// True once the peer's process has ended, though a child of it may hold the socket (several system calls).
  bool process_ended() const { return socket_ && socket_.peer_process_ended(); }
  /// True once no process has the peer's doorbell: one that executes another program says nothing else (likewise).
  bool doorbell_gone() const { return !socket_ && !os::Doorbell::exists(peer_doorbell_); }
  /// Bytes of memory that are mapped; pages that were never used take no memory.
  std::size_t footprint() const { return memory_.bytes().size(); }

  /// Readable when the peer ends the connection; -1 once that is released.
  int descriptor() const { return socket_.descriptor(); }
  /// The peer has attached the ring: the connection has done its work.
  bool connection_done() const { return socket_ && writer_.reader_state() == EndState::kAttached; }
  /// Closes it. With `watch` a handle of the peer's process takes its place.
  void release_connection(bool watch);
  void release_process() { process_.reset(); }
  /// Readable when the peer's process has ended; -1: there is no handle.
  int process_descriptor() const { return process_ ? process_->descriptor() : -1; }
  /// From now on the peer rings the doorbell when it frees space. True if it had not been asked: then
  /// os::fence_processes() and one more attempt to post are due before the caller sleeps.
  bool request_doorbell() { return writer_.request_doorbell(); }
  /// Rings the peer's doorbell without being asked, once, if segments wait and the peer has taken none since
  /// the last call.
  void ring_doorbell_if_stalled() {
    if (writer_.newly_stalled()) doorbell_->ring(peer_doorbell_);
  }

 private:
  RingWriter writer_;
  Environment environment_;
  os::SharedMemory memory_;
  os::LocalSocket socket_;  ///< empty once it is released
  std::optional<os::PeerProcess> process_;
  std::shared_ptr<const os::Doorbell> doorbell_;
  os::LocalName peer_doorbell_;
  SocketAddress peer_;
  bool violation_reported_ = false;
};

}  // namespace cluster::shm
