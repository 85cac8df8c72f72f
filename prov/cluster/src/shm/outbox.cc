#include "shm/outbox.h"

#include <utility>

#include "shm/hello.h"

namespace cluster::shm {

Outbox::Outbox(const SocketAddress& peer, GreetedSocket connection, os::SharedMemory memory,
               const Geometry& geometry, std::shared_ptr<const os::Doorbell> doorbell,
               const Environment& environment)
    : Recall({.acknowledges_on_post = true}),
      writer_(memory.bytes(), geometry),
      environment_(environment),
      memory_(std::move(memory)),
      socket_(std::move(connection.socket)),
      greeting_(std::move(connection.greeting)),
      doorbell_(std::move(doorbell)),
      peer_(peer) {}

bool Outbox::begin_greeting(std::string& reason) {
  if (!greeting_.begin(socket_, reason)) return false;
  writer_.set_blocked(greeting_.state() != HelloSender::State::sent);
  return true;
}

HelloSender::State Outbox::advance_greeting() {
  const bool waited = greeting_.state() == HelloSender::State::waiting;
  if (waited && greeting_.advance(socket_) == HelloSender::State::sent) writer_.set_blocked(false);
  return greeting_.state();
}

Outbox::~Outbox() {
  writer_.close();
  ring();
}

bool Outbox::post(const wire::Segment& segment, const Gather& payload, carrier::PayloadMode, carrier::Token) {
  if (!writer_.post(segment, payload)) return false;
  if (writer_.take_doorbell_request()) [[unlikely]]
    ring();
  ++environment_.counters.shm_sent;
  return true;
}

/// Wakes the peer by its doorbell. Does nothing if the peer has not attached this ring, because such a peer
/// does not wait for segments in it.
void Outbox::ring() {
  if (writer_.reader_state() == EndState::kUnknown) return;
  if (!peer_doorbell_) peer_doorbell_.emplace(doorbell_name(writer_.reader_doorbell()));
  doorbell_->ring(*peer_doorbell_);
}

bool Outbox::doorbell_gone() const {
  return attached() && !connected() &&
         !doorbell_->exists(os::LocalName(doorbell_name(writer_.reader_doorbell())));
}

void Outbox::close_connection(bool watch) {
  if (watch) process_.emplace(socket_);
  socket_ = {};
}

bool Outbox::connection_or_process_ended() const {
  if (!connected()) return process_ && process_->ended();
  return attached() ? socket_.peer_process_ended() : socket_.hung_up();
}

bool Outbox::hold() {
  const bool held = writer_.hold();
  if (!held) resume();
  return held;
}

/// Lets the peer take segments again. The peer may have found that it could take none, and may have requested
/// its doorbell. If so, this side rings the doorbell.
void Outbox::resume() {
  writer_.resume();
  if (writer_.take_doorbell_request()) ring();
}

bool Outbox::peer_gone() {
  // A peer first attaches the ring and then closes the connection. It may do both in the middle of the first
  // check, so only the second check is certain.
  if (!writer_.broken())
    return peer_closed() || (connection_or_process_ended() && connection_or_process_ended());
  // A peer that has written an impossible position counts as gone, because this side can send it nothing
  // more.
  if (!violation_reported_) {
    violation_reported_ = true;
    ++environment_.counters.refused_malformed;
    environment_.log.warn(
        "shared memory to %s is closed: the peer acknowledged segments that were never sent, so this memory "
        "is corrupt",
        peer_.text().c_str());
  }
  return true;
}

}  // namespace cluster::shm
