// What this side remembers of bytes that are to arrive from one peer: posted receives, buffers for many
// messages, remote reads of the application, and large remote writes of the peer. The base holds what pulling
// needs (pull_receiver.h); `kind` says which type a request has. They live in the pool of incoming requests;
// their ids travel in pulls and come back with the bytes.
#pragma once

#include <cstdint>
#include <memory>
#include <span>

#include "base/bytes.h"
#include "base/list.h"
#include "base/status.h"
#include "base/units.h"
#include "protocol/ops.h"
#include "protocol/outgoing_request.h"
#include "protocol/request_pool.h"
#include "wire/segment.h"

namespace cluster::protocol {

/// How far a request is with the bytes that it wants: the front is pulled, this side may copy the back.
struct PullProgress {
  std::size_t wanted = 0;     ///< bytes in all
  std::size_t requested = 0;  ///< pulled so far, from the front
  std::size_t end = 0;        ///< the bytes from here on are not pulled but copied
  std::size_t arrived = 0;    ///< of those pulled
  std::size_t copied = 0;     ///< copied by this side out of the sender's memory
  std::uint64_t source = 0;   ///< address of the bytes in the sender's memory; 0: not reachable

  bool complete() const { return arrived + copied == wanted; }
  std::size_t in_flight() const { return requested - arrived; }
};

/// What the first segment of a message says.
struct MessageHeader {
  std::uint32_t sender_id = 0;  ///< the peer's request
  bool tagged = false;
  bool has_data = false;
  bool confirm = false;     ///< the sender waits for `done`
  bool collective = false;  ///< part of a collective operation
  std::uint64_t tag = 0;
  std::uint64_t data = 0;    ///< remote completion data
  std::uint64_t source = 0;  ///< announced: address of the bytes in the sender's memory, if offered
  std::size_t total = 0;
};
inline MessageHeader header_of(const wire::Segment& first, std::size_t total) {
  return {.sender_id = first.id,
          .tagged = first.tagged(),
          .has_data = first.has_data(),
          .confirm = first.confirm(),
          .collective = first.collective(),
          .tag = first.tag,
          .data = first.data,
          .source = first.address,
          .total = total};
}

struct IncomingRequest {
  enum class Kind : std::uint8_t {
    receive,            ///< RecvRequest: one message
    multi_recv_buffer,  ///< MultiRecvBuffer
    read,               ///< ReadRequest
    write_target,       ///< WriteTarget
  };

  std::uint32_t id = 0;
  const Kind kind;
  bool report = true;
  std::uint32_t sender_id = 0;  ///< the peer's request, if it was announced or is to be confirmed
  Channel* channel = nullptr;   ///< the sender, once known
  void* context = nullptr;
  IovArray<Bytes> slices;
  std::size_t base = 0;      ///< where in the slices it begins
  std::size_t capacity = 0;  ///< bytes that find a place here
  std::size_t total = 0;     ///< length of what the peer sends
  PullProgress pull;
  Hook<IncomingRequest> waiting;  ///< PullBudget::waiting
  Hook<IncomingRequest> direct;   ///< DirectCopy
  Hook<IncomingRequest> member;   ///< Channel::incoming, while it pulls
  Time noted{};                   ///< when note() first saw it (pending_operations.h)

  std::span<const Bytes> buffers() const { return slices.all(); }
  void* first_byte() const { return buffers().empty() ? nullptr : buffers()[0].data(); }

 protected:
  explicit IncomingRequest(Kind of) : kind(of) {}
};

struct MultiRecvBuffer;

/// A posted receive, or the part of a MultiRecvBuffer that one message fills.
struct RecvRequest : IncomingRequest {
  RecvRequest() : RecvRequest(Kind::receive) {}

  Channel* from = nullptr;  ///< the only sender it matches; null: any
  std::uint64_t tag = 0;    ///< to be matched; the message's own once matched
  std::uint64_t ignore = 0;
  Hook<RecvRequest> queue;   ///< MatchQueue
  Hook<RecvRequest> bucket;  ///< PostedIndex
  std::uint64_t number = 0;  ///< PostedIndex: position in the order of posting
  bool indexed = false;      ///< PostedIndex: in a view
  bool plain = false;        ///< posted for one message, in one piece, and it reports its completion
  bool tagged = false;
  bool collective = false;  ///< waits for a message that is part of a collective operation
  bool has_data = false;
  bool confirm = false;               ///< the sender waits for `done`
  bool last = false;                  ///< its completion releases the MultiRecvBuffer
  std::uint64_t data = 0;             ///< remote completion data
  MultiRecvBuffer* buffer = nullptr;  ///< that it is a piece of

  void matched(Channel& sender, const MessageHeader& header) {
    channel = &sender;
    tag = header.tag;
    data = header.data;
    has_data = header.has_data;
    confirm = header.confirm;
    sender_id = header.sender_id;
    pull.source = header.source;
    total = header.total;
  }

 protected:
  explicit RecvRequest(Kind of) : IncomingRequest(of) {}
};

/// A buffer for many messages (FI_MULTI_RECV); multi_receive.h.
struct MultiRecvBuffer : RecvRequest {
  MultiRecvBuffer() : RecvRequest(Kind::multi_recv_buffer) {}

  std::size_t min_free = 0;    ///< it is closed when fewer bytes than these are free
  std::size_t used = 0;        ///< bytes given to pieces
  std::size_t pieces = 0;      ///< not complete yet
  bool closed = false;         ///< takes no more messages; released with its last piece
  Status status = Status::ok;  ///< why it was closed, if not for being full
};

/// One remote range of a read of this side.
struct ReadRequest : IncomingRequest {
  ReadRequest() : IncomingRequest(Kind::read) {}

  RmaRange range;
};

/// What the first segment of a range of a peer's write says.
struct RemoteWrite {
  RmaIov iov{};
  std::uint64_t length_so_far = 0;  ///< of this range and those of the write before it
  std::uint64_t data = 0;
  bool has_data = false;
  bool last = true;  ///< range of the write
};

/// One remote range of a peer's large write, pulled into a memory region.
struct WriteTarget : IncomingRequest {
  WriteTarget() : IncomingRequest(Kind::write_target) {}

  RemoteWrite write;
};

using IncomingPool = RequestPool<IncomingRequest, RecvRequest, MultiRecvBuffer, ReadRequest, WriteTarget>;

/// A message that came before its receive, or the announcement of one.
struct UnexpectedMessage : MessageHeader {
  std::uint32_t id = 0;
  Channel* channel = nullptr;
  bool announced = false;    ///< the bytes are still with the sender
  bool claimed = false;      ///< by a peek (FI_CLAIM), with context `claimed_by`
  bool discarded = false;    ///< dropped when its last part has arrived
  Status lost = Status::ok;  ///< else why what was still to come of it will not: its receive ends with that
  std::size_t arrived = 0;   ///< eager: equals total once complete
  std::uint64_t charge = 0;  ///< credit that it holds while it is stored
  std::unique_ptr<std::byte[]> bytes;
  RecvRequest* receive = nullptr;  ///< matched while parts were still to arrive
  void* claimed_by = nullptr;
  Hook<UnexpectedMessage> queue;                        ///< MatchQueue
  Hook<UnexpectedMessage> first_bucket, second_bucket;  ///< UnexpectedIndex
  Hook<UnexpectedMessage> member;                       ///< Channel::unexpected

  /// True if a receive may match it.
  bool available() const { return !claimed && !discarded && receive == nullptr; }
  bool incomplete() const { return announced || arrived < total; }
};

}  // namespace cluster::protocol
