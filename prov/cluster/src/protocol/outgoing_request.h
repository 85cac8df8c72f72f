// Requests that post segments to a peer. A request stands for a message, remote write, read or atomic of the
// application, or for a response to an operation of the peer. Each of these has its own type with the base
// class OutgoingRequest, and `kind` says which type it is. The queues of a channel contain OutgoingRequests.
//
// All requests live in the pool of the class OutgoingRequests. A segment carries the id of its request, and
// the peer's answer returns this id.
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <memory>
#include <span>

#include "base/bytes.h"
#include "base/list.h"
#include "base/status.h"
#include "base/units.h"
#include "protocol/ops.h"
#include "protocol/region_table.h"
#include "wire/segment.h"

namespace cluster::protocol {

struct Channel;
struct ReadRequest;

/// The slices of a buffer, with the application's handles of registered memory. The constructor leaves the
/// elements uninitialized. Every message needs such an array. Clearing all eight elements would cost more
/// than filling the one or two that are used.
template <typename Slice>
class IovArray {
 public:
  IovArray() {}
  void add(const Slice& slice) { slices_[count_++] = slice; }
  /// Adds all slices of a buffer. `handles`: one for each slice, or null.
  void add(std::span<const Slice> slices, MemoryHandles handles = nullptr) {
    for (const Slice& slice : slices) add(slice);
    if (handles != nullptr) [[unlikely]] {
      std::copy_n(handles, slices.size(), handles_.data());
      has_handles_ = true;
    }
  }
  void replace(const Slice& slice) {
    count_ = 1;
    has_handles_ = false;
    slices_[0] = slice;
  }
  std::span<const Slice> all() const { return {slices_.data(), count_}; }
  MemoryHandles handles() const { return has_handles_ ? handles_.data() : nullptr; }

 private:
  std::uint32_t count_ = 0;
  std::uint32_t has_handles_ = false;
  union {
    std::array<Slice, kIovMax> slices_;
  };
  union {
    std::array<void*, kIovMax> handles_;
  };
};

/// An RMA operation that has several remote ranges, or belongs to a deferred work queue. Each range has its
/// own request. The operation is complete when all of these requests are complete.
struct RmaGroup {
  std::uint32_t id = 0;
  void* context = nullptr;
  std::size_t left = 0;         ///< ranges that are not complete
  std::size_t unrequested = 0;  ///< reads: ranges that are not completely requested
  Status status = Status::ok;   ///< the first failure
  bool report = true;
  bool deferred = false;
};

/// One remote range of an RMA operation.
struct RmaRange {
  RmaIov remote{};
  std::size_t base = 0;       ///< where the range begins in the local buffers
  RmaGroup* group = nullptr;  ///< null if the operation has none
  bool first = true;          ///< the first range of the operation
  bool last = true;
};

struct OutgoingRequest {
  enum class Kind : std::uint8_t {
    message,          ///< SendRequest
    write,            ///< WriteRequest
    atomic,           ///< AtomicRequest
    queued_read,      ///< QueuedRead
    read_response,    ///< ReadResponse
    atomic_response,  ///< AtomicResponse
    read_grant,       ///< ReadGrant
  };
  enum class State : std::uint8_t {
    queued,     ///< the carrier has not taken all of it yet
    posted,     ///< the carrier has all of it, or a part has failed; waits for answers, if any
    submitted,  ///< the transport is accessing the peer's memory, and will report the end
    announced,  ///< the receiver pulls the bytes; the request waits for `done`
  };

  std::uint32_t id = 0;
  const Kind kind;
  State state = State::queued;
  Status status = Status::ok;  ///< the outcome so far, as the peer has reported it
  bool fence = false;
  bool report = true;
  /// Messages and announced writes: posted tokens that the transport has not reported yet. Atomics: posted
  /// parts that the peer has not answered yet.
  std::uint32_t unanswered = 0;
  Channel* channel = nullptr;
  void* context = nullptr;
  std::size_t length = 0;
  std::size_t posted = 0;             ///< bytes that the carrier has taken
  std::unique_ptr<std::byte[]> copy;  ///< bytes of an injected operation that had to wait, or of a response
  Hook<OutgoingRequest> queue_hook;   ///< TxQueues::ordered or TxQueues::bulk
  Hook<OutgoingRequest> member;       ///< Channel::outgoing or RmaState::responses
  Time noted{};                       ///< when note() first saw the request (pending_operations.h)

  /// Returns true for responses to operations of the peer.
  bool response() const { return kind >= Kind::read_response; }

 protected:
  explicit OutgoingRequest(Kind of) : kind(of) {}
};

/// Returns those flags of a message's first segment that depend only on the message.
template <typename Message>
std::uint8_t message_flags(const Message& message) {
  return static_cast<std::uint8_t>((message.tagged ? wire::segment_flag::kTagged : 0) |
                                   (message.has_data ? wire::segment_flag::kData : 0) |
                                   (message.internal ? wire::segment_flag::kInternal : 0));
}

/// A range of a message or write that the receiver has requested and the carrier has not taken yet.
struct PullRange {
  std::uint64_t offset = 0;
  std::uint64_t end = 0;
  std::uint64_t address = 0;  ///< where the bytes belong in the receiver's memory; 0: not offered
};

/// The largest number of requested ranges of one request that wait for the carrier. A range that begins where
/// another ends is joined with it, unless one of them carries an address. A correct peer needs only a few
/// ranges: each of its pulls continues the one before, and pulls arrive in order except after a loss. A peer
/// that requests more ranges violates the protocol.
inline constexpr std::size_t kPullsMax = 8;

/// The ranges of one request that the peer has requested and the carrier has not taken yet, in the order in
/// which the peer requested them. The constructor leaves the elements uninitialized.
class PullRanges {
 public:
  PullRanges() {}
  std::size_t count() const { return count_; }
  PullRange& front() { return ranges_[0]; }
  /// Adds a range, or joins it with the range that it continues. Returns false if there are too many ranges.
  bool add(const PullRange& range) {
    for (std::size_t i = 0; i < count_ && range.address == 0; ++i) {
      if (ranges_[i].end != range.offset || ranges_[i].address != 0) continue;
      ranges_[i].end = range.end;
      return true;
    }
    if (count_ == kPullsMax) return false;
    ranges_[count_++] = range;
    return true;
  }
  void pop_front() {
    --count_;
    for (std::size_t i = 0; i < count_; ++i) ranges_[i] = ranges_[i + 1];
  }
  void clear() { count_ = 0; }

 private:
  std::size_t count_ = 0;
  union {
    std::array<PullRange, kPullsMax> ranges_;
  };
};

/// The common base of messages and remote writes. The sender announces a long message or write, and the
/// receiver pulls its bytes.
struct PulledRequest : OutgoingRequest {
  IovArray<ConstBytes> slices;
  std::size_t base = 0;           ///< where the request begins in the slices
  std::uint64_t data = 0;         ///< remote completion data
  std::uint32_t receiver_id = 0;  ///< announced requests: id of the peer's request that pulls
  bool has_data = false;
  bool done = false;  ///< the receiver has finished with the request
  PullRanges pulls;

  /// Returns a part of the bytes to send.
  Gather bytes(std::size_t from, std::size_t count) const {
    return {slices.all(), base + from, count, slices.handles()};
  }

 protected:
  using OutgoingRequest::OutgoingRequest;
};

struct SendRequest : PulledRequest {
  SendRequest() : PulledRequest(Kind::message) {}

  std::uint64_t tag = 0;
  CompletionLevel completion_level = CompletionLevel::transmit;
  bool tagged = false;
  bool internal = false;
  bool deferred = false;    ///< belongs to a deferred work queue
  bool alone = false;       ///< the carrier took it at once, as a segment that does not carry the id
  bool rendezvous = false;  ///< announced, not eager; decided when it reaches the head of the queue
};

/// One remote range of a write.
struct WriteRequest : PulledRequest {
  WriteRequest() : PulledRequest(Kind::write) {}

  RmaRange range;
  bool inject = false;  ///< the caller may change its buffer once the call returns
};

/// One remote range of an atomic operation. `posted` counts bytes at the target.
struct AtomicRequest : OutgoingRequest {
  AtomicRequest() : OutgoingRequest(Kind::atomic) {}

  RmaRange range;
  wire::AtomicCode code;
  IovArray<ConstBytes> operands;
  IovArray<ConstBytes> compares;
  IovArray<Bytes> results;
  std::size_t base = 0;  ///< where the range begins in operands and compares (range.base: in results)
};

/// Keeps the place of a remote read in the ordered queue. The read begins when this request is at the head of
/// the queue and must not wait.
struct QueuedRead : OutgoingRequest {
  QueuedRead() : OutgoingRequest(Kind::queued_read) {}

  ReadRequest* read = nullptr;
};

/// The response to a part of a peer's remote read. The response waits for space in the carrier.
struct ReadResponse : OutgoingRequest {
  ReadResponse() : OutgoingRequest(Kind::read_response) {}

  RmaIov remote;                  ///< what is read
  std::uint64_t offset = 0;       ///< where the part belongs in the peer's buffer
  std::uint32_t receiver_id = 0;  ///< id of the peer's request
  bool last = true;               ///< no other part of the read follows
};

/// The permission for a peer's device to read a range of a region, for a remote read of the peer. It ends
/// when the peer says so, when the region is closed, or with the peer.
struct ReadGrant : OutgoingRequest {
  ReadGrant() : OutgoingRequest(Kind::read_grant) {}

  RmaIov remote;
  HeldRange held;
  Hook<ReadGrant> grant;  ///< OutgoingRequests::grants_
};

/// The response to a part of a peer's fetching atomic. `copy` holds the previous values.
struct AtomicResponse : OutgoingRequest {
  AtomicResponse() : OutgoingRequest(Kind::atomic_response) {}

  std::uint64_t address = 0;    ///< target address of the answered part
  std::uint32_t sender_id = 0;  ///< id of the peer's request
};

}  // namespace cluster::protocol
