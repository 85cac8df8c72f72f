// Shared memory with the peers of this node. Each endpoint listens on an abstract UNIX socket named
// after its address (the name lives in the network namespace: containers and virtual nodes separate
// by themselves, nothing is left in a file system). Whoever wants to send connects, shows who it is,
// and passes a memfd with one ring that only it writes; the end-of-file on that socket is the exact
// moment of either side's death. So every direction of a pair has a ring and a socket of its own.
//
// Outbox: the sending end, a carrier::Carrier. Inbox: the receiving end.
#pragma once

#include <atomic>
#include <cstddef>
#include <memory>
#include <string>
#include <vector>

#include "base/address.h"
#include "base/environment.h"
#include "carrier/carrier.h"
#include "carrier/cross_memory.h"
#include "wire/segment.h"

namespace cluster::shm {

struct ShmSettings {
  std::size_t ring_bytes = 1024 * 1024;  ///< payload room of the rings this side creates
  bool single_copy = true;               ///< large messages directly from memory to memory, where permitted
};

/// How one end of a ring sleeps: it asks the other end to knock, and hears it at a descriptor, as it
/// hears of the other's death.
class Doorbell {
 public:
  virtual ~Doorbell() = default;
  virtual int descriptor() const = 0;
  /// Bytes of memory that this end has mapped; only those in use are there.
  virtual std::size_t footprint() const = 0;
  /// From now on the descriptor becomes readable when there is something to do: a segment for an inbox,
  /// room for an outbox. True if that is news to the other side: then os::fence_processes() and one more
  /// look are due before it can be relied on.
  virtual bool request_doorbell() = 0;
  /// Takes the knocks out of the descriptor. Whoever does must ask again.
  virtual void clear_doorbell() = 0;
};

class Outbox : public carrier::Carrier, public Doorbell {
 public:
  /// True once the peer is gone; asked only now and then (a system call).
  virtual bool peer_gone() = 0;
  /// Knocks unasked, once, if the peer has taken nothing since the last call, and there is something.
  virtual void ring_doorbell_if_stalled() = 0;
  /// True if the peer has taken everything out of the ring.
  virtual bool drained() const = 0;
};

/// A segment that lies in the ring; valid until pop().
struct PeekedSegment {
  wire::Segment segment;
  ConstBytes payload;
};

class Inbox : public Doorbell {
 public:
  /// True if peek() would find what it found last: nothing. One load, for whoever has many inboxes.
  bool unchanged() const { return std::atomic_ref(*watched_).load(std::memory_order_relaxed) == unchanged_; }
  /// True, behind pop(), if peek() would find something. One load likewise.
  bool has_next() const { return std::atomic_ref(*next_).load(std::memory_order_relaxed) == ready_; }
  virtual const SocketAddress& peer() const = 0;
  /// Orders the lives of one peer name: a larger one is a later life.
  virtual std::uint64_t peer_epoch() const = 0;
  /// Looks at the next segment; false if there is none. Costs one cache line when idle.
  virtual bool peek(PeekedSegment& arrival) = 0;
  /// Gives the slot that peek() showed back to the sender.
  virtual void pop() = 0;
  /// True if the peer broke the ring's rules; the inbox is to be dropped.
  virtual bool broken() const = 0;
  /// The peer's memory; null where this process may not touch it.
  virtual carrier::CrossMemory* memory() = 0;
  /// True once the peer is gone (a system call). What it wrote before can still be looked at.
  virtual bool peer_gone() = 0;

 protected:
  /// Nothing will come before this word is other than it is now.
  void settle(std::uint32_t& word, std::uint32_t value) {
    watched_ = &word;
    unchanged_ = value;
  }
  void stir() { settle(restless_, 0); }
  /// There is something once this word has that value.
  void expect(std::uint32_t& word, std::uint32_t value) {
    next_ = &word;
    ready_ = value;
  }

 private:
  std::uint32_t restless_ = 1;
  std::uint32_t* watched_ = &restless_;
  std::uint32_t unchanged_ = 0;
  std::uint32_t* next_ = &restless_;
  std::uint32_t ready_ = 1;
};

/// Why a peer is not reached by shared memory, in words for the log; or the outbox.
struct Connection {
  std::unique_ptr<Outbox> outbox;
  std::string reason;
};

class LocalListener {
 public:
  virtual ~LocalListener() = default;
  /// Never blocks. Refusal is final for now: the peer is then reached over the network.
  virtual Connection connect(const SocketAddress& peer) = 0;
  /// Takes connections that came in since the last call (a system call).
  virtual void accept(std::vector<std::unique_ptr<Inbox>>& arrivals) = 0;
  /// Readable when a connection waits for accept().
  virtual int descriptor() const = 0;
  /// True if a connection has come in whose first words have not: accept() again soon.
  virtual bool has_half_open() const = 0;
};

/// Null if no shared memory can be offered under this name; `reason` says why.
std::unique_ptr<LocalListener> open_listener(const SocketAddress& name, std::uint64_t epoch,
                                             const ShmSettings& settings, const Environment& environment,
                                             std::string& reason);

}  // namespace cluster::shm
