// Requests that wait for bytes from a peer: posted receives, buffers for many messages, remote reads of the
// application, and large remote writes of the peer. The base class IncomingRequest contains what PullReceiver
// needs, and `kind` says of which type a request is. All requests live in one pool (IncomingPool). A pull
// carries the request's id, and the peer returns this id with the bytes.
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

/// How many of the wanted bytes a request has. PullReceiver pulls bytes from the front, and DirectCopy may
/// copy bytes from the back.
struct PullProgress {
  std::size_t wanted = 0;     ///< number of bytes that the request wants
  std::size_t requested = 0;  ///< bytes requested so far, from the front
  std::size_t end = 0;        ///< DirectCopy has copied the bytes from here on
  std::size_t arrived = 0;    ///< pulled bytes that have arrived
  std::size_t copied = 0;     ///< bytes that this side has copied from the sender's memory
  std::uint64_t source = 0;   ///< address of the bytes in the sender's memory; 0: none
  /// The state of a read by an RDMA device. This side pulls nothing until the read is over.
  enum class Device : std::uint8_t { none, asked, reading } device = Device::none;
  std::size_t device_part = 0;  ///< bytes that it reads, or is to read, behind those that have arrived

  bool complete() const { return arrived + copied == wanted; }
  std::size_t in_flight() const { return requested - arrived; }
};

/// The properties of a message, as its first segment gives them.
struct MessageHeader {
  std::uint32_t sender_id = 0;  ///< id of the peer's request
  bool tagged = false;
  bool has_data = false;
  bool confirm = false;   ///< the sender waits for `done`
  bool internal = false;  ///< an internal message; no receive of the application matches it
  std::uint64_t tag = 0;
  std::uint64_t data = 0;    ///< remote completion data
  std::uint64_t source = 0;  ///< announced messages: address in the sender's memory; 0: not offered
  std::size_t total = 0;
};
inline MessageHeader header_of(const wire::Segment& first, std::size_t total) {
  return {.sender_id = first.id,
          .tagged = first.tagged(),
          .has_data = first.has_data(),
          .confirm = first.confirm(),
          .internal = first.internal(),
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
  std::uint32_t sender_id = 0;  ///< id of the peer's request, if announced or waiting for `done`
  Channel* channel = nullptr;   ///< the sender's channel; null until the sender is known
  void* context = nullptr;
  IovArray<Bytes> slices;
  std::size_t base = 0;      ///< where the request begins in the slices
  std::size_t capacity = 0;  ///< bytes that fit into the slices
  std::size_t total = 0;     ///< length of what the peer sends
  PullProgress pull;
  Hook<IncomingRequest> waiting;  ///< PullBudget::waiting
  Hook<IncomingRequest> direct;   ///< DirectCopy
  Hook<IncomingRequest> member;   ///< Channel::incoming, while bytes are pulled or read by a device
  Time noted{};                   ///< when note() first saw the request (pending_operations.h)

  std::span<const Bytes> buffers() const { return slices.all(); }
  void* first_byte() const { return buffers().empty() ? nullptr : buffers()[0].data(); }

 protected:
  explicit IncomingRequest(Kind of) : kind(of) {}
};

struct MultiRecvBuffer;

/// A posted receive, or the part of a MultiRecvBuffer that one message fills.
struct RecvRequest : IncomingRequest {
  RecvRequest() : RecvRequest(Kind::receive) {}

  Channel* from = nullptr;  ///< the only sender whose messages the receive takes; null: any sender
  std::uint64_t tag = 0;    ///< the tag to match; once matched, the tag of the message
  std::uint64_t ignore = 0;
  Hook<RecvRequest> queue;   ///< MatchQueue
  Hook<RecvRequest> bucket;  ///< PostedIndex
  std::uint64_t number = 0;  ///< PostedIndex: position in the order of posting
  bool indexed = false;      ///< PostedIndex: the receive is in a view
  bool plain = false;        ///< one message, one slice, reported on success; neither internal nor deferred
  bool tagged = false;
  bool internal = false;  ///< waits for an internal message
  bool deferred = false;  ///< belongs to a deferred work queue
  bool has_data = false;
  bool confirm = false;               ///< the sender waits for `done`
  bool last = false;                  ///< the completion also reports the release of the MultiRecvBuffer
  std::uint64_t data = 0;             ///< remote completion data
  MultiRecvBuffer* buffer = nullptr;  ///< the buffer that this piece belongs to

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

/// A buffer for many messages (FI_MULTI_RECV); see multi_receive.h.
struct MultiRecvBuffer : RecvRequest {
  MultiRecvBuffer() : RecvRequest(Kind::multi_recv_buffer) {}

  std::size_t min_free = 0;    ///< when fewer bytes are free, the buffer is closed
  std::size_t used = 0;        ///< bytes given to pieces
  std::size_t pieces = 0;      ///< pieces that are not complete
  bool closed = false;         ///< takes no more messages; released with its last piece
  Status status = Status::ok;  ///< not `ok`: why the buffer was closed before it was full
};

/// One remote range of a read of this side.
struct ReadRequest : IncomingRequest {
  ReadRequest() : IncomingRequest(Kind::read) {}

  RmaRange range;
  std::uint32_t grant = 0;  ///< the target's ReadGrant, if `granted`
  bool granted = false;
};

/// One range of a peer's write, as the first segment of the range describes it.
struct RemoteWrite {
  RmaIov iov{};
  std::uint64_t length_so_far = 0;  ///< length of this range and those before it
  std::uint64_t data = 0;
  bool has_data = false;
  bool last = true;  ///< the last range of the write
};

/// One remote range of a peer's large write. This side pulls the bytes into a memory region.
struct WriteTarget : IncomingRequest {
  WriteTarget() : IncomingRequest(Kind::write_target) {}

  RemoteWrite write;
  HeldRange held;           ///< the device of this side writes to it
  Hook<WriteTarget> holds;  ///< PullReceiver::holding_
};

using IncomingPool = RequestPool<IncomingRequest, RecvRequest, MultiRecvBuffer, ReadRequest, WriteTarget>;

/// A message, or the announcement of a message, that arrived before its receive was posted.
struct UnexpectedMessage : MessageHeader {
  std::uint32_t id = 0;
  Channel* channel = nullptr;
  bool announced = false;  ///< the bytes are still with the sender
  bool claimed = false;    ///< a peek (FI_CLAIM) with the context `claimed_by` has claimed it
  bool discarded = false;  ///< drop it when its last part has arrived
  /// If this is not Status::ok, the rest of the message will not arrive. A receive that takes the message
  /// ends with this status.
  Status lost = Status::ok;
  std::size_t arrived = 0;   ///< eager messages: bytes that have arrived
  std::uint64_t charge = 0;  ///< credit that the message holds while it is stored
  std::unique_ptr<std::byte[]> bytes;
  RecvRequest* receive = nullptr;  ///< the receive that matched while parts were missing
  void* claimed_by = nullptr;
  Hook<UnexpectedMessage> queue;                        ///< MatchQueue
  Hook<UnexpectedMessage> first_bucket, second_bucket;  ///< UnexpectedIndex
  Hook<UnexpectedMessage> member;                       ///< Channel::unexpected

  /// Returns true if a receive may match this message.
  bool available() const { return !claimed && !discarded && receive == nullptr; }
  bool incomplete() const { return announced || arrived < total; }
};

}  // namespace cluster::protocol
