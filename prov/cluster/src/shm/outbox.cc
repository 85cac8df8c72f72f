#include "shm/outbox.h"

#include <utility>

namespace cluster::shm {

Outbox::Outbox(const SocketAddress& peer, GreetedSocket connection, os::SharedMemory memory,
               const Geometry& geometry, std::shared_ptr<const os::Doorbell> doorbell,
               const Environment& environment)
    : Recall({.acknowledges_on_post = true, .on_this_node = true}),
      writer_(memory.bytes(), geometry),
      environment_(environment),
      memory_(std::move(memory)),
      connection_(std::move(connection), std::move(doorbell)),
      peer_(peer) {}

bool Outbox::begin_greeting(std::string& reason) {
  if (!connection_.begin_greeting(reason)) return false;
  writer_.set_blocked(connection_.greeting() != HelloSender::State::sent);
  return true;
}

HelloSender::State Outbox::advance_greeting() {
  const bool waited = connection_.greeting() == HelloSender::State::waiting;
  if (waited && connection_.advance_greeting() == HelloSender::State::sent) writer_.set_blocked(false);
  return connection_.greeting();
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

bool Outbox::hold() {
  const bool held = writer_.hold();
  if (!held) resume();
  return held;
}

/// The peer may have found nothing but what it must not take, and asked for the doorbell.
void Outbox::resume() {
  writer_.resume();
  if (writer_.take_doorbell_request()) ring();
}

bool Outbox::peer_gone() {
  // A peer closes the connection when it has attached the ring, perhaps between the two looks: what the second pair says
  // holds.
  if (!writer_.broken())
    return peer_closed() || (connection_.ended(attached()) && connection_.ended(attached()));
  // Nothing more can be sent to a peer that overwrites its own read position: the same as gone.
  if (!violation_reported_) {
    violation_reported_ = true;
    ++environment_.counters.refused_malformed;
    environment_.log.warn(
        "shared memory to %s closed: the peer acknowledged segments that were never sent (its memory is "
        "corrupt)",
        peer_.text().c_str());
  }
  return true;
}

}  // namespace cluster::shm
