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

/// No address handle (the sender is not in the address vector).
inline constexpr std::uint64_t kAddrNotAvail = ~std::uint64_t{0};

struct Completion {
  enum class Kind : std::uint8_t {
    send,
    receive,
    write,            ///< a remote write of this side
    read,             ///< a remote read of this side
    atomic,           ///< an atomic operation of this side
    fetch,            ///< one that fetched the previous values
    collective,       ///< a collective operation
    buffer_released,  ///< no message: a buffer for many messages is released
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
  std::size_t length = 0;                ///< bytes received (sends: 0)
  std::size_t lost = 0;                  ///< truncated: bytes that did not fit
  std::uint64_t source = kAddrNotAvail;  ///< receives: the sender, if the endpoint wants it
  SocketAddress peer{};                  ///< failures: the peer concerned
};

/// A completion that tells of no failure.
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

/// What a turn of an engine is given to put arrivals of the fast lane into, past the queue: the entries of a
/// caller that reads a queue at this moment (api/cq.h: DirectEntries), or, as here, nothing.
struct NoDirectRead {
  static bool accepts(const CompletionQueue*) { return false; }
  static void take(const Success&) {}
};

/// Written by engines, read by api/; the lock covers both, since several endpoints may share it.
///
/// An entry for which there is no memory is lost, and the newest entry then says so (Status::overrun): the application cannot
/// know any more what is complete.
class CompletionQueue {
 public:
  explicit CompletionQueue(ThreadFence fence = nullptr) : lock_(fence) { entries_.grow(); }
  CompletionQueue(const CompletionQueue&) = delete;
  CompletionQueue& operator=(const CompletionQueue&) = delete;

  void push(const Completion& completion);
  /// The same for a success, written in place: write(entry) sets all but what tells of failures.
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

  /// Removes completions from the head while `wanted(completion)` is true, at most `count`, and calls
  /// take(completion) for each. Returns how many.
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
  /// A hint without the lock.
  bool empty() const { return size_.load(std::memory_order_acquire) == 0; }
  /// The next completion wakes `waker`, which must outlive the queue's use. False if there is one already: then the
  /// caller need not sleep. The waker is reset only if the call returns true, so that another thread that sleeps on
  /// it does not miss its event.
  bool wake_at_next(Waker& waker);

 private:
  bool has_place() { return entries_.free() != 0 || make_place(); }
  bool make_place();

  BiasedLock lock_;
  Waker* waker_ = nullptr;  ///< to be woken by the next completion
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

  /// The next change wakes `waker`. The caller reads the counter again before it sleeps: of a change and this
  /// call one sees the other, since both are in one total order.
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

  std::atomic<Waker*> waker_{nullptr};  ///< to be woken by the next change
  std::atomic<std::uint64_t> value_{0};
  std::atomic<std::uint64_t> errors_{0};
};

struct Channel;
class RegionTable;

/// Is notified of the peers that an endpoint loses: an event queue.
class LossListener {
 public:
  virtual ~LossListener() = default;
  /// `handle`: of the peer, or kAddrNotAvail. Called under the engine's lock.
  virtual void peer_lost(std::uint64_t handle, const SocketAddress& peer, Status cause) = 0;
};

/// Is notified when this endpoint is a member of a group it has joined.
class GroupListener {
 public:
  virtual ~GroupListener() = default;
  /// Called under the engine's lock, with the context of the call that joined it.
  virtual void group_joined(void* context) = 0;
};

/// What arrives for the groups of an endpoint, and the end of a peer, which may be a member. The engine has the groups.
class GroupArrivals {
 public:
  virtual ~GroupArrivals() = default;
  /// A segment that is of_group(). Nothing may be sent from inside.
  virtual void on_group_segment(Channel& channel, const wire::Segment& segment, ConstBytes payload) = 0;
  /// The channel's carrier is about to end, which has taken nothing; another one follows.
  virtual void on_carrier_left(Channel& channel) = 0;
  /// Called before anything else of the channel ends.
  virtual void on_channel_failed(Channel& channel, Status status) = 0;
};

/// Hears of the messages that are part of collective operations (collective/). Called under the engine's lock;
/// posts nothing before advance() is called.
class CollectiveListener {
 public:
  virtual ~CollectiveListener() = default;
  virtual void sent(void* context, Status status) = 0;
  virtual void received(void* context, Status status, std::size_t length) = 0;
  /// No receive waits for a message with this tag and data. False: none ever will. `member`: its sender is in the address
  /// vector.
  virtual bool wanted(std::uint64_t tag, std::uint64_t data, bool member) = 0;
  /// A peer was lost, by a failure.
  virtual void member_lost(const SocketAddress& name, Status cause) = 0;
  virtual void advance() = 0;
  /// advance() has something to do.
  bool pending() const { return pending_; }

 protected:
  bool pending_ = false;
};

/// Counters of what peers do to the memory of an endpoint.
struct RemoteAccessCounters {
  Counter* writes = nullptr;
  Counter* reads = nullptr;
};

/// Parts of the engine above the messenger that hear of arrivals; there once the engine is attached.
struct EngineListeners {
  GroupArrivals* groups = nullptr;
  CollectiveListener* collectives = nullptr;
};

/// What is bound to an endpoint (fi_ep_bind), null where nothing is, and what it was opened for.
struct EndpointBindings {
  CompletionQueue* tx_queue = nullptr;
  CompletionQueue* rx_queue = nullptr;
  Counter* send_counter = nullptr;
  Counter* receive_counter = nullptr;
  Counter* write_counter = nullptr;  ///< remote writes and atomics of this side
  Counter* read_counter = nullptr;   ///< remote reads and fetching atomics of this side
  RemoteAccessCounters remote_access{};
  RegionTable* regions = nullptr;  ///< what peers may access; null: nothing
  LossListener* losses = nullptr;
  GroupListener* groups = nullptr;
  EngineListeners engine{};
  bool joins_teams = false;            ///< collective messages are for this endpoint
  bool want_source = false;            ///< fill Completion::source of receives
  bool report_unknown_source = false;  ///< messages whose sender has no handle are reported as failures
  Ordering ordering{};                 ///< what the endpoint was opened with
};

}  // namespace cluster::protocol
