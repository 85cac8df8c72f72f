// The sending end of a ring to one peer of this node. Written segments stay readable for the peer after this
// end is gone. With a key, nothing is written before the peer has proved that it has the key: until then the
// ring seems full.
//
// How this side learns that the peer is gone changes over time. Until the peer has attached the ring, the
// connection that carried the ring tells. Then a handle of the peer's process tells, until the peer's own
// ring comes: its inbox has another handle. If the peer refuses the ring, or dies before it has attached the
// ring, only the connection tells. Once the ring is attached, the end of the connection means nothing.
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

  /// Offers the ring to the peer. Call it once, before anything else. Returns false on failure; `reason` says
  /// why.
  bool begin_greeting(std::string& reason);
  /// Whether the ring has been sent, as last seen.
  HelloSender::State greeting() const { return greeting_.state(); }
  /// Checks whether the peer has answered the greeting (a system call), and returns the new state. The answer
  /// opens the ring.
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
  /// True if the peer has attached the ring; the connection is then no longer needed.
  bool attached() const { return writer_.reader_state() == EndState::kAttached; }
  /// True once no process has the peer's doorbell (system calls). A process that executes another program
  /// gives no other sign.
  bool doorbell_gone() const;

  bool connected() const { return static_cast<bool>(socket_); }
  /// Returns a descriptor that is readable when the peer ends the connection, or -1 once the connection is
  /// closed.
  int connection_descriptor() const { return socket_.descriptor(); }
  /// Closes the connection, after the peer has attached the ring. With `watch`, takes a handle of the peer's
  /// process.
  void close_connection(bool watch);
  /// True if the peer is gone because it could not take the connection (a system call).
  bool refused() { return socket_ && socket_.refused(); }
  /// True once the process at the other end of the connection has ended, even if a child of that process
  /// holds the connection (several system calls).
  bool process_ended() const { return socket_ && socket_.peer_process_ended(); }
  /// Returns a descriptor that is readable once the peer's process has ended, or -1 if there is no handle.
  int process_descriptor() const { return process_ ? process_->descriptor() : -1; }
  /// Returns false if peer_gone() cannot tell whether the process has ended.
  bool process_observable() const { return !process_ || process_->observable(); }
  void release_process() { process_.reset(); }

  std::size_t footprint() const { return memory_.bytes().size(); }

  /// Asks the peer to ring when it frees space. Returns what Inbox::request_doorbell() returns.
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
  std::optional<os::LocalName> peer_doorbell_;  ///< set when it is first rung
  SocketAddress peer_;
  bool violation_reported_ = false;
};

}  // namespace cluster::shm
