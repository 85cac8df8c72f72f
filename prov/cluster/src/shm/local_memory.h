// Reaches the registered memory of a peer on this node. Each access takes the first of these ways that suits
// it:
//
//   a store, a load    the region is mapped into this process
//   a posted write     a small write to a peer whose library polls: a segment in its ring
//   a system call      the kernel copies
//
// A posted write travels through the ring without an answer. This side first checks that the region allows
// the write, and later sees that the target has taken it. If a write lies in the ring too long, this side
// takes it back (shm/recall.h) and executes it by a system call. So a write costs a message if the target
// polls, and a system call if the target computes or sleeps. Until then the write is pending.
//
//   put()     -> the ring     unless writes were taken back and the target has taken nothing since
//   settle()  -> reports      the writes that were taken; if none was for kPatience, takes back the others
//   recall()  -> reports      and takes back the others at once, since the caller is about to sleep
//
// Invariants. writes_ keeps the writes in the order of their numbers, and they end in this order. Each write
// is executed once: by the target or, while the target is held, by this side. A write that is taken back
// overtakes everything before it in the ring. So a write with AccessTerms::after_sends is posted only if the
// ring is empty. Later segments to the same peer go through the same ring.
#pragma once

#include <memory>
#include <optional>
#include <vector>

#include "base/counters.h"
#include "base/ring_queue.h"
#include "carrier/memory_access.h"
#include "protocol/remote_access.h"
#include "shm/recall.h"

namespace cluster::shm {

class LocalMemory;

/// The posted writes to all peers.
class PostedWrites {
 public:
  PostedWrites(protocol::RemoteAccess& reports, Counters& counters)
      : reports_(reports), counters_(counters) {}

  /// Reports the writes that their targets have taken. If `ticks` (now) is given, also takes back writes that
  /// have waited for kPatience.
  void settle(std::optional<std::uint64_t> ticks);
  /// Reports the writes that their targets have taken, and takes back the others. Returns false if a target
  /// is taking segments now: it will settle the rest soon.
  bool recall();
  bool idle() const { return peers_.empty(); }

 private:
  friend class LocalMemory;

  template <typename Visit>
  void each(Visit&& visit);

  protocol::RemoteAccess& reports_;
  Counters& counters_;
  std::vector<LocalMemory*> peers_;  ///< peers with pending writes
};

class LocalMemory : public carrier::MemoryAccess {
 public:
  using Outcome = carrier::Outcome;

  /// Longer writes are cheaper by a system call, which copies once.
  static constexpr std::size_t kLengthMax = 8 * 1024;
  /// In ticks: 8 to 30 us, several times as long as a target that polls takes.
  static constexpr std::uint64_t kPatience = 1 << 15;

  LocalMemory() : MemoryAccess(true) {}
  ~LocalMemory() override;

  /// Allows small writes to be posted to `ring`, the carrier of `channel`. All three arguments outlive this
  /// object.
  void use_ring(protocol::Channel& channel, Recall& ring, PostedWrites& posted) {
    channel_ = &channel;
    ring_ = &ring;
    posted_ = &posted;
  }

  carrier::Outcome put(const carrier::RemoteRange& to, const Gather& source, carrier::AccessTerms terms,
                       carrier::AccessTicket ticket) override;
  carrier::Outcome get(const carrier::RemoteRange& from, const Scatter& target, carrier::AccessTerms terms,
                       carrier::AccessTicket ticket) override;
  void settle() override;
  void end(Status status) override;

  // --- single copies, each complete when the call returns; derived classes implement them ---
  virtual Outcome write(std::uint64_t key, std::uint64_t address, const Gather& source) = 0;
  /// Returns what write() would return now, as far as can be seen without copying.
  virtual Outcome judge_write(std::uint64_t key, std::uint64_t address, std::size_t length) = 0;
  /// Copies to position `offset` of the concatenation of `slices`.
  virtual Outcome read(std::uint64_t key, std::uint64_t address, std::span<const Bytes> slices,
                       std::size_t offset, std::size_t length) = 0;
  /// store() and load() copy one piece of memory by stores or loads of this process, which is the cheapest
  /// way. If the region is not mapped here, they do nothing and return unsuited.
  virtual Outcome store(std::uint64_t, std::uint64_t, ConstBytes) { return Outcome::unsuited; }
  virtual Outcome load(std::uint64_t, std::uint64_t, Bytes) { return Outcome::unsuited; }

 protected:
  // put() and get() of a final class call these, so that no virtual call lies on the way to the bytes.
  template <typename Self>
  static Outcome put_by(Self& self, const carrier::RemoteRange& to, const Gather& source,
                        carrier::AccessTerms terms, carrier::AccessTicket ticket);
  template <typename Self>
  static Outcome get_by(Self& self, const carrier::RemoteRange& from, const Scatter& target,
                        carrier::AccessTerms terms);

  bool maps_some_ = false;  ///< some of the regions are mapped into this process

 private:
  friend class PostedWrites;

  struct Write {
    Recall::Number number = 0;
    std::uint64_t key = 0;
    std::uint64_t address = 0;
    carrier::AccessTicket ticket;
  };

  bool keeps(carrier::AccessTerms terms) const {
    return !terms.after_sends() || (ring_ != nullptr && ring_->drained());
  }
  bool may_post();
  bool post(const carrier::RemoteRange& to, const Gather& source, carrier::AccessTicket ticket);
  bool full() const;
  void reserve();
  void settle(std::optional<std::uint64_t> ticks);
  bool take_back();
  bool take_back_some();
  void report_taken();
  void report_front(Status status);

  protocol::Channel* channel_ = nullptr;
  Recall* ring_ = nullptr;  ///< null: nothing is posted
  PostedWrites* posted_ = nullptr;
  RingQueue<Write> writes_;
  std::optional<std::uint64_t> moved_at_;  ///< when the target was last seen to take a write, in ticks
  bool listed_ = false;                    ///< in PostedWrites
  bool inattentive_ = false;               ///< writes were taken back, and the target has taken nothing since
  Recall::Number taken_ = 0;               ///< taken() when that happened
};

template <typename Self>
carrier::Outcome LocalMemory::put_by(Self& self, const carrier::RemoteRange& to, const Gather& source,
                                     carrier::AccessTerms terms, carrier::AccessTicket ticket) {
  if (!self.keeps(terms)) return Outcome::unsuited;
  if (self.maps_some_ && !terms.after_puts() && source.slices.size() == 1) {
    const ConstBytes bytes(source.slices.front().data() + source.offset, to.length);
    if (self.store(to.key, to.address, bytes) == Outcome::done) return Outcome::done;
  }
  if (to.length <= kLengthMax && self.may_post() &&
      self.judge_write(to.key, to.address, to.length) == Outcome::done && self.post(to, source, ticket)) {
    return Outcome::pending;
  }
  if (terms.after_puts()) return Outcome::unsuited;
  return self.write(to.key, to.address, source);
}

template <typename Self>
carrier::Outcome LocalMemory::get_by(Self& self, const carrier::RemoteRange& from, const Scatter& target,
                                     carrier::AccessTerms terms) {
  if (!self.keeps(terms) || terms.after_puts()) return Outcome::unsuited;
  if (self.maps_some_ && target.slices.size() == 1) {
    const Bytes bytes(target.slices.front().data() + target.offset, from.length);
    if (self.load(from.key, from.address, bytes) == Outcome::done) return Outcome::done;
  }
  return self.read(from.key, from.address, target.slices, target.offset, from.length);
}

/// Finds the registered memory of peers on this node. The simulator has another implementation, for its own
/// hosts.
class RegionConnector {
 public:
  virtual ~RegionConnector() = default;
  /// Connects to the peer's regions. Returns null if they are not in reach (now).
  virtual std::unique_ptr<LocalMemory> connect(const SocketAddress& peer) = 0;
};

}  // namespace cluster::shm
