// The outcome of an operation in the protocol's terms. api/ turns the outcome into libfabric's entry formats
// and flags. A CompletionQueue grows as needed.
#pragma once

#include <algorithm>
#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <mutex>
#include <span>

#include "base/address.h"
#include "base/environment.h"
#include "base/lock.h"
#include "base/ring_queue.h"
#include "base/status.h"
#include "protocol/ops.h"
#include "wire/segment.h"

namespace cluster::protocol {

/// Stands for the address handle of a peer that is not in the address vector.
inline constexpr std::uint64_t kAddrNotAvail = ~std::uint64_t{0};

struct Completion {
  enum class Kind : std::uint8_t {
    send,
    receive,
    write,            ///< a remote write of this side
    read,             ///< a remote read of this side
    atomic,           ///< an atomic operation of this side
    fetch,            ///< an atomic operation that fetches the previous values
    collective,       ///< a collective operation
    buffer_released,  ///< no message: the provider has released an FI_MULTI_RECV buffer
    remote_write,     ///< a peer's write with remote completion data has arrived here
  };

  void* context = nullptr;
  Kind kind = Kind::send;
  bool tagged = false;
  bool has_data = false;         ///< remote completion data came with the message
  bool releases_buffer = false;  ///< the provider has released the FI_MULTI_RECV buffer
  Status status = Status::ok;
  std::uint64_t tag = 0;
  std::uint64_t data = 0;
  void* buffer = nullptr;                ///< receives: where the message begins
  std::size_t length = 0;                ///< bytes received, or all bytes of a peeked message (sends: 0)
  std::size_t lost = 0;                  ///< truncated messages: bytes that did not fit
  std::uint64_t source = kAddrNotAvail;  ///< AddressHandles::source_of() of the sender, if wanted
  SocketAddress peer{};                  ///< failures: the peer concerned
};

/// The fields of a successful completion.
struct Success {
  void* context = nullptr;
  Completion::Kind kind = Completion::Kind::send;
  bool tagged = false;
  bool has_data = false;
  std::uint64_t tag = 0;
  std::uint64_t data = 0;
  void* buffer = nullptr;
  std::size_t length = 0;
  std::uint64_t source = kAddrNotAvail;
};

class CompletionQueue;

/// If a caller is reading a completion queue, the lanes (shm/fast_lane.h, reliability/frame_lane.h) can write
/// completions directly into the caller's array (api/cq.h: DirectEntries). This class stands for a turn of
/// the engine without such a caller: all completions go into the queue.
struct NoDirectRead {
  static bool accepts(const CompletionQueue*) { return false; }
  static const CompletionQueue* queue() { return nullptr; }
  static std::size_t places() { return 0; }
  static void take(const Success&) {}
};

/// A completion queue. Engines add entries, and api/ removes them. Both take the lock, because several
/// endpoints may share the queue.
///
/// If there is no memory for an entry, the entry is lost. In this case the queue replaces its newest entry by
/// an error (Status::overrun), so that the application learns of the loss.
class CompletionQueue {
 public:
  explicit CompletionQueue(ThreadFence fence = nullptr) : lock_(fence) { entries_.grow(); }
  CompletionQueue(const CompletionQueue&) = delete;
  CompletionQueue& operator=(const CompletionQueue&) = delete;

  void push(const Completion& completion);
  /// Adds a successful completion. Calls write(entry), which must set all fields of the new entry except
  /// those about failures.
  template <typename Write>
  [[gnu::always_inline]] void push_success(Write&& write) {
    Waker* waker = nullptr;
    {
      const std::lock_guard guard(lock_);
      if (has_place()) [[likely]] {
        Completion& entry = entries_.push_within();
        entry.status = Status::ok;
        write(entry);
      }
      size_.store(entries_.size(), std::memory_order_release);
      waker = waker_;
      if (waker != nullptr) [[unlikely]]
        waker_ = nullptr;
    }
    if (waker != nullptr) [[unlikely]]
      waker->wake();
  }
  [[gnu::always_inline]] void push_success(const Success& success) {
    push_success([&](Completion& entry) {
      entry.context = success.context;
      entry.kind = success.kind;
      entry.tagged = success.tagged;
      entry.has_data = success.has_data;
      entry.releases_buffer = false;
      entry.tag = success.tag;
      entry.data = success.data;
      entry.buffer = success.buffer;
      entry.length = success.length;
      entry.source = success.source;
    });
  }

  /// Removes at most `count` completions from the head. Stops at the first completion for which
  /// wanted(completion) is false. Calls take(completion) for each that it removes. Returns how many it
  /// removed.
  template <typename Wanted, typename Take>
  [[gnu::always_inline]] std::size_t drain(std::size_t count, Wanted&& wanted, Take&& take) {
    const std::lock_guard guard(lock_);
    std::size_t taken = 0;
    while (taken < count && !entries_.empty() && wanted(entries_.front())) {
      take(entries_.front());
      entries_.pop_front();
      ++taken;
    }
    size_.store(entries_.size(), std::memory_order_release);
    return taken;
  }
  /// Reads the size without the lock. Therefore the result may be out of date.
  bool empty() const { return size_.load(std::memory_order_acquire) == 0; }
  /// Makes the next completion wake `waker`, which must exist as long as the queue may wake it. Returns false
  /// if the queue already contains a completion, so that the caller need not sleep. In that case the function
  /// does not clear the waker. Another thread may sleep on the waker, and clearing could hide a wake-up from
  /// that thread.
  bool wake_at_next(Waker& waker);

 private:
  bool has_place() { return entries_.free() != 0 || make_place(); }
  bool make_place();

  BiasedLock lock_;
  Waker* waker_ = nullptr;  ///< the next completion wakes it
  RingQueue<Completion> entries_;
  std::atomic<std::size_t> size_{0};
};

/// Collects the first successes of a turn for a caller that has found `queue` empty. Later successes go into
/// `queue`, and successes for other queues go into those queues. The default object stands for a turn without
/// such a caller.
class DirectSuccesses {
 public:
  DirectSuccesses() {}
  /// The caller has space for `places` completions.
  DirectSuccesses(const CompletionQueue* queue, std::size_t places)
      : queue_(queue), places_(std::min(places, kMax)) {}

  [[gnu::always_inline]] void report(CompletionQueue& queue, const Success& success) {
    Success& place = successes_[count_];
    place = success;
    if (count_ != places_ && queue_ == &queue) [[likely]] {
      ++count_;
    } else {
      push(queue, place);
    }
  }
  std::span<const Success> all() const { return {successes_.data(), count_}; }

 private:
  [[gnu::noinline]] static void push(CompletionQueue& queue, const Success& success) {
    queue.push_success(success);
  }

  static constexpr std::size_t kMax = 4;

  const CompletionQueue* queue_ = nullptr;
  std::size_t places_ = 0;
  std::size_t count_ = 0;
  union {  // uninitialized; report() may write one element more than it keeps
    std::array<Success, kMax + 1> successes_;
  };
};

/// Learns of the changes of a counter.
class CounterWatch {
 public:
  virtual ~CounterWatch() = default;
  /// Called by the thread that has changed the counter. This thread may hold locks of engines.
  virtual void counter_changed() noexcept = 0;
};

/// A libfabric counter. It counts successes and errors.
class Counter {
 public:
  void count(Status status) {
    (status == Status::ok ? value_ : errors_).fetch_add(1);
    changed();
  }
  std::uint64_t value() const { return value_.load(std::memory_order_acquire); }
  std::uint64_t errors() const { return errors_.load(std::memory_order_acquire); }
  void add(std::uint64_t n) {
    value_.fetch_add(n);
    changed();
  }
  void set(std::uint64_t n) {
    value_.store(n);
    changed();
  }
  void add_errors(std::uint64_t n) {
    errors_.fetch_add(n);
    changed();
  }
  void set_errors(std::uint64_t n) {
    errors_.store(n);
    changed();
  }

  /// Makes the next change wake `waker`. The caller must read the counter again before it sleeps. All changes
  /// and this function take effect in one total order. Therefore each change either finds the waker, or is
  /// visible when the caller reads the counter.
  void wake_at_next(Waker& waker) {
    waker.clear();
    waker_.store(&waker);
    observed_.store(true);
  }
  /// Makes every further change call `watch`, which must exist as long as the counter.
  void watch(CounterWatch& watch) {
    watch_.store(&watch);
    observed_.store(true);
  }

 private:
  void changed() {
    if (observed_.load()) [[unlikely]]
      notify();
  }
  void notify();

  /// Set to true after each store to one of the two pointers below, so that changed() need not read both.
  std::atomic<bool> observed_{false};
  std::atomic<Waker*> waker_{nullptr};         ///< the next change wakes it
  std::atomic<CounterWatch*> watch_{nullptr};  ///< each change calls it
  std::atomic<std::uint64_t> value_{0};
  std::atomic<std::uint64_t> errors_{0};
};

struct Channel;
class RegionTable;
class SharedReceives;

/// Learns which peers an endpoint loses. The event queue implements this interface.
class LossListener {
 public:
  virtual ~LossListener() = default;
  /// Called under the engine's lock. `handle`: the peer's address handle, or kAddrNotAvail.
  virtual void peer_lost(std::uint64_t handle, const SocketAddress& peer, Status cause) = 0;
};

/// Learns when the endpoint has become a member of a group.
class GroupListener {
 public:
  virtual ~GroupListener() = default;
  /// Called under the engine's lock. `context`: the context of the call that joined the group.
  virtual void group_joined(void* context) = 0;
};

/// Receives the segments for an endpoint's groups, and learns which peers are lost, because a lost peer may
/// be a member of a group. The engine owns the groups.
class GroupArrivals {
 public:
  virtual ~GroupArrivals() = default;
  /// Called when a segment for a group has arrived. The implementation must not send anything.
  virtual void on_group_segment(Channel& channel, const wire::Segment& segment, ConstBytes payload) = 0;
  /// Called when the engine is about to replace a carrier that has not reached the peer by another carrier.
  virtual void on_carrier_left(Channel& channel) = 0;
  /// Called when the channel fails. The operations of the channel end after this call.
  virtual void on_channel_failed(Channel& channel, Status status) = 0;
};

/// Learns what happens to internal messages. These are messages of collective operations (collective/) or of
/// a connection (connection/). No engine has both kinds. Callers hold the engine's lock. Only advance() may
/// post messages.
class InternalListener {
 public:
  virtual ~InternalListener() = default;
  virtual void sent(void* context, Status status) = 0;
  virtual void received(void* context, Status status, std::size_t length) = 0;
  /// Called for a message with this tag and data that matches no posted receive. Returns false if no receive
  /// for the message will ever be posted. `member`: the result of AddressHandles::is_member() for the sender.
  virtual bool wanted(std::uint64_t tag, std::uint64_t data, bool member) = 0;
  /// Called when a peer is lost.
  virtual void member_lost(const SocketAddress& name, Status cause) = 0;
  virtual void advance() = 0;
  /// Returns true if advance() has work to do.
  bool pending() const { return pending_; }

 protected:
  bool pending_ = false;
};

/// Learns what happens to the operations of deferred work queues (fi_trigger(3)). The context of such an
/// operation points to an object that the listener owns, in place of the application's context. Only this
/// listener learns the outcome of such an operation.
class DeferredListener {
 public:
  virtual ~DeferredListener() = default;
  /// Called under the engine's lock. `queue`: the queue in which the operation would be reported if it were
  /// not deferred, or null.
  virtual void completed(const Completion& completion, CompletionQueue* queue) = 0;
};

/// An endpoint's counters of remote writes and reads by peers.
struct RemoteAccessCounters {
  Counter* writes = nullptr;
  Counter* reads = nullptr;
};

/// Parts of the engine that process arrivals, above the messenger. Both pointers are null until
/// Engine::attach().
struct EngineListeners {
  GroupArrivals* groups = nullptr;
  InternalListener* internal = nullptr;
};

/// What the application has bound to an endpoint (null where nothing is bound), and how it opened the
/// endpoint.
struct EndpointBindings {
  CompletionQueue* tx_queue = nullptr;
  CompletionQueue* rx_queue = nullptr;
  Counter* send_counter = nullptr;
  Counter* receive_counter = nullptr;
  Counter* write_counter = nullptr;  ///< remote writes, and atomics that do not fetch
  Counter* read_counter = nullptr;   ///< remote reads, and atomics that fetch
  RemoteAccessCounters remote_access{};
  RegionTable* regions = nullptr;  ///< the memory that peers may access; null: none
  LossListener* losses = nullptr;
  GroupListener* groups = nullptr;
  DeferredListener* deferred = nullptr;
  AfterTurn* after_turn = nullptr;
  SharedReceives* shared_receives = nullptr;  ///< receives that several endpoints share
  /// If this is set, only messages of the peer with this handle take shared receives. It is set for a
  /// connection.
  std::uint64_t shares_with = kAddrUnspec;
  EngineListeners engine{};
  bool joins_teams = false;            ///< the endpoint receives collective messages
  bool selects_receives = false;       ///< rx_queue reports only receives that ask for it
  bool want_source = false;            ///< fill Completion::source of receives
  bool report_unknown_source = false;  ///< if the sender of a message has no handle, report a failure
  Ordering ordering{};                 ///< the ordering that the application requested
};

}  // namespace cluster::protocol
