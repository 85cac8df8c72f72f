// The receiving end of a ring from one peer of this node. It is an interface, so that tests can control what
// the engine receives.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>

#include "base/address.h"
#include "base/bytes.h"
#include "base/on_exit.h"
#include "carrier/memory_access.h"
#include "wire/segment.h"

namespace cluster::shm {

/// A segment in the ring. It is valid until pop().
struct PeekedSegment {
  wire::Segment segment;
  ConstBytes payload;
};

class RingInbox;

class Inbox {
 public:
  virtual ~Inbox() = default;
  /// Returns this object if it is a RingInbox, else null. The fast lane reads short messages directly from a
  /// RingInbox.
  virtual RingInbox* ring() { return nullptr; }

  /// Returns true only if peek() found nothing the last time, and would still find nothing. A caller may have
  /// many inboxes, so this call costs only one load.
  bool unchanged() const { return settled_ && load() == idle_; }
  /// Returns true if peek() would find a segment. Before the first pop(), the result may be true even if
  /// there is no segment. This call, too, costs only one load.
  bool has_next() const { return load() == ready_; }
  /// Begins a batch. The caller may call peek() and pop() only between begin_batch() and end_batch(). Returns
  /// false if the peer is taking segments back now. When the peer has finished, it rings this side's
  /// doorbell, if this side has requested the doorbell.
  virtual bool begin_batch() { return true; }
  virtual void end_batch() {}
  /// Called if the peer has died, perhaps while it took segments back. After this call, the rest of the ring
  /// can be read.
  virtual void ignore_writer() {}
  /// Shows the next segment. If there is none, reads only one cache line and returns false.
  virtual bool peek(PeekedSegment& segment) = 0;
  /// Frees the slot of the segment that peek() showed, so that the sender can use the slot again.
  virtual void pop() = 0;
  /// Refuses the segment that peek() showed. Called if this side could not execute a segment for which the
  /// peer expects no answer. The peer finds the refusal in the ring.
  virtual void refuse() {}

  virtual const SocketAddress& peer() const = 0;
  /// Returns the epoch of the peer's incarnation. Later incarnations of one address have larger epochs.
  virtual std::uint64_t peer_epoch() const = 0;
  /// Returns the peer's memory, or null if this process may not access it.
  virtual carrier::CrossMemory* memory() = 0;
  /// Returns true if the peer has broken the rules of the ring. If so, the caller must drop the inbox.
  virtual bool broken() const = 0;
  /// Returns true once the peer is gone. The segments that it has written can still be read. Makes a system
  /// call.
  virtual bool peer_gone() = 0;
  /// Returns true once the peer has said in the ring that it has closed its end.
  virtual bool peer_closed() const { return false; }
  /// Returns how many bytes of memory are mapped. Pages that were never used take no memory.
  virtual std::size_t footprint() const = 0;

  /// Returns a descriptor that becomes readable when the peer's process ends. Returns -1 if there is none. In
  /// that case only peer_gone() can tell whether the process has ended.
  virtual int process_descriptor() const = 0;
  /// Returns false if even peer_gone() cannot tell whether the process has ended.
  virtual bool process_observable() const { return true; }
  /// Asks the peer to ring the doorbell after its next segment. Returns true if this is a new request. If so,
  /// the caller must call os::fence_processes() and peek() once more before it sleeps.
  virtual bool request_doorbell() = 0;

 protected:
  /// Tells has_next() that there is a segment once `word` has the value `ready`.
  void watch(std::uint32_t& word, std::uint32_t ready) {
    word_ = &word;
    ready_ = ready;
  }
  /// Tells unchanged() that there is no segment as long as `word` has the value `idle`.
  void settle(std::uint32_t& word, std::uint32_t idle) {
    word_ = &word;
    idle_ = idle;
    settled_ = true;
  }
  void unsettle() { settled_ = false; }

 private:
  std::uint32_t load() const { return std::atomic_ref(*word_).load(std::memory_order_acquire); }

  std::uint32_t ready_ = 0;
  /// The sequence word of the next slot; initially ready_ itself, so that has_next() returns true.
  std::uint32_t* word_ = &ready_;
  std::uint32_t idle_ = 0;
  bool settled_ = false;
};

}  // namespace cluster::shm
