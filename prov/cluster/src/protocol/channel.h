// A channel: the protocol's state for one peer, whatever carries its segments. It outlives carriers: when the
// peer is lost, the state starts afresh, and the channel serves the peer's next session.
//
// One class, named in its comment, changes each nested struct. All others only read it.
#pragma once

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <memory>
#include <optional>

#include "base/address.h"
#include "base/ring_queue.h"
#include "carrier/carrier.h"
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

/// Eager credit at the beginning of a session. The value is part of the protocol.
inline constexpr std::uint64_t kInitialCredit = 256 * 1024;
/// What a message costs besides its bytes: about the memory in which the receiver remembers it.
inline constexpr std::uint64_t kMessageCharge = 64;

/// Messages up to this length are eager even beyond the carrier's limit: a rendezvous takes longer.
inline constexpr std::size_t kAlwaysEager = 16 * 1024;

/// Limits the responses to one peer's reads and atomics that wait for space in the carrier. A correct peer
/// has far fewer parts of reads in flight (its pull budget), and half as many parts of atomics.
inline constexpr std::size_t kResponsesMax = 8192;
/// Limits the reads of this side in flight with one peer. Their parts and those of atomics stay below what
/// the peer keeps.
inline constexpr std::size_t kReadsMax = 2048;
/// Limits the control segments that wait for space in the carrier. Each answers a segment of the peer.
inline constexpr std::size_t kControlMax = 4 * kResponsesMax;

/// Segments that the carrier has not taken yet. (OutgoingRequests, ControlSender)
struct TxQueues {
  List<OutgoingRequest, &OutgoingRequest::queue_hook> ordered;  ///< operations, in the order they were posted
  List<OutgoingRequest, &OutgoingRequest::queue_hook> bulk;     ///< requested by the peer: ranges, responses
  RingQueue<wire::Segment> control;                             ///< pulls, confirmations, credit
  std::size_t bulk_bytes = 0;                                   ///< bytes posted from `bulk` so far
  bool bulk_next = false;                                       ///< bulk goes before the next long message
  bool busy = false;             ///< in the list of channels with segments to post
  bool control_pending = false;  ///< in the list of channels whose carrier has got a control segment

  bool empty() const { return ordered.empty() && bulk.empty() && control.empty(); }
};

/// Eager credit. A sender charges every eager message (its length and a fixed overhead) against a limit. The
/// receiver raises the limit as messages leave its store of unexpected messages (ControlSender::release). A
/// message that would exceed the limit is announced instead, and waits in the sender's memory. So a receiver
/// limits its own memory, and never drops a message or blocks one that others wait for.
struct Credit {
  std::uint64_t charged = 0;  ///< by this side since the session began
  std::uint64_t limit = kInitialCredit;
  std::uint64_t charged_by_peer = 0;
  std::uint64_t released = 0;  ///< how much of the peer's charge the receiver has released
  std::uint64_t granted = kInitialCredit;

  static std::uint64_t charge_of(std::size_t length) { return length + kMessageCharge; }

  // --- sender ---
  bool covers(std::size_t length) const { return charged + charge_of(length) <= limit; }
  void charge(std::size_t length) { charged += charge_of(length); }
  /// Raises the limit. Credit segments may overtake each other, so the largest one counts.
  void raise(std::uint64_t to) { limit = std::max(limit, to); }

  // --- receiver ---
  /// Returns false if the message would charge more than the peer was granted.
  bool allows(std::uint64_t length) const {
    return length <= granted && charged_by_peer + charge_of(length) <= granted;
  }
  /// Charges a message of the peer. The caller has checked allows().
  void accept(std::uint64_t length) { charged_by_peer += charge_of(length); }
  /// Counts a message that does not stay in the store. Returns false and counts nothing if the message is not
  /// allowed, or if it is time to advertise credit: the grant is at most `ahead` beyond what was released.
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
  /// Adds the next part. Returns false and changes nothing if the part does not belong to the message.
  bool append(ConstBytes payload) {
    std::size_t& arrived = receive != nullptr ? receive->pull.arrived : unexpected->arrived;
    if (payload.size() > total() - arrived) return false;
    if (receive != nullptr) {
      scatter_short(receive->buffers(), arrived, payload);
    } else if (!payload.empty()) {
      std::memcpy(unexpected->bytes.get() + arrived, payload.data(), payload.size());
    }
    arrived += payload.size();
    return true;
  }
  bool complete() const {
    return (receive != nullptr ? receive->pull.arrived : unexpected->arrived) == total();
  }

 private:
  std::size_t total() const { return receive != nullptr ? receive->total : unexpected->total; }
};

/// The peer's remote write whose parts are arriving. (RmaWriteProtocol)
struct IncomingWrite {
  RemoteWrite range;
  std::uint32_t sender_id = 0;
  std::uint64_t arrived = 0;
  std::uint64_t ranges_length = 0;  ///< length of the ranges so far, if another range follows
  bool open = false;
  bool allowed = false;
  bool answered = true;  ///< the peer waits for `done` or `failed`
};

/// The peer's registered memory, if its transport reaches it without the peer's library. While `access` is
/// null, PeerReach asks for it again after some remote accesses, and after twice as many each time.
struct ReachedMemory {
  std::unique_ptr<MemoryAccess> access;
  std::uint32_t accesses_left = 0;
  std::uint32_t interval = 1;
};

/// Remote accesses in flight.
struct RmaState {
  ReachedMemory reached;
  std::size_t puts_pending =
      0;  ///< submitted to `reached`, not complete, and not in the list of operations (RemoteAccess)
  std::size_t gets_pending = 0;  ///< the same for gets, which also count as `reads`
  /// Writes of this side: announced, or pending without an order. Later messages wait until these are
  /// complete.
  std::size_t writes_announced = 0;
  std::size_t reads = 0;          ///< of this side, started and not complete
  std::size_t atomic_parts = 0;   ///< of this side, posted and not answered
  std::size_t write_targets = 0;  ///< large writes of the peer that are being pulled
  List<OutgoingRequest, &OutgoingRequest::member> responses;  ///< to operations of the peer
  std::size_t response_count = 0;
  std::size_t refused = 0;  ///< refused accesses of the peer in this session
};

/// Messages of the peer that wait for their receive. (Matcher)
struct StoredMessages {
  List<UnexpectedMessage, &UnexpectedMessage::member> messages;
  std::size_t count = 0;
};

/// The peer's share of a pull budget. (PullBudget)
struct PullShare {
  std::size_t in_flight = 0;  ///< bytes requested that have not arrived
  std::size_t arrived = 0;    ///< bytes since the last check for stalls
  bool requested = false;     ///< bytes were requested since then
  bool stalled = false;       ///< too little arrives, so the share is lent to others
  Hook<PullShare> hook;
};

struct Channel {
  SocketAddress name;
  Carrier* carrier = nullptr;     ///< null while the peer has none
  std::size_t eager_max = 0;      ///< option of the current carrier
  CrossMemory* memory = nullptr;  ///< the peer's memory, if this process can reach it
  void* owner = nullptr;          ///< the engine's peer
  bool peer_closed = false;       ///< the peer has closed in an orderly way

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
  /// True if an operation cannot complete before the peer sends something.
  bool waits_for_peer() const {
    return !outgoing.empty() || rma.puts_pending + rma.gets_pending != 0 || !incoming.empty() ||
           assembly.active();
  }
  bool allows_eager(std::size_t length) const {
    return length <= eager_max && (length <= kAlwaysEager || length <= carrier->eager_limit());
  }
};

}  // namespace cluster::protocol
