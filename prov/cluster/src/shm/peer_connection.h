// What an outbox has of its peer beside the ring: the connection over which the ring was sent, until the peer has attached it,
// then a handle of the peer's process, until the peer's own ring has come, which has one; and always its doorbell.
//
// A peer that refuses the ring, or dies before it has attached it, says so by the connection and by nothing else. Behind
// that, its end means nothing.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <utility>

#include "os/doorbell.h"
#include "os/local_socket.h"
#include "os/peer_process.h"
#include "shm/greeting.h"

namespace cluster::shm {

class PeerConnection {
 public:
  PeerConnection(GreetedSocket connection, std::shared_ptr<const os::Doorbell> doorbell)
      : socket_(std::move(connection.socket)),
        greeting_(std::move(connection.greeting)),
        doorbell_(std::move(doorbell)) {}

  bool begin_greeting(std::string& reason) { return greeting_.begin(socket_, reason); }
  /// Whether the ring has been sent, as far as has been seen.
  HelloSender::State greeting() const { return greeting_.state(); }
  /// Looks for the peer's answer (a system call).
  HelloSender::State advance_greeting() { return greeting_.advance(socket_); }

  /// The peer's doorbell, which has this number.
  void ring(std::uint64_t number);
  bool doorbell_gone(std::uint64_t number) const;

  bool open() const { return static_cast<bool>(socket_); }
  /// Readable when the peer ends the connection; -1 once that is closed.
  int descriptor() const { return socket_.descriptor(); }
  /// The peer has attached the ring. With `watch` a handle of its process is taken.
  void close(bool watch);
  /// Readable when the peer's process has ended; -1: there is no handle.
  int process_descriptor() const { return process_ ? process_->descriptor() : -1; }
  /// False: ended() does not know.
  bool process_observable() const { return !process_ || process_->observable(); }
  void release_process() { process_.reset(); }

  /// True once the peer is gone, as far as is known here (system calls).
  bool ended(bool attached) const;
  /// True if the peer is gone because it could not take the connection (a system call).
  bool refused() { return socket_ && socket_.refused(); }
  /// True once the peer's process has ended, though a child of it may hold the connection (several system calls).
  bool process_ended() const { return socket_ && socket_.peer_process_ended(); }

 private:
  os::LocalSocket socket_;
  HelloSender greeting_;
  std::optional<os::PeerProcess> process_;
  std::shared_ptr<const os::Doorbell> doorbell_;
  std::optional<os::LocalName> peer_doorbell_;  ///< once it has been rung
};

}  // namespace cluster::shm
