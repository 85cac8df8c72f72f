// Accesses the registered memory of a peer on this node. Each access uses the first of these ways that is
// possible:
//
//   a store, a load    if the region is mapped into this process
//   a posted write     if the write is small and the peer's library polls: a segment in the ring to the peer
//   a system call      otherwise: the kernel copies
//
// A posted write is a segment in the ring, and the target does not answer it. This side first checks that the
// region allows the write. Later this side sees in the ring that the target has taken the write. If a write
// stays in the ring for too long, this side takes the write back (shm/recall.h) and copies the data itself.
// So a write costs as much as a message if the target polls, and as much as a system call if the target
// computes or sleeps. A posted write is pending until the target has taken it or this side has executed it.
//
//   put()     posts a write; after some were taken back, posts none until the target takes segments again
//   settle()  reports the writes that were taken; if none was taken for kPatience, takes back the others
//   recall()  reports the writes that were taken, and takes back the others at once, because the caller will
//             sleep
//
// Invariants. writes_ keeps the pending writes in the order of their numbers, and they complete in this
// order. Each write is executed once: by the target, or by this side while Recall::hold() keeps the target
// from taking segments. A write that is taken back overtakes all earlier segments in the ring. So a write
// with AccessTerms::after_sends is posted only if the ring is empty. Segments that are posted later cannot
// overtake the write, because all segments to a peer use the same ring.
#pragma once

#include <memory>
#include <optional>
#include <vector>

#include "base/counters.h"
#include "base/ring_queue.h"
#include "carrier/memory_access.h"
#include "protocol/remote_access.h"
#include "shm/recall.h"
#include "shm/region_window.h"

namespace cluster::shm {

class LocalMemory;

/// The posted writes of an endpoint to all peers.
class PostedWrites {
 public:
  PostedWrites(protocol::RemoteAccess& reports, Counters& counters)
      : reports_(reports), counters_(counters) {}

  /// Reports the writes that their targets have taken. `ticks`: the current time, if known. If it is given,
  /// the function also takes back the writes to targets that have taken none for kPatience.
  void settle(std::optional<std::uint64_t> ticks);
  /// Reports the writes that their targets have taken, and takes back the others. Returns false if a target
  /// is taking segments now. Such a target will soon have taken its remaining writes.
  bool recall();
  /// Returns true if no writes are pending.
  bool idle() const { return peers_.empty(); }

 private:
  friend class LocalMemory;

  template <typename Visit>
  void each(Visit&& visit);

  protocol::RemoteAccess& reports_;
  Counters& counters_;
  std::vector<LocalMemory*> peers_;  ///< the peers to which writes are pending
};

class LocalMemory : public carrier::MemoryAccess {
 public:
  using Outcome = carrier::Outcome;

  /// The length of the longest posted write. For longer writes a system call is cheaper, because it copies
  /// only once.
  static constexpr std::size_t kLengthMax = 8 * 1024;
  /// A tick is a nanosecond or a fraction of a nanosecond (Clock::ticks), so this time is 8 to 33 us. A
  /// polling target takes a write much sooner.
  static constexpr std::uint64_t kPatience = 1 << 15;

  LocalMemory() : MemoryAccess(true) {}
  ~LocalMemory() override;

  /// After this call small writes may be posted to `ring`, the carrier of `channel`. All three arguments must
  /// outlive this object.
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

  // --- Single copies, which are complete when the call returns. Derived classes implement them. ---
  virtual Outcome write(std::uint64_t key, std::uint64_t address, const Gather& source) = 0;
  /// Returns what write() would return now, as far as this side knows without a copy.
  virtual Outcome judge_write(std::uint64_t key, std::uint64_t address, std::size_t length) = 0;
  /// Copies data from the peer's memory to `slices`, beginning at position `offset` of their concatenation.
  virtual Outcome read(std::uint64_t key, std::uint64_t address, std::span<const Bytes> slices,
                       std::size_t offset, std::size_t length) = 0;
  /// store() and load() copy one piece of memory by stores and loads of this process, which is the cheapest
  /// way. If the region is not mapped into this process, they do nothing and return unsuited.
  virtual Outcome store(std::uint64_t, std::uint64_t, ConstBytes) { return Outcome::unsuited; }
  virtual Outcome load(std::uint64_t, std::uint64_t, Bytes) { return Outcome::unsuited; }
  const RegionWindow& window() const { return window_; }

 protected:
  // put() and get() of a final class call these templates. So a copy needs no further virtual call.
  template <typename Self>
  static Outcome put_by(Self& self, const carrier::RemoteRange& to, const Gather& source,
                        carrier::AccessTerms terms, carrier::AccessTicket ticket);
  template <typename Self>
  static Outcome get_by(Self& self, const carrier::RemoteRange& from, const Scatter& target,
                        carrier::AccessTerms terms);

  bool maps_some_ = false;  ///< true once this process has mapped one of the regions
  RegionWindow window_;     ///< the window to the last mapped region

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
  Recall* ring_ = nullptr;  ///< null if writes must not be posted
  PostedWrites* posted_ = nullptr;
  RingQueue<Write> writes_;
  /// When this side last found that the target has taken a write, in ticks.
  std::optional<std::uint64_t> moved_at_;
  bool listed_ = false;       ///< true if this object is in the list of PostedWrites
  bool inattentive_ = false;  ///< true if the target has taken nothing since this side last took writes back
  Recall::Number taken_ = 0;  ///< value of taken() when this side took writes back
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

/// Connects to the registered memory of peers on this node. The simulator has another implementation, for its
/// own hosts.
class RegionConnector {
 public:
  virtual ~RegionConnector() = default;
  /// Connects to the peer's regions. Returns null if this process cannot access them now.
  virtual std::unique_ptr<LocalMemory> connect(const SocketAddress& peer) = 0;
};

}  // namespace cluster::shm
