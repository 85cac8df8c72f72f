// The ring from one peer of this node, with the socket that reports the peer's death. What the peer wrote
// before it died can still be read, since this process has mapped the memory itself.
#pragma once

#include "base/environment.h"
#include "os/local_socket.h"
#include "os/shared_memory.h"
#include "shm/hello.h"
#include "shm/inbox.h"
#include "shm/peer_memory.h"
#include "shm/ring_reader.h"

namespace cluster::shm {

class RingInbox final : public Inbox {
 public:
  RingInbox(const Hello& hello, os::LocalSocket socket, os::SharedMemory memory, bool single_copy,
            const Environment& environment);

  RingInbox* ring() override { return this; }
  bool begin_batch() override { return reader_.begin_batch(); }
  void end_batch() override { reader_.end_batch(); }
  bool peek(PeekedSegment& segment) override;
  /// Shows the next segment, which there is (has_next()), if it is a short message; false: peek() tells.
  bool peek_short(ShortMessage& message) { return reader_.peek_short(message); }
  /// Shows the next segment if it is a write that needs no answer; likewise.
  bool peek_unanswered(PeekedSegment& segment) {
    return reader_.next_is_unanswered() && reader_.peek(segment.segment, segment.payload);
  }
  void pop() override;
  void refuse() override { reader_.refuse(); }
  /// True if there is no segment; then unchanged() says so until one comes.
  bool found_empty() {
    if (!reader_.found_empty()) return false;
    settle_empty();
    return true;
  }
  const SocketAddress& peer() const override { return hello_.writer; }
  std::uint64_t peer_epoch() const override { return hello_.epoch; }
  carrier::CrossMemory* memory() override { return peer_memory_.reachable() ? &peer_memory_ : nullptr; }
  bool broken() const override { return reader_.broken(); }
  bool peer_gone() override { return socket_.hung_up(); }
  void ignore_writer() override { reader_.ignore_writer(); }
  std::size_t footprint() const override { return memory_.bytes().size(); }
  int descriptor() const override { return socket_.descriptor(); }
  int process_descriptor() const override { return socket_.process_descriptor(); }
  bool request_doorbell() override { return reader_.request_doorbell(); }
  void clear_doorbell() override { socket_.clear_doorbell(); }

 private:
  void settle_empty();
  void report_violation();

  RingReader reader_;
  Environment environment_;
  os::SharedMemory memory_;
  os::LocalSocket socket_;
  PeerMemory peer_memory_;
  Hello hello_;
  bool violation_reported_ = false;
};

inline void RingInbox::settle_empty() {
  if (reader_.take_doorbell_request()) [[unlikely]]
    socket_.send_doorbell();
  if (!reader_.expects_two_lines()) settle(reader_.next_word(), reader_.idle_word());
}

inline void RingInbox::pop() {
  reader_.pop();
  unsettle();
  watch(reader_.next_word(), reader_.next_value());
  if (reader_.take_doorbell_request()) [[unlikely]]
    socket_.send_doorbell();
  ++environment_.counters.shm_received;
}

}  // namespace cluster::shm
