// The outcome of an operation, in the protocol's terms; api/ turns it into the entry format and the flags
// that libfabric defines. A CompletionQueue grows as needed.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <mutex>

#include "base/address.h"
#include "base/environment.h"
#include "base/lock.h"
#include "base/ring_queue.h"
#include "base/status.h"
#include "protocol/ops.h"
#include "wire/segment.h"

namespace cluster::protocol {

/// Stands for "no address handle": the sender is not in the address vector.
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
    buffer_released,  ///< no message: the application has its buffer for many messages back
    remote_write,     ///< a peer's write with remote completion data has arrived here
  };

  void* context = nullptr;
  Kind kind = Kind::send;
  bool tagged = false;
  bool has_data = false;         ///< remote completion data came with the message
  bool releases_buffer = false;  ///< the application has its buffer for many messages back
  Status status = Status::ok;
  std::uint64_t tag = 0;
  std::uint64_t data = 0;
  void* buffer = nullptr;                ///< receives: where the message was put
  std::size_t length = 0;                ///< bytes received (0 for sends)
  std::size_t lost = 0;                  ///< truncated messages: bytes that did not fit
  std::uint64_t source = kAddrNotAvail;  ///< receives: the sender, if the endpoint wants it
  SocketAddress peer{};                  ///< failures: the peer concerned
};

/// A completion without a failure.
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

/// Where a turn of an engine puts arrivals of the fast lane without the queue. That may be the entries of a
/// caller that is reading a queue now (api/cq.h: DirectEntries). Here it is nothing.
struct NoDirectRead {
  static bool accepts(const CompletionQueue*) { return false; }
  static void take(const Success&) {}
};

/// Written by engines, read by api/; the lock covers both, since several endpoints may share it.
///
/// An entry without memory is lost. The newest entry then becomes an error (Status::overrun), because the
/// application no longer knows what is complete.
class CompletionQueue {
 public:
  explicit CompletionQueue(ThreadFence fence = nullptr) : lock_(fence) { entries_.grow(); }
  CompletionQueue(const CompletionQueue&) = delete;
  CompletionQueue& operator=(const CompletionQueue&) = delete;

  void push(const Completion& completion);
  /// Adds a success, written in place. write(entry) sets all fields except those about failures.
  template <typename Write>
  void push_success(Write&& write) {
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

  /// Removes completions from the head while `wanted(completion)` is true, at most `count`. Calls
  /// take(completion) for each. Returns how many it removed.
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
  /// A hint, read without the lock.
  bool empty() const { return size_.load(std::memory_order_acquire) == 0; }
  /// Makes the next completion wake `waker`, which must outlive the queue's use. Returns false if there is a
  /// completion already, so the caller need not sleep. Resets the waker only if it returns true, so that
  /// another thread that sleeps on it does not miss its event.
  bool wake_at_next(Waker& waker);

 private:
  bool has_place() { return entries_.free() != 0 || make_place(); }
  bool make_place();

  BiasedLock lock_;
  Waker* waker_ = nullptr;  ///< the next completion wakes it
  RingQueue<Completion> entries_;
  std::atomic<std::size_t> size_{0};
};

/// A libfabric counter: successes and errors.
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

  /// Makes the next change wake `waker`. The caller reads the counter again before it sleeps. Of a change and
  /// this call, one sees the other, since both are in one total order.
  void wake_at_next(Waker& waker) {
    waker.clear();
    waker_.store(&waker);
  }

 private:
  void changed() {
    if (waker_.load() != nullptr) [[unlikely]]
      wake();
  }
  void wake();

  std::atomic<Waker*> waker_{nullptr};  ///< the next change wakes it
  std::atomic<std::uint64_t> value_{0};
  std::atomic<std::uint64_t> errors_{0};
};

struct Channel;
class RegionTable;

/// Hears which peers an endpoint loses: an event queue.
class LossListener {
 public:
  virtual ~LossListener() = default;
  /// `handle`: that of the peer, or kAddrNotAvail. Called under the engine's lock.
  virtual void peer_lost(std::uint64_t handle, const SocketAddress& peer, Status cause) = 0;
};

/// Hears when this endpoint has become a member of a group.
class GroupListener {
 public:
  virtual ~GroupListener() = default;
  /// Called under the engine's lock. `context`: that of the call that joined the group.
  virtual void group_joined(void* context) = 0;
};

/// Hears of arrivals for the groups of an endpoint, and of lost peers, which may be members. The engine owns
/// the groups.
class GroupArrivals {
 public:
  virtual ~GroupArrivals() = default;
  /// A segment that is of_group() has arrived. The callee must send nothing.
  virtual void on_group_segment(Channel& channel, const wire::Segment& segment, ConstBytes payload) = 0;
  /// The channel's carrier is about to end without having taken a segment. Another carrier follows.
  virtual void on_carrier_left(Channel& channel) = 0;
  /// Called before anything else of the channel ends.
  virtual void on_channel_failed(Channel& channel, Status status) = 0;
};

/// Hears of messages that are part of collective operations (collective/). Called under the engine's lock.
/// Posts nothing before advance() is called.
class CollectiveListener {
 public:
  virtual ~CollectiveListener() = default;
  virtual void sent(void* context, Status status) = 0;
  virtual void received(void* context, Status status, std::size_t length) = 0;
  /// Called for a message with this tag and data that no receive waits for. Returns false if none ever will.
  /// `member`: the sender is in the address vector.
  virtual bool wanted(std::uint64_t tag, std::uint64_t data, bool member) = 0;
  /// A failure has ended a peer.
  virtual void member_lost(const SocketAddress& name, Status cause) = 0;
  virtual void advance() = 0;
  /// True if advance() has work to do.
  bool pending() const { return pending_; }

 protected:
  bool pending_ = false;
};

/// Counters of what peers do to the memory of an endpoint.
struct RemoteAccessCounters {
  Counter* writes = nullptr;
  Counter* reads = nullptr;
};

/// Parts of the engine above the messenger that hear of arrivals. They exist once the engine is attached.
struct EngineListeners {
  GroupArrivals* groups = nullptr;
  CollectiveListener* collectives = nullptr;
};

/// What the application has bound to an endpoint (null where nothing is bound), and how it opened the
/// endpoint.
struct EndpointBindings {
  CompletionQueue* tx_queue = nullptr;
  CompletionQueue* rx_queue = nullptr;
  Counter* send_counter = nullptr;
  Counter* receive_counter = nullptr;
  Counter* write_counter = nullptr;  ///< remote writes and atomics of this side
  Counter* read_counter = nullptr;   ///< remote reads and fetching atomics of this side
  RemoteAccessCounters remote_access{};
  RegionTable* regions = nullptr;  ///< the memory that peers may access; null: none
  LossListener* losses = nullptr;
  GroupListener* groups = nullptr;
  EngineListeners engine{};
  bool joins_teams = false;            ///< the endpoint receives collective messages
  bool want_source = false;            ///< fill Completion::source of receives
  bool report_unknown_source = false;  ///< report messages whose sender has no handle as failures
  Ordering ordering{};                 ///< the order with which the endpoint was opened
};

}  // namespace cluster::protocol
