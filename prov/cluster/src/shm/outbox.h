// The sending end of a ring to one peer of this node. What has been written stays readable for the peer after this end
// is gone. Where there is a key nothing is written before the peer has shown that it has it: until then the ring seems
// full.
//
// The peer's end is known by one thing after another: until the peer has attached the ring, by the connection over which the
// ring was sent; then by a handle of its process, until the peer's own ring has come, whose inbox has one. A peer that
// refuses the ring, or dies before it has attached it, says so by the connection alone. Once the ring is attached, the end
// of the connection means nothing.
#pragma once

#include <cstddef>
#include <memory>
#include <optional>
#include <string>

#include "base/address.h"
#include "base/environment.h"
#include "carrier/carrier.h"
#include "os/local_socket.h"
#include "os/peer_process.h"
#include "os/shared_memory.h"
#include "shm/greeting.h"
#include "shm/recall.h"
#include "shm/ring_writer.h"

namespace cluster::shm {

class Outbox final : public Recall, public carrier::Lane {
 public:
  Outbox(const SocketAddress& peer, GreetedSocket connection, os::SharedMemory memory,
         const Geometry& geometry, std::shared_ptr<const os::Doorbell> doorbell,
         const Environment& environment);
  ~Outbox() override;

  /// To be called once, before anything else: offers the ring to the peer. False: `reason` says why not.
  bool begin_greeting(std::string& reason);
  /// Whether the ring has been sent, as far as has been seen.
  HelloSender::State greeting() const { return greeting_.state(); }
  /// Looks whether the peer has answered the greeting of its connection (a system call), which opens the ring.
  HelloSender::State advance_greeting();

  std::size_t payload_max(const wire::Segment&) const override { return writer_.payload_max(); }
  bool post(const wire::Segment& segment, const Gather& payload, carrier::PayloadMode mode,
            carrier::Token token) override;
  bool drained() const override { return writer_.drained(); }
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
  bool peer_closed() const { return writer_.reader_state() == EndState::kClosed; }
  /// The peer has attached the ring: an open connection has done its work.
  bool attached() const { return writer_.reader_state() == EndState::kAttached; }
  /// True once no process has the peer's doorbell: one that executes another program says nothing else (system calls).
  bool doorbell_gone() const;

  bool connected() const { return static_cast<bool>(socket_); }
  /// Readable when the peer ends the connection; -1 once that is closed.
  int connection_descriptor() const { return socket_.descriptor(); }
  /// The peer has attached the ring. With `watch` a handle of its process is taken.
  void close_connection(bool watch);
  /// True if the peer is gone because it could not take the connection (a system call).
  bool refused() { return socket_ && socket_.refused(); }
  /// True once the process at the other end of the connection has ended, though a child of it may hold the connection
  /// (several system calls).
  bool process_ended() const { return socket_ && socket_.peer_process_ended(); }
  /// Readable when the peer's process has ended; -1: there is no handle.
  int process_descriptor() const { return process_ ? process_->descriptor() : -1; }
  /// False: peer_gone() does not know whether the process has ended.
  bool process_observable() const { return !process_ || process_->observable(); }
  void release_process() { process_.reset(); }

  std::size_t footprint() const { return memory_.bytes().size(); }

  /// As Inbox::request_doorbell(), for space.
  bool request_doorbell() { return writer_.request_doorbell(); }
  /// Rings the peer's doorbell without being asked, once, if segments wait and the peer has taken none since
  /// the last call.
  void ring_doorbell_if_stalled() {
    if (writer_.newly_stalled()) ring();
  }

 private:
  void ring();
  bool connection_or_process_ended() const;

  RingWriter writer_;
  Environment environment_;
  os::SharedMemory memory_;
  os::LocalSocket socket_;  ///< until the peer has attached the ring
  HelloSender greeting_;
  std::optional<os::PeerProcess> process_;
  std::shared_ptr<const os::Doorbell> doorbell_;
  std::optional<os::LocalName> peer_doorbell_;  ///< once it has been rung
  SocketAddress peer_;
  bool violation_reported_ = false;
};

}  // namespace cluster::shm
