// What this side remembers of an operation that posts segments to one peer: messages, remote writes, reads
// and atomics of the application, and the responses to those of the peer. One type each over a common base,
// which is what the ordered queue of a channel holds; `kind` says which type it is.
//
// Requests live in OutgoingRequests' pool; their ids travel in segments and come back in the answers.
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
#include "wire/segment.h"

namespace cluster::protocol {

struct Channel;
struct ReadRequest;

/// The slices of a buffer, with the handles of registered memory that the application gave for them. Only those in use are
/// ever written: one of these is made for every message, and clearing all eight would cost more than the rest of it.
template <typename Slice>
class IovArray {
 public:
  IovArray() {}
  void add(const Slice& slice) { slices_[count_++] = slice; }
  /// All of a buffer; `handles`: one for each slice, or null.
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

/// An RMA operation cut into several requests, one per remote range: complete when all of them are.
struct RmaGroup {
  std::uint32_t id = 0;
  void* context = nullptr;
  std::size_t left = 0;         ///< ranges that are not complete
  std::size_t unrequested = 0;  ///< reads: ranges of which not everything has been requested
  Status status = Status::ok;   ///< the first failure
  bool report = true;
};

/// One remote range of an RMA operation.
struct RmaRange {
  RmaIov remote{};
  std::size_t base = 0;       ///< where in the local buffers it begins
  RmaGroup* group = nullptr;  ///< null if it is the only range
  bool first = true;          ///< of the operation
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
  };
  enum class State : std::uint8_t {
    queued,     ///< not completely with the carrier yet
    posted,     ///< with the carrier; waits for answers if there are any to come
    submitted,  ///< the transport accesses the peer's memory, and will tell when it is over
    announced,  ///< the receiver pulls the bytes; waits for its `done`
  };

  std::uint32_t id = 0;
  const Kind kind;
  State state = State::queued;
  Status status = Status::ok;  ///< reported by the peer
  bool fence = false;
  bool report = true;
  std::uint32_t unanswered = 0;  ///< segments whose token (messages, writes) or answer (atomics) is missing
  Channel* channel = nullptr;
  void* context = nullptr;
  std::size_t length = 0;
  std::size_t posted = 0;             ///< bytes of it that the carrier has taken
  std::unique_ptr<std::byte[]> copy;  ///< bytes of an injected operation that had to queue, or of a response
  Hook<OutgoingRequest> queue_hook;   ///< TxQueues::ordered or TxQueues::bulk
  Hook<OutgoingRequest> member;       ///< Channel::outgoing or RmaState::responses
  Time noted{};                       ///< when note() first saw it (pending_operations.h)

  /// True for the answers to operations of the peer.
  bool response() const { return kind >= Kind::read_response; }

 protected:
  explicit OutgoingRequest(Kind of) : kind(of) {}
};

/// Those flags of the segment that begins a message which the message alone decides.
template <typename Message>
std::uint8_t message_flags(const Message& message) {
  return static_cast<std::uint8_t>((message.tagged ? wire::segment_flag::kTagged : 0) |
                                   (message.has_data ? wire::segment_flag::kData : 0) |
                                   (message.collective ? wire::segment_flag::kCollective : 0));
}

/// A range of a message that the receiver has requested and the carrier has not taken yet.
struct PullRange {
  std::uint64_t offset = 0;
  std::uint64_t end = 0;
  std::uint64_t address = 0;  ///< not 0: where the bytes belong in the receiver's memory
};

/// Most ranges of one message that are requested and do not touch. Pulls come in order except for those that
/// were lost on the way; more from a peer violates the protocol.
inline constexpr std::size_t kPullsMax = 8;

/// The ranges of one message that wait to be sent, first requested first. Only those in use are written.
class PullRanges {
 public:
  PullRanges() {}
  std::size_t count() const { return count_; }
  PullRange& front() { return ranges_[0]; }
  /// False if there are too many. A range that continues another one is joined with it.
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

/// What messages and remote writes have in common: if long, they are announced and the receiver pulls them.
struct PulledRequest : OutgoingRequest {
  IovArray<ConstBytes> slices;
  std::size_t base = 0;           ///< where in the slices it begins
  std::uint64_t data = 0;         ///< remote completion data
  std::uint32_t receiver_id = 0;  ///< announced: the peer's request that pulls
  bool has_data = false;
  bool done = false;  ///< the receiver has finished with it
  PullRanges pulls;

  /// A part of what is sent.
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
  bool collective = false;
  bool rendezvous = false;  ///< decided once, when its turn comes
};

/// One remote range of a write.
struct WriteRequest : PulledRequest {
  WriteRequest() : PulledRequest(Kind::write) {}

  RmaRange range;
  bool inject = false;  ///< the caller may change the bytes, of which `copy` may not hold a copy yet
};

/// One remote range of an atomic operation. `posted` counts target bytes.
struct AtomicRequest : OutgoingRequest {
  AtomicRequest() : OutgoingRequest(Kind::atomic) {}

  RmaRange range;
  wire::AtomicCode code;
  IovArray<ConstBytes> operands;
  IovArray<ConstBytes> compares;
  IovArray<Bytes> results;
  std::size_t base = 0;  ///< where in operands and compares it begins; in the results: range.base
};

/// Keeps the place of a remote read in the ordered queue: the read begins when its turn comes.
struct QueuedRead : OutgoingRequest {
  QueuedRead() : OutgoingRequest(Kind::queued_read) {}

  ReadRequest* read = nullptr;
};

/// The part of a peer's remote read that waits for free bytes in the carrier.
struct ReadResponse : OutgoingRequest {
  ReadResponse() : OutgoingRequest(Kind::read_response) {}

  RmaIov remote;                  ///< what is read
  std::uint64_t offset = 0;       ///< where it belongs in the peer's buffer
  std::uint32_t receiver_id = 0;  ///< the peer's request
  bool last = true;               ///< no other part of the read follows
};

/// The previous values of a peer's fetching atomic; they lie in `copy`.
struct AtomicResponse : OutgoingRequest {
  AtomicResponse() : OutgoingRequest(Kind::atomic_response) {}

  std::uint64_t address = 0;    ///< of the part of the operation that is answered
  std::uint32_t sender_id = 0;  ///< the peer's request
};

}  // namespace cluster::protocol
