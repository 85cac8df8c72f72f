// Receives that several endpoints share (a shared receive context, fi_srx_context(3)). A receive waits here
// until a message to one of the endpoints takes it. A message takes the oldest receive that matches.
//
// Each endpoint has an engine with its own lock, so this class has a lock, too. A thread that holds the lock
// of this class must not take an engine lock. If an arriving message matches none of the endpoint's own
// receives, the engine searches here, under the engine lock (Matcher::match). A thread that posts a receive
// first adds the receive here. An engine may already have stored a message that matches. Therefore the thread
// then offers the receive to one engine after the other (Matcher::take_shared).
//
// Invariant: when the application's call that posts a receive has returned, no available message in the store
// of an endpoint matches a receive that still waits here. The reason is that an engine searches here before
// it stores a message, and takes both steps under its lock. So either the engine finds the receive, or the
// thread that posts the receive offers it to this engine later and finds the message.
#pragma once

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <list>
#include <mutex>
#include <optional>

#include "protocol/ops.h"
#include "protocol/outgoing_request.h"

namespace cluster::protocol {

class SharedReceives {
 public:
  struct Receive {
    std::uint64_t number = 0;  ///< names the receive
    IovArray<Bytes> slices;
    std::uint64_t from = kAddrUnspec;  ///< address handle or kAddrUnspec
    void* context = nullptr;
    std::uint64_t tag = 0;
    std::uint64_t ignore = 0;
    bool tagged = false;
    bool report = false;  ///< report the success even if the queue reports only selected receives

    RecvOp op() const {
      return {.slices = slices.all(),
              .from = from,
              .context = context,
              .tag = tag,
              .ignore = ignore,
              .tagged = tagged,
              .report = report};
    }
  };

  /// Adds a receive behind all others, and returns it with its number. Throws if there is no memory.
  Receive add(const RecvOp& op);
  /// Removes the receive with the number of `receive`. Returns false if a message has taken it, or the
  /// application has canceled it.
  bool claim(const Receive& receive);
  /// Removes and returns the oldest receive that matches the message. `sender()` returns the sender's address
  /// handle.
  template <typename Sender>
  std::optional<Receive> take(bool tagged, std::uint64_t tag, Sender&& sender) {
    return take_if(tagged, [&](const Receive& each) { return fits(each, tag, sender); });
  }
  template <typename Sender>
  bool would_match(bool tagged, std::uint64_t tag, Sender&& sender) const {
    const std::lock_guard lock(mutex_);
    for (const Receive& each : queues_[tagged]) {
      if (fits(each, tag, sender)) return true;
    }
    return false;
  }
  /// Removes and returns the oldest untagged receive with this context, or else the oldest tagged one.
  std::optional<Receive> take_by_context(const void* context) {
    const auto has_context = [context](const Receive& each) { return each.context == context; };
    std::optional<Receive> taken = take_if(false, has_context);
    return taken ? taken : take_if(true, has_context);
  }
  /// Returns true if no receive waits. May miss receives that other threads are posting now.
  bool empty() const { return count_.load(std::memory_order_relaxed) == 0; }

 private:
  template <typename Sender>
  static bool fits(const Receive& receive, std::uint64_t tag, Sender& sender) {
    return ((receive.tag ^ tag) & ~receive.ignore) == 0 &&
           (receive.from == kAddrUnspec || receive.from == sender());
  }
  template <typename Condition>
  std::optional<Receive> take_if(bool tagged, Condition&& condition) {
    const std::lock_guard lock(mutex_);
    std::list<Receive>& queue = queues_[tagged];
    for (auto each = queue.begin(); each != queue.end(); ++each) {
      if (!condition(*each)) continue;
      std::optional<Receive> taken(*each);
      queue.erase(each);
      count_.fetch_sub(1, std::memory_order_relaxed);
      return taken;
    }
    return std::nullopt;
  }

  mutable std::mutex mutex_;
  std::array<std::list<Receive>, 2> queues_;  ///< untagged, tagged
  std::uint64_t last_number_ = 0;
  std::atomic<std::size_t> count_{0};
};

inline SharedReceives::Receive SharedReceives::add(const RecvOp& op) {
  Receive receive;
  receive.from = op.from;
  receive.context = op.context;
  receive.tag = op.tag;
  receive.ignore = op.ignore;
  receive.tagged = op.tagged;
  receive.report = op.report;
  receive.slices.add(op.slices);
  const std::lock_guard lock(mutex_);
  receive.number = ++last_number_;
  queues_[op.tagged].push_back(receive);
  count_.fetch_add(1, std::memory_order_relaxed);
  return receive;
}

inline bool SharedReceives::claim(const Receive& receive) {
  return take_if(receive.tagged, [&](const Receive& each) { return each.number == receive.number; })
      .has_value();
}

}  // namespace cluster::protocol
