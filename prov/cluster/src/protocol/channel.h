// A channel: the protocol's state for one peer, whatever carries its segments. It outlives carriers: when the
// peer is lost the state starts afresh, and the channel serves the peer's next session.
//
// Each nested struct is changed by one class, named in its comment; the others only read it.
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

/// Eager credit at the beginning of a session. Part of the protocol.
inline constexpr std::uint64_t kInitialCredit = 256 * 1024;
/// What a message is charged besides its bytes: about what the receiver needs to remember it.
inline constexpr std::uint64_t kMessageCharge = 64;

/// Messages up to this length are eager whatever the carrier's limit: a rendezvous takes longer.
inline constexpr std::size_t kAlwaysEager = 16 * 1024;

/// Most responses to one peer's reads and atomics that wait for free bytes in the carrier. A correct peer has
/// far fewer parts of reads in flight (its pull budget), and half as many parts of atomics.
inline constexpr std::size_t kResponsesMax = 8192;
/// Most reads of this side in flight with one peer: their parts, with those of atomics, stay below what the
/// peer keeps.
inline constexpr std::size_t kReadsMax = 2048;
/// Most control segments that wait for free bytes in the carrier; each answers something of the peer.
inline constexpr std::size_t kControlMax = 4 * kResponsesMax;

/// Segments that the carrier has not taken yet. (OutgoingRequests, ControlSender)
struct TxQueues {
  List<OutgoingRequest, &OutgoingRequest::queue_hook> ordered;  ///< operations, in the order they were posted
  List<OutgoingRequest, &OutgoingRequest::queue_hook> bulk;     ///< requested by the peer: ranges, responses
  RingQueue<wire::Segment> control;                             ///< pulls, confirmations, credit
  std::size_t bulk_bytes = 0;                                   ///< posted out of `bulk` so far
  bool bulk_next = false;        ///< some bulk goes before the next long message
  bool busy = false;             ///< in the list of channels with segments to post
  bool control_pending = false;  ///< in the list of channels whose carrier got a control segment

  bool empty() const { return ordered.empty() && bulk.empty() && control.empty(); }
};

/// Eager credit. A sender charges every eager message (its length and a fixed overhead) against a limit that the receiver
/// raises as messages leave its store of unexpected messages (ControlSender::release). A message that would pass the limit is
/// announced instead: it waits in the sender's memory. So a receiver bounds its own memory without ever dropping a message, or
/// blocking one that others wait for.
struct Credit {
  std::uint64_t charged = 0;  ///< by this side, since the session began
  std::uint64_t limit = kInitialCredit;
  std::uint64_t charged_by_peer = 0;
  std::uint64_t released = 0;  ///< of what the peer charged
  std::uint64_t granted = kInitialCredit;

  static std::uint64_t charge_of(std::size_t length) { return length + kMessageCharge; }

  // --- sender ---
  bool covers(std::size_t length) const { return charged + charge_of(length) <= limit; }
  void charge(std::size_t length) { charged += charge_of(length); }
  /// Credit segments may overtake each other: the largest one holds.
  void raise(std::uint64_t to) { limit = std::max(limit, to); }

  // --- receiver ---
  /// False if the peer would charge more for a message than it was granted.
  bool allows(std::uint64_t length) const {
    return length <= granted && charged_by_peer + charge_of(length) <= granted;
  }
  /// The peer has charged a message, which it may.
  void accept(std::uint64_t length) { charged_by_peer += charge_of(length); }
  /// A message comes and goes past the store. False: it has not been counted, since it is not allowed, or credit is to be
  /// advertised: the peer has been granted no more than `ahead` beyond what was released.
  bool pass(std::uint32_t length, std::uint64_t ahead) {
    const std::uint64_t charge = charge_of(length);
    if (charged_by_peer + charge > granted || released + charge + ahead >= granted) return false;
    charged_by_peer += charge;
    released += charge;
    return true;
  }
};

/// The eager message whose parts are arriving: at most one of the two is set. (EagerProtocol, GroupProtocol)
struct Assembly {
  RecvRequest* receive = nullptr;
  UnexpectedMessage* unexpected = nullptr;

  bool active() const { return receive != nullptr || unexpected != nullptr; }
  /// The next part has come. False: it does not belong to the message, and changes nothing.
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
  std::uint64_t ranges_length = 0;  ///< of the ranges so far, if another one follows
  bool open = false;
  bool allowed = false;
  bool answered = true;  ///< the peer waits for `done` or `failed`
};

/// The peer's registered memory, where its transport reaches it without the peer's library. Null: it is asked for again
/// behind so many more remote accesses, after each attempt twice as many. (The engine's PeerReach)
struct ReachedMemory {
  std::unique_ptr<MemoryAccess> access;
  std::uint32_t accesses_left = 0;
  std::uint32_t interval = 1;
};

/// Remote accesses in flight.
struct RmaState {
  ReachedMemory reached;
  std::size_t puts_pending =
      0;  ///< submitted to `reached`, not over, and not in the list of operations (InitiatorRma)
  std::size_t gets_pending = 0;  ///< likewise; these are among `reads` as well
  /// Of this side: announced, or pending where nothing keeps their order. Later messages wait until they are complete.
  std::size_t writes_announced = 0;
  std::size_t reads = 0;          ///< of this side, begun and not complete
  std::size_t atomic_parts = 0;   ///< of this side, posted and not answered
  std::size_t write_targets = 0;  ///< large writes of the peer that are being pulled
  List<OutgoingRequest, &OutgoingRequest::member> responses;  ///< to operations of the peer
  std::size_t response_count = 0;
  std::size_t refused = 0;  ///< accesses of the peer, in this session
};

/// Messages of the peer that wait for their receive. (Matcher)
struct StoredMessages {
  List<UnexpectedMessage, &UnexpectedMessage::member> messages;
  std::size_t count = 0;
};

/// The peer's share of a pull budget. (PullBudget)
struct PullShare {
  std::size_t in_flight = 0;  ///< bytes requested and not arrived
  std::size_t arrived = 0;    ///< bytes since the last check for stalls
  bool requested = false;     ///< something was requested since then
  bool stalled = false;       ///< too little arrives: the share is lent to others
  Hook<PullShare> hook;
};

struct Channel {
  SocketAddress name;
  Carrier* carrier = nullptr;     ///< null while the peer has none
  std::size_t eager_max = 0;      ///< option of the carrier in use
  CrossMemory* memory = nullptr;  ///< the peer's, where this process can reach it
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
  List<IncomingRequest, &IncomingRequest::member> incoming;  ///< whatever pulls from the peer

  bool busy() const { return tx.busy; }
  /// True if something cannot complete before the peer has sent something.
  bool waits_for_peer() const {
    return !outgoing.empty() || rma.puts_pending + rma.gets_pending != 0 || !incoming.empty() ||
           assembly.active();
  }
  bool allows_eager(std::size_t length) const {
    return length <= eager_max && (length <= kAlwaysEager || length <= carrier->eager_limit());
  }
};

}  // namespace cluster::protocol
