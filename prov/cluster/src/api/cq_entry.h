// A completion in each of the four entry formats. Some programs compare the flags for equality, so only the
// flags that fi_cq(3) defines for an operation are set.
#pragma once

#include <rdma/fi_eq.h>

#include "protocol/completion.h"

namespace cluster::api {

inline std::uint64_t flags_of(const protocol::Completion& completion) {
  using Kind = protocol::Completion::Kind;
  switch (completion.kind) {
    case Kind::send: return FI_SEND | (completion.tagged ? FI_TAGGED : FI_MSG);
    case Kind::receive:
      return FI_RECV | (completion.tagged ? FI_TAGGED : FI_MSG) |
             (completion.releases_buffer ? FI_MULTI_RECV : 0);
    case Kind::buffer_released: return FI_MULTI_RECV;
    case Kind::write: return FI_RMA | FI_WRITE;
    case Kind::read: return FI_RMA | FI_READ;
    case Kind::atomic: return FI_ATOMIC | FI_WRITE;
    case Kind::fetch: return FI_ATOMIC | FI_READ;
    case Kind::remote_write: return FI_RMA | FI_REMOTE_WRITE;
    case Kind::collective: return FI_COLLECTIVE;
  }
  return 0;
}

inline std::uint64_t flags_of(const protocol::ShortArrival& arrival) {
  return FI_RECV | (arrival.tagged ? FI_TAGGED : FI_MSG);
}

/// Fills the fields that the entry format has. The formats with a data field report FI_REMOTE_CQ_DATA.
template <typename Entry, typename Outcome>
void write_entry(Entry& entry, const Outcome& completion) {
  entry.op_context = completion.context;
  if constexpr (requires { entry.flags; }) {
    constexpr bool kHasData = requires { entry.data; };
    entry.flags = flags_of(completion) | (kHasData && completion.has_data ? FI_REMOTE_CQ_DATA : 0);
    entry.len = completion.length;
  }
  if constexpr (requires { entry.data; }) {
    entry.buf = completion.buffer;
    entry.data = completion.data;
  }
  if constexpr (requires { entry.tag; }) entry.tag = completion.tag;
}

/// The entries of a caller that reads `queue` at this moment: while the queue is empty, and so nothing is
/// overtaken, arrivals of the fast lane are written there instead of into the queue. It lives for one turn of the
/// engines.
template <typename Entry>
class DirectEntries {
 public:
  DirectEntries(const protocol::CompletionQueue& queue, Entry* entries, std::size_t count, fi_addr_t* sources)
      : queue_(queue), capacity_(count), next_(entries), sources_(sources) {}

  bool accepts(const protocol::CompletionQueue* queue) const {
    return taken_ < capacity_ && queue == &queue_ && queue_.empty();
  }
  void take(const protocol::ShortArrival& arrival) {
    ++taken_;
    write_entry(*next_++, arrival);
    if (sources_ != nullptr) *sources_++ = arrival.source;
  }
  std::size_t taken() const { return taken_; }
  /// Behind those taken.
  Entry* next() const { return next_; }
  fi_addr_t* sources() const { return sources_; }

 private:
  const protocol::CompletionQueue& queue_;
  std::size_t capacity_;
  std::size_t taken_ = 0;
  Entry* next_;
  fi_addr_t* sources_;
};

}  // namespace cluster::api
