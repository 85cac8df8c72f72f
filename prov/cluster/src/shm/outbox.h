// The sending end of a ring to one peer of this node. The peer can read the written segments even after this
// end is gone. If there is a key, nothing is written before the peer has proved that it has the key. Until
// then the ring seems full.
//
// The sign by which this side learns that the peer is gone changes over time. The ring is sent over a
// connection. If the peer closes this connection before it has attached the ring, the peer is gone or refuses
// the ring. Once the peer has attached the ring, a closed connection has no meaning, and this side opens a
// handle of the peer's process instead. When the peer's own ring arrives, the inbox of that ring has another
// handle, and the outbox closes its own handle.
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

  /// Offers the ring to the peer. Called once, before all other calls. Returns false on failure, and sets
  /// `reason` to the cause.
  bool begin_greeting(std::string& reason);
  /// Returns the state of the greeting at the last call of advance_greeting().
  HelloSender::State greeting() const { return greeting_.state(); }
  /// Checks whether the peer has answered the greeting, and returns the new state. Once the peer has
  /// answered, segments can be posted. Makes a system call.
  HelloSender::State advance_greeting();

  std::size_t payload_max(const wire::Segment&) const override { return writer_.payload_max(); }
  bool post(const wire::Segment& segment, const Gather& payload, carrier::PayloadMode mode,
            carrier::Token token) override;
  bool post_write(const wire::WriteHeader& header, const Gather& payload) override;
  bool drained() const override { return writer_.drained(); }
  bool post_short(const wire::EagerHeader& header, const void* payload) {
    if (!writer_.post_short(header, payload)) [[unlikely]]
      return false;
    after_post();
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

  /// Returns true once the peer is gone or has broken the rules of the ring. Makes system calls.
  bool peer_gone();
  bool peer_closed() const { return writer_.reader_state() == EndState::kClosed; }
  /// Returns true if the peer has attached the ring. If so, the connection is no longer needed.
  bool attached() const { return writer_.reader_state() == EndState::kAttached; }
  /// Returns true once no process has the peer's doorbell. If the peer's process executes another program,
  /// this is the only sign. Returns false until the peer has attached the ring and this side has closed the
  /// connection. Makes system calls.
  bool doorbell_gone() const;

  /// Called when the peer has ended. After this call the ring seems full.
  void block() { writer_.set_blocked(true); }

  bool connected() const { return static_cast<bool>(socket_); }
  /// Returns a descriptor that becomes readable when the peer ends the connection. Returns -1 if this side
  /// has closed the connection.
  int connection_descriptor() const { return socket_.descriptor(); }
  /// Closes the connection. Called after the peer has attached the ring. `watch`: true to open a handle of
  /// the peer's process first.
  void close_connection(bool watch);
  /// Returns true if the peer has refused this connection for lack of resources (a descriptor, or a place for
  /// a new connection). Costs a system call.
  bool refused() { return socket_ && socket_.refused(); }
  /// Returns true once the process at the other end of the connection has ended, even if a child of it still
  /// holds the connection open. Makes several system calls.
  bool process_ended() const { return socket_ && socket_.peer_process_ended(); }
  /// Returns a descriptor that becomes readable when the peer's process ends, or -1 if there is no handle.
  int process_descriptor() const { return process_ ? process_->descriptor() : -1; }
  /// Returns false if peer_gone() cannot tell whether the process has ended.
  bool process_observable() const { return !process_ || process_->observable(); }
  void release_process() { process_.reset(); }

  std::size_t footprint() const { return memory_.bytes().size(); }

  /// Asks the peer to ring the doorbell when it frees space. Returns true if this is a new request, as
  /// Inbox::request_doorbell() does.
  bool request_doorbell() { return writer_.request_doorbell(); }
  /// Wakes the peer by its doorbell, even without a request, if segments wait and the peer has taken none
  /// since the last call. Then does nothing until the peer takes segments again.
  void ring_doorbell_if_stalled() {
    if (writer_.newly_stalled()) ring();
  }

 private:
  void after_post() {
    if (writer_.take_doorbell_request()) [[unlikely]]
      ring();
    ++environment_.counters.shm_sent;
  }
  void ring();
  bool connection_or_process_ended() const;

  RingWriter writer_;
  Environment environment_;
  os::SharedMemory memory_;
  os::LocalSocket socket_;  ///< the connection, until the peer has attached the ring
  HelloSender greeting_;
  std::optional<os::PeerProcess> process_;
  std::shared_ptr<const os::Doorbell> doorbell_;
  std::optional<os::LocalName> peer_doorbell_;  ///< set when this side first rings the peer's doorbell
  SocketAddress peer_;
  bool violation_reported_ = false;
};

}  // namespace cluster::shm
