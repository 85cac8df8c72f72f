// The receiving end of a ring from one peer of this node. It is an interface, so that the engine can be
// tested with inboxes that a test controls.
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

/// A segment that lies in the ring; valid until pop().
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

  /// True if peek() would find nothing, as last time. Costs one load, for callers with many inboxes.
  bool unchanged() const { return settled_ && load() == idle_; }
  /// After pop(): true if peek() would find a segment. Also costs one load.
  bool has_next() const { return load() == ready_; }
  /// Begins a batch: call peek() and pop() only between this and end_batch(). Returns false if the peer is
  /// taking segments back. When the peer is done, it rings if it was asked to.
  virtual bool begin_batch() { return true; }
  virtual void end_batch() {}
  /// Call this if the peer has died, perhaps while it took segments back. From then on the rest of the ring
  /// can be read.
  virtual void ignore_writer() {}
  /// Shows the next segment. Returns false if there is none. Costs one cache line when the ring is idle.
  virtual bool peek(PeekedSegment& segment) = 0;
  /// Gives the slot that peek() showed back to the sender.
  virtual void pop() = 0;
  /// Refuses the segment that peek() showed, which could not be executed and needs no answer. The peer sees
  /// the refusal in the ring.
  virtual void refuse() {}

  virtual const SocketAddress& peer() const = 0;
  /// Orders the incarnations of one peer address: a larger one is a later one.
  virtual std::uint64_t peer_epoch() const = 0;
  /// The peer's memory; null where this process may not access it.
  virtual carrier::CrossMemory* memory() = 0;
  /// True if the peer broke the ring's rules; the inbox is to be dropped.
  virtual bool broken() const = 0;
  /// True once the peer is gone (a system call). What it wrote before can still be read.
  virtual bool peer_gone() = 0;
  /// True once the peer has closed its end, as it says itself.
  virtual bool peer_closed() const { return false; }
  /// Bytes of memory that are mapped; pages that were never used take no memory.
  virtual std::size_t footprint() const = 0;

  /// Returns a descriptor that is readable once the peer's process has ended. Returns -1 if only peer_gone()
  /// can tell.
  virtual int process_descriptor() const = 0;
  /// Returns false if even peer_gone() cannot tell whether the process has ended.
  virtual bool process_observable() const { return true; }
  /// Asks the peer to ring the doorbell after its next segment. Returns true if the peer had not been asked
  /// yet: before the caller sleeps, it must then call os::fence_processes() and peek() once more.
  virtual bool request_doorbell() = 0;

 protected:
  /// There is a segment once `word` has the value `ready`.
  void watch(std::uint32_t& word, std::uint32_t ready) {
    word_ = &word;
    ready_ = ready;
  }
  /// There is no segment as long as `word` has the value `idle`.
  void settle(std::uint32_t& word, std::uint32_t idle) {
    word_ = &word;
    idle_ = idle;
    settled_ = true;
  }
  void unsettle() { settled_ = false; }

 private:
  std::uint32_t load() const { return std::atomic_ref(*word_).load(std::memory_order_acquire); }

  std::uint32_t ready_ = 0;
  std::uint32_t* word_ = &ready_;  ///< of the next slot; at first ready_, so that peek() must look
  std::uint32_t idle_ = 0;
  bool settled_ = false;
};

}  // namespace cluster::shm
