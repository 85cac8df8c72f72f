// A channel holds the protocol's state for one peer, whichever carrier transports the segments. The channel
// outlives carriers. When the peer is lost, Messenger::fail() resets the state, and the channel serves the
// peer's next session.
//
// In the comments of the structs below, the classes in parentheses own the state.
#pragma once

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <memory>
#include <optional>

#include "base/address.h"
#include "base/ring_queue.h"
#include "carrier/carrier.h"
#include "carrier/device_reads.h"
#include "carrier/memory_access.h"
#include "protocol/incoming_request.h"
#include "protocol/outgoing_request.h"

namespace cluster::protocol {

using carrier::AccessTerms;
using carrier::Carrier;
using carrier::CrossMemory;
using carrier::MemoryAccess;
using carrier::Outcome;
using carrier::PayloadMode;
using carrier::post_copy;
using carrier::Token;

/// The eager credit that a sender has at the beginning of a session. The value is part of the protocol.
inline constexpr std::uint64_t kInitialCredit = 256 * 1024;
/// The credit that each message takes in addition to its length. It stands for the entry that the receiver
/// needs for an unexpected message. (An entry occupies about three times as many bytes.) The value is part of
/// the protocol.
inline constexpr std::uint64_t kMessageCharge = 64;

/// Messages up to this length are eager even if they exceed the carrier's eager limit, because a rendezvous
/// takes longer. No message above Channel::eager_max is eager.
inline constexpr std::size_t kAlwaysEager = 16 * 1024;

/// The largest number of responses to one peer's reads and atomics that wait for space in the carrier. A
/// correct peer stays below this limit. The peer has at most kReadsMax reads in progress, and its pull budget
/// lets only few of these reads have several parts in flight. The peer has at most kResponsesMax / 2 parts of
/// atomics in flight.
inline constexpr std::size_t kResponsesMax = 8192;
/// The largest number of reads that this side has in progress with one peer. Reads and parts of atomics
/// together stay below the number of responses that the peer keeps.
inline constexpr std::size_t kReadsMax = 2048;
/// The largest number of ranges that one peer's device may read at the same time for remote reads. The peer
/// gets what it reads beyond this limit in segments.
inline constexpr std::size_t kGrantsMax = 64;
/// The largest number of control segments to one peer that wait for space in the carrier. Nearly all of them
/// answer a segment from that peer, or request bytes of a read of this side.
inline constexpr std::size_t kControlMax = 4 * kResponsesMax;

/// Segments that the carrier has not taken yet. (OutgoingRequests, ControlSender)
struct TxQueues {
  List<OutgoingRequest, &OutgoingRequest::queue_hook> ordered;  ///< operations, in the order they were posted
  /// What the peer has requested: ranges of messages and writes, and responses to reads and atomics.
  List<OutgoingRequest, &OutgoingRequest::queue_hook> bulk;
  RingQueue<wire::Segment> control;  ///< pulls, reads, answers, credit
  std::size_t bulk_bytes = 0;        ///< bytes posted from `bulk` so far
  bool bulk_next = false;            ///< bulk goes before the next long operation
  bool busy = false;                 ///< listed among the channels with segments to post
  bool control_pending = false;      ///< listed among the pending channels (control_sender.h)

  bool empty() const { return ordered.empty() && bulk.empty() && control.empty(); }
};

/// Eager credit. (ControlSender) For every eager message, a sender charges the message's length and a fixed
/// overhead against a limit. The receiver raises the limit as messages leave its store of unexpected messages
/// (ControlSender::release). If a message would exceed the limit, the sender only announces the message, and
/// the message waits in the sender's memory. In this way a receiver limits its memory without dropping
/// messages. An announced message does not block the messages behind it.
struct Credit {
  std::uint64_t charged = 0;  ///< what this side has charged since the session began
  std::uint64_t limit = kInitialCredit;
  std::uint64_t charged_by_peer = 0;
  std::uint64_t released = 0;  ///< the part of charged_by_peer that the peer may use again
  std::uint64_t granted = kInitialCredit;

  static std::uint64_t charge_of(std::size_t length) { return length + kMessageCharge; }

  // --- sender ---
  bool covers(std::size_t length) const { return charged + charge_of(length) <= limit; }
  void charge(std::size_t length) { charged += charge_of(length); }
  /// Raises the limit. Credit segments may overtake each other, so the largest limit counts.
  void raise(std::uint64_t to) { limit = std::max(limit, to); }

  // --- receiver ---
  /// Returns false if a message of this length would raise the peer's charges above what the peer was
  /// granted.
  bool allows(std::uint64_t length) const {
    return length <= granted && charged_by_peer + charge_of(length) <= granted;
  }
  /// Charges a message of the peer. allows() must have returned true for its length.
  void accept(std::uint64_t length) { charged_by_peer += charge_of(length); }
  /// Charges a message that is not stored, and releases the charge at once. Returns false and changes nothing
  /// if the message is not allowed, or if this side has to advertise credit. This side has to advertise
  /// credit if, after the message, `granted` would exceed `released` by at most `ahead`.
  bool pass(std::uint32_t length, std::uint64_t ahead) {
    const std::uint64_t charge = charge_of(length);
    if (charged_by_peer + charge > granted || released + charge + ahead >= granted) return false;
    charged_by_peer += charge;
    released += charge;
    return true;
  }
};

/// The eager message whose parts are arriving. At most one of the pointers is set. (EagerProtocol,
/// GroupProtocol)
struct Assembly {
  RecvRequest* receive = nullptr;
  UnexpectedMessage* unexpected = nullptr;

  bool active() const { return receive != nullptr || unexpected != nullptr; }
  /// Adds the next part. Returns false and changes nothing if the part is longer than the rest of the
  /// message.
  bool append(ConstBytes payload) {
    if (payload.size() > total() - arrived()) return false;
    if (receive != nullptr) {
      scatter_short(receive->buffers(), arrived(), payload);
    } else if (!payload.empty()) {
      std::memcpy(unexpected->bytes.get() + arrived(), payload.data(), payload.size());
    }
    count_stored(payload.size());
    return true;
  }
  /// Returns the memory for the next `size` bytes. The result is empty if this memory is not in one piece, or
  /// if the message has no such bytes.
  Bytes place(std::size_t size) const {
    if (!active() || size > total() - arrived()) return {};
    if (receive != nullptr) return contiguous(receive->buffers(), arrived(), size);
    return {unexpected->bytes.get() + arrived(), size};
  }
  /// Counts bytes that are in place().
  void count_stored(std::size_t size) {
    (receive != nullptr ? receive->pull.arrived : unexpected->arrived) += size;
  }
  bool complete() const { return arrived() == total(); }

 private:
  std::size_t arrived() const { return receive != nullptr ? receive->pull.arrived : unexpected->arrived; }
  std::size_t total() const { return receive != nullptr ? receive->total : unexpected->total; }
};

/// The range of a peer's remote write whose parts are arriving. (RmaTarget)
struct IncomingWrite {
  RemoteWrite range;
  std::uint32_t sender_id = 0;
  std::uint64_t arrived = 0;
  std::uint64_t ranges_length = 0;  ///< length of the ranges so far, if another range follows
  bool open = false;
  bool allowed = false;
  bool answered = true;  ///< this side must answer the write by `done` or `failed`
};

/// The peer's registered memory, if the transport can access it without the peer's library. While `access` is
/// null, PeerReach asks the transport again after some remote accesses. The number of these accesses doubles
/// with each attempt, up to a limit.
struct ReachedMemory {
  std::unique_ptr<MemoryAccess> access;
  std::uint32_t accesses_left = 0;
  std::uint32_t interval = 1;
};

/// Remote accesses in flight. (RemoteAccess, RmaTarget, AtomicProtocol)
struct RmaState {
  ReachedMemory reached;
  /// Puts that RemoteAccess::write_at_once() has submitted to `reached`, and that are not complete. They have
  /// no request in Channel::outgoing.
  std::size_t puts_pending = 0;
  std::size_t gets_pending = 0;  ///< gets of read_at_once() that are not complete; `reads` counts them, too
  /// Writes of this side that are announced, or that a transport is performing. Of the `puts_pending`, only
  /// those count that the transport does not keep in order (MemoryAccess::in_order). Later messages wait
  /// until all these writes are complete.
  std::size_t writes_announced = 0;
  std::size_t reads = 0;          ///< reads of this side that have started and are not complete
  std::size_t atomic_parts = 0;   ///< parts of this side's atomics, posted and not answered
  std::size_t write_targets = 0;  ///< ranges of the peer's large writes that this side is pulling
  List<OutgoingRequest, &OutgoingRequest::member> responses;  ///< responses to the peer's operations
  std::size_t response_count = 0;
  std::size_t grants = 0;   ///< responses that are ReadGrants
  std::size_t refused = 0;  ///< refused accesses of the peer in this session
};

/// Messages of the peer that wait for their receive. (Matcher)
struct StoredMessages {
  List<UnexpectedMessage, &UnexpectedMessage::member> messages;
  std::size_t count = 0;
};

/// The peer's share of a pull budget. (PullBudget)
struct PullShare {
  std::size_t in_flight = 0;  ///< requested bytes that have not arrived
  std::size_t arrived = 0;    ///< bytes that have arrived since the last check for stalls
  bool requested = false;     ///< bytes were requested since the last check for stalls
  bool stalled = false;       ///< too little arrives, so this side lends the share to others
  Hook<PullShare> hook;
};

struct Channel {
  SocketAddress name;
  Carrier* carrier = nullptr;             ///< null while the peer has none
  std::size_t eager_max = 0;              ///< length of the longest eager message; an option of the transport
  CrossMemory* memory = nullptr;          ///< the peer's memory, if this process can access it
  carrier::DeviceReads* reads = nullptr;  ///< for a device that can read the peer's messages; null: none
  void* owner = nullptr;                  ///< the transport::Peer that contains this channel
  bool peer_closed = false;               ///< the peer has closed in an orderly way

  TxQueues tx;
  Credit credit;
  Assembly assembly;
  IncomingWrite incoming_write;
  RmaState rma;
  PullShare pull;
  StoredMessages unexpected;
  List<OutgoingRequest, &OutgoingRequest::member> outgoing;  ///< operations of this side
  List<IncomingRequest, &IncomingRequest::member> incoming;  ///< requests that pull from the peer

  bool busy() const { return tx.busy; }
  /// Returns true if an operation cannot complete before the peer sends something.
  bool waits_for_peer() const {
    return !outgoing.empty() || rma.puts_pending + rma.gets_pending != 0 || !incoming.empty() ||
           assembly.active();
  }
  bool allows_eager(std::size_t length) const {
    return length <= eager_max && (length <= kAlwaysEager || length <= carrier->eager_limit());
  }
};

}  // namespace cluster::protocol
