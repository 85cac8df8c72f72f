#include "shm/peer_connection.h"

#include "shm/hello.h"

namespace cluster::shm {

void PeerConnection::ring(std::uint64_t number) {
  if (!peer_doorbell_) peer_doorbell_.emplace(doorbell_name(number));
  doorbell_->ring(*peer_doorbell_);
}

bool PeerConnection::doorbell_gone(std::uint64_t number) const {
  return !socket_ && !doorbell_->exists(os::LocalName(doorbell_name(number)));
}

void PeerConnection::close(bool watch) {
  if (watch) process_.emplace(socket_);
  socket_ = {};
}

bool PeerConnection::ended(bool attached) const {
  if (!socket_) return process_ && process_->ended();
  return attached ? socket_.peer_process_ended() : socket_.hung_up();
}

}  // namespace cluster::shm
