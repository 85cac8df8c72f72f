// A completion queue. Engines write completions to its protocol::CompletionQueue. The application reads them
// in the format that it chose when it opened the queue.
//
// If the queue is not empty, a read usually makes no progress. So the engines take one turn for a batch of
// completions, not one turn for each completion. But every kReadsPerProgress-th read makes progress in any
// case, because otherwise the engines would stop if a reader never empties its queue.
#pragma once

#include <netinet/in.h>
#include <rdma/fi_eq.h>

#include <algorithm>
#include <atomic>

#include "api/domain.h"
#include "api/event_wait_set.h"
#include "api/poll_backoff.h"
#include "api/progress.h"
#include "base/lock.h"
#include "protocol/completion.h"

namespace cluster::api {

/// Returns exactly the flags that fi_cq(3) defines for the operation, because some programs compare the flags
/// for equality.
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

/// Does the same for the completion of a message that has taken the fast lane or the frame lane, or of a
/// write that has taken the frame lane. Completions of the access lane never get here, because they go to the
/// queue.
inline std::uint64_t flags_of(const protocol::Success& success) {
  if (success.kind == protocol::Completion::Kind::write) [[unlikely]]
    return FI_RMA | FI_WRITE;
  const bool sent = success.kind == protocol::Completion::Kind::send;
  return (sent ? FI_SEND : FI_RECV) | (success.tagged ? FI_TAGGED : FI_MSG);
}

/// Writes all fields that the entry format has. FI_REMOTE_CQ_DATA is reported only in formats with a data
/// field.
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

/// The entries of a caller that reads `queue`. While the queue is empty, the completions of the lanes
/// (shm/fast_lane.h, reliability/frame_lane.h) are written directly into these entries. These completions
/// overtake no others, because the queue is empty. The object exists for one turn of the engines.
template <typename Entry>
class DirectEntries {
 public:
  DirectEntries(const protocol::CompletionQueue& queue, Entry* entries, std::size_t count, fi_addr_t* sources)
      : queue_(queue), capacity_(count), next_(entries), sources_(sources) {}

  bool accepts(const protocol::CompletionQueue* queue) const {
    return taken_ < capacity_ && queue == &queue_ && queue_.empty();
  }
  const protocol::CompletionQueue* queue() const { return &queue_; }
  /// Returns how many more completions take() accepts.
  std::size_t places() const { return queue_.empty() ? capacity_ - taken_ : 0; }
  void take(const protocol::Success& arrival) {
    ++taken_;
    write_entry(*next_++, arrival);
    if (sources_ != nullptr) *sources_++ = arrival.source;
  }
  std::size_t taken() const { return taken_; }
  /// Returns the first entry that is still unused.
  Entry* next() const { return next_; }
  fi_addr_t* sources() const { return sources_; }

 private:
  const protocol::CompletionQueue& queue_;
  std::size_t capacity_;
  std::size_t taken_ = 0;
  Entry* next_;
  fi_addr_t* sources_;
};

class Cq : public fid_cq, public RefCounted {
 public:
  using Handle = fid_cq;

  static int open(Domain& domain, const fi_cq_attr* attributes, fid_cq** handle, void* context);

  /// Implements fi_cq_read and fi_cq_readfrom. `sources` is null or has `count` elements.
  template <typename Entry>
  ssize_t read(void* buffer, std::size_t count, fi_addr_t* sources);
  /// Waits until the queue has an entry, then reads like read(). Returns -FI_EAGAIN after `timeout`
  /// milliseconds, or when fi_cq_signal is called.
  template <typename Entry>
  ssize_t wait(void* buffer, std::size_t count, fi_addr_t* sources, const void* condition, int timeout);
  ssize_t read_error(fi_cq_err_entry* entry, std::uint64_t flags);
  int signal();
  /// Implements fi_trywait. Returns 0 if the descriptor is armed. Then the application can sleep on it.
  /// Returns -FI_EAGAIN if there may be something to read.
  int arm();
  /// Makes progress. Returns true if there is something to read.
  bool has_events();
  const char* error_text(int provider_error, char* buffer, std::size_t size);

  protocol::CompletionQueue& queue() { return queue_; }
  Progress& progress() { return progress_; }
  Domain& domain() { return *domain_; }

 private:
  static constexpr std::uint32_t kReadsPerProgress = 16;

  Cq(Domain& domain, fi_ops_cq& table, const fi_cq_attr& attributes, void* context);
  bool prepare_sleep(engine::Sleeper& sleeper);
  template <typename Entry>
  ssize_t poll_and_read(Entry* entries, std::size_t count, fi_addr_t* sources);
  template <typename Entry>
  ssize_t drain(Entry* entry, std::size_t count, fi_addr_t* sources);

  /// Counts a read. Returns true if this read must make progress although the queue is not empty.
  bool count_read() {
    const std::uint32_t reads = reads_.load(std::memory_order_relaxed) + 1;
    reads_.store(reads, std::memory_order_relaxed);
    return reads % kReadsPerProgress == 0;
  }
  void fill_error_data(const SocketAddress& peer, fi_cq_err_entry& entry, bool sized);

  protocol::CompletionQueue queue_;
  Progress progress_;
  /// The number of reads. The number is imprecise if several threads read, but it determines only which reads
  /// make progress.
  std::atomic<std::uint32_t> reads_{0};
  PollBackoff backoff_;
  std::atomic<bool> signaled_{false};
  Ref<Domain> domain_;
  WaitSetMembership membership_;
  InheritedFid inherited_fid_{fid};

  // The error that was read last, for fi_cq_strerror and err_data. error_lock_ guards these members.
  SpinLock error_lock_;
  Status error_ = Status::ok;
  SocketAddress error_peer_;
  sockaddr_storage error_data_{};
  char error_text_[160] = {};
};

template <typename Entry>
ssize_t Cq::read(void* buffer, std::size_t count, fi_addr_t* sources) {
  auto* const entries = static_cast<Entry*>(buffer);
  if (queue_.empty() || count == 0 || count_read()) return poll_and_read(entries, count, sources);
  return drain(entries, count, sources);
}

/// Makes progress, then reads. The attribute gnu::flatten inlines the whole turn of an idle engine into this
/// function.
template <typename Entry>
[[gnu::noinline, gnu::flatten]] ssize_t Cq::poll_and_read(Entry* entries, std::size_t count,
                                                          fi_addr_t* sources) {
  DirectEntries<Entry> direct(queue_, entries, count, sources);
  progress_.poll(direct);
  const std::size_t taken = direct.taken();
  if (taken == 0) {
    if (!queue_.empty()) return drain(entries, count, sources);
    backoff_.record_idle([this] { progress_.poll(); });
    return -FI_EAGAIN;
  }
  if (taken == count || queue_.empty()) {
    backoff_.record_event();
    return static_cast<ssize_t>(taken);
  }
  // The turn may also have written completions to the queue. A completion that reports a failure stays in the
  // queue, and the next read returns -FI_EAVAIL.
  const ssize_t more = drain(direct.next(), count - taken, direct.sources());
  return static_cast<ssize_t>(taken) + std::max<ssize_t>(more, 0);
}

template <typename Entry>
[[gnu::noinline]] ssize_t Cq::drain(Entry* entry, std::size_t count, fi_addr_t* sources) {
  backoff_.record_event();
  bool failed = false;
  const std::size_t taken = queue_.drain(
      count,
      [&](const protocol::Completion& completion) {
        failed = completion.status != Status::ok;
        return !failed;
      },
      [&](const protocol::Completion& completion) {
        write_entry(*entry++, completion);
        if (sources != nullptr) *sources++ = completion.source;
      });
  if (taken > 0 || count == 0) return static_cast<ssize_t>(taken);
  return failed ? -FI_EAVAIL : -FI_EAGAIN;
}

}  // namespace cluster::api
