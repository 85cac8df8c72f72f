// The ring from one peer of this node. Once the inbox exists, the connection over which the ring was sent is
// no longer needed. The peer says in the ring when it closes. A handle of the peer's process tells when the
// process has ended. Even then this side can read the peer's last segments, because it has mapped the ring,
// too.
#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include "base/environment.h"
#include "carrier/memory_access.h"
#include "os/local_socket.h"
#include "os/peer_process.h"
#include "os/shared_memory.h"
#include "shm/hello.h"
#include "shm/inbox.h"
#include "shm/ring_reader.h"

namespace cluster::shm {

/// The memory of the process that writes a ring. A process number alone does not identify this process: the
/// peer may run in another PID namespace, and numbers are reused. So the hello contains a secret and its
/// address in the peer's memory. If the process with this number has the secret at this address, it is the
/// peer, and the kernel permits access. As long as the handle says that the peer's process has not ended, the
/// number stays valid. Without a handle, this side reads the secret again for each access.
///
/// The peer keeps the buffers of an announced message until this side has the whole message, or until the
/// peer closes its end of the ring. After that the peer's application may reuse the buffers.
class PeerMemory final : public carrier::CrossMemory {
 public:
  /// `process` writes `ring`. Both must outlive this object.
  PeerMemory(const os::PeerProcess& process, const RingReader& ring, const Proof& proof);

  /// Returns true if this process may access the memory. Otherwise read() and write() must not be called.
  bool reachable() const { return reachable_; }
  /// Returns why this process may not access the memory, as a text for the log. The text is empty if access
  /// is possible, or if the peer does not offer its memory.
  std::string why_unreachable() const;

  bool read(std::uint64_t address, std::span<const Bytes> slices, std::size_t offset,
            std::size_t length) override;
  bool write(std::uint64_t address, const Gather& source) override;

 private:
  /// Reads the secret. Returns true if it is right. Sets `error` to the errno of the attempt, or to 0 if the
  /// memory could be read.
  bool shows_proof(int& error) const;
  bool same_process() const;

  const os::PeerProcess& process_;
  const RingReader& ring_;
  Proof proof_;
  int error_ = 0;
  bool reachable_;
};

class RingInbox final : public Inbox {
 public:
  /// `hello` must be valid. After the constructor, `socket` may be closed.
  RingInbox(const Hello& hello, const os::LocalSocket& socket, os::SharedMemory memory, bool single_copy,
            std::shared_ptr<const os::Doorbell> doorbell, std::uint64_t doorbell_number,
            const Environment& environment);
  ~RingInbox() override;

  RingInbox* ring() override { return this; }
  bool begin_batch() override { return reader_.begin_batch(); }
  void end_batch() override { reader_.end_batch(); }
  bool peek(PeekedSegment& segment) override;
  /// Shows the next segment if it is a short message. has_next() must be true. Returns false if the caller
  /// must call peek() instead.
  bool peek_short(ShortMessage& message) { return reader_.peek_short(message); }
  /// Shows the next segment if it seems to be a write that gets no answer. Otherwise returns false.
  bool peek_unanswered(PeekedSegment& segment) {
    return reader_.next_is_unanswered() && reader_.peek(segment.segment, segment.payload);
  }
  void pop() override;
  void refuse() override { reader_.refuse(); }
  /// Returns true if there is no segment. In that case unchanged() returns true until the next segment
  /// arrives, unless the reader expects_two_lines().
  bool found_empty() {
    if (!reader_.found_empty()) return false;
    settle_empty();
    return true;
  }
  const SocketAddress& peer() const override { return peer_; }
  std::uint64_t peer_epoch() const override { return peer_epoch_; }
  carrier::CrossMemory* memory() override { return peer_memory_.reachable() ? &peer_memory_ : nullptr; }
  std::string why_memory_unreachable() const { return peer_memory_.why_unreachable(); }
  bool broken() const override { return reader_.broken(); }
  bool peer_gone() override { return reader_.writer_closed() || process_.ended(); }
  bool peer_closed() const override { return reader_.writer_closed(); }
  void ignore_writer() override { reader_.ignore_writer(); }
  std::size_t footprint() const override { return memory_.bytes().size(); }
  int process_descriptor() const override { return process_.descriptor(); }
  bool process_observable() const override { return process_.observable(); }
  bool request_doorbell() override { return reader_.request_doorbell(); }

 private:
  void settle_empty();
  void report_violation();

  RingReader reader_;
  Environment environment_;
  os::SharedMemory memory_;
  std::shared_ptr<const os::Doorbell> doorbell_;
  os::LocalName peer_doorbell_;
  os::PeerProcess process_;
  PeerMemory peer_memory_;
  const SocketAddress peer_;
  const std::uint64_t peer_epoch_;
  bool violation_reported_ = false;
};

inline void RingInbox::settle_empty() {
  if (reader_.take_doorbell_request()) [[unlikely]]
    doorbell_->ring(peer_doorbell_);
  if (!reader_.expects_two_lines()) settle(reader_.next_word(), reader_.idle_word());
}

inline void RingInbox::pop() {
  reader_.pop();
  unsettle();
  watch(reader_.next_word(), reader_.next_value());
  if (reader_.take_doorbell_request()) [[unlikely]]
    doorbell_->ring(peer_doorbell_);
  ++environment_.counters.shm_received;
}

}  // namespace cluster::shm
