#include "shm/peer_connection.h"

#include <utility>

#include "shm/hello.h"

namespace cluster::shm {

PeerConnection::PeerConnection(const SocketAddress& peer, os::LocalSocket socket,
                               std::shared_ptr<const os::Doorbell> doorbell)
    : socket_(std::move(socket)), doorbell_(std::move(doorbell)), peer_doorbell_(doorbell_name(peer)) {}

void PeerConnection::close(bool watch) {
  if (watch) process_.emplace(socket_);
  socket_ = {};
}

bool PeerConnection::ended(bool attached) const {
  if (!socket_) return process_ && process_->ended();
  return attached ? socket_.peer_process_ended() : socket_.hung_up();
}

}  // namespace cluster::shm
