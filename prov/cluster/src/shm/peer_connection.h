// What an outbox has of its peer beside the ring: the connection over which the ring was sent, until the peer has attached it,
// then a handle of the peer's process, until the peer's own ring has come, which has one; and always its doorbell.
//
// A peer that refuses the ring, or dies before it has attached it, says so by the connection and by nothing else. Behind
// that, its end means nothing.
#pragma once

#include <memory>
#include <optional>

#include "base/address.h"
#include "os/doorbell.h"
#include "os/local_socket.h"
#include "os/peer_process.h"

namespace cluster::shm {

class PeerConnection {
 public:
  PeerConnection(const SocketAddress& peer, os::LocalSocket socket, std::shared_ptr<const os::Doorbell> doorbell);

  void ring() const { doorbell_->ring(peer_doorbell_); }

  bool open() const { return static_cast<bool>(socket_); }
  /// Readable when the peer ends the connection; -1 once that is closed.
  int descriptor() const { return socket_.descriptor(); }
  /// The peer has attached the ring. With `watch` a handle of its process is taken.
  void close(bool watch);
  /// Readable when the peer's process has ended; -1: there is no handle.
  int process_descriptor() const { return process_ ? process_->descriptor() : -1; }
  void release_process() { process_.reset(); }

  /// True once the peer is gone, as far as is known here (system calls).
  bool ended(bool attached) const;
  /// True if the peer is gone because it could not take the connection (a system call).
  bool refused() { return socket_ && socket_.refused(); }
  /// True once the peer's process has ended, though a child of it may hold the connection (several system calls).
  bool process_ended() const { return socket_ && socket_.peer_process_ended(); }
  /// True once no process has the peer's doorbell: one that executes another program says nothing else (likewise).
  bool doorbell_gone() const { return !socket_ && !os::Doorbell::exists(peer_doorbell_); }

 private:
  os::LocalSocket socket_;
  std::optional<os::PeerProcess> process_;
  std::shared_ptr<const os::Doorbell> doorbell_;
  os::LocalName peer_doorbell_;
};

}  // namespace cluster::shm
