// A channel: the protocol's side of one peer, whatever carries it. It outlives carriers: when the
// peer is lost its state starts afresh, and the channel serves the peer's next life.
//
// Credit. A sender charges every eager message (its length and a fixed overhead) against a limit
// that the receiver raises as messages leave its unexpected store. A message that would pass the
// limit is announced instead of sent: it waits in the sender's memory, which is how a receiver
// bounds its own without ever dropping or blocking anything that others wait for.
#pragma once

#include <cstdint>

#include "base/address.h"
#include "base/ring_queue.h"
#include "carrier/carrier.h"
#include "carrier/cross_memory.h"
#include "protocol/request.h"

namespace cluster::protocol {

/// What every session begins with, before the receiver has said anything. Part of the protocol.
inline constexpr std::uint64_t kInitialCredit = 256 * 1024;
/// What a message costs besides its bytes: about what the receiver spends to remember it.
inline constexpr std::uint64_t kMessageCharge = 64;

/// So much travels unasked whatever the carrier says: asking takes as long.
inline constexpr std::size_t kAlwaysEager = 16 * 1024;

/// Most answers to one peer's reads and atomics that wait for room. An honest peer has far fewer
/// pieces of reads under way (its budget), and half as many parts of atomics (atomic.cc).
inline constexpr std::size_t kResponsesMax = 8192;
/// Most reads of this side under way with one peer: its pieces and kPartsMax stay below what the peer keeps.
inline constexpr std::size_t kReadsMax = 2048;
/// Most answers without room in the carrier; each belongs to something the peer has under way.
inline constexpr std::size_t kControlMax = 4 * kResponsesMax;

using carrier::Carrier;
using carrier::CrossMemory;

struct Channel {
  SocketAddress name;
  Carrier* carrier = nullptr;     ///< null while there is no way to the peer
  std::size_t eager_max = 0;      ///< of the carrier in use, at most
  CrossMemory* memory = nullptr;  ///< the peer's, where this process may reach it

  List<SendRequest, &SendRequest::order> waiting;    ///< messages not yet with the carrier, in order
  List<SendRequest, &SendRequest::order> streaming;  ///< announced ones with pulls to answer
  List<SendRequest, &SendRequest::member> sends;     ///< every send request of this channel
  List<RecvRequest, &RecvRequest::member> receives;  ///< every receive that pulls from it
  List<UnexpectedMessage, &UnexpectedMessage::member> unexpected;  ///< everything unexpected from it
  std::size_t stored = 0;                                          ///< how much that is
  RingQueue<wire::Segment> control;  ///< pulls, dones and credits that found no room

  std::uint64_t charged = 0;  ///< by this side, since the session began
  std::uint64_t credit_limit = kInitialCredit;
  std::uint64_t charged_by_peer = 0;
  std::uint64_t released = 0;  ///< of what the peer charged
  std::uint64_t credit_given = kInitialCredit;

  /// The message whose parts are arriving, if any: one of the two is set.
  RecvRequest* assembling = nullptr;
  UnexpectedMessage* assembling_unexpected = nullptr;

  /// The remote write whose parts are arriving.
  struct Landing {
    wire::Segment first;  ///< kind put; what it says holds for all parts
    std::uint64_t arrived = 0;
    std::uint64_t whole = 0;  ///< length of the write so far, all ranges
    bool open = false;
    bool allowed = false;
  } landing;
  std::uint64_t ranges_length = 0;  ///< of the peer's write whose ranges are coming
  std::size_t puts_announced = 0;   ///< of this side: later messages wait until they have landed
  std::size_t reads = 0;            ///< of this side, begun and not complete
  std::size_t lands = 0;            ///< large writes of the peer that are being pulled
  std::size_t atomic_parts = 0;     ///< of this side, posted and not answered
  List<SendRequest, &SendRequest::member> serving;  ///< answers to the peer's reads and atomics
  std::size_t serves = 0;                           ///< how many

  // What has been pulled from it (pull_budget.h).
  std::size_t pulled = 0;     ///< bytes asked for and not arrived
  std::size_t brought = 0;    ///< of that, since the budget looked last
  bool pull_asked = false;    ///< something was asked for since
  bool pull_stalled = false;  ///< it brings too little: its share is lent to others
  Hook<Channel> pulls;

  std::size_t streamed = 0;  ///< bytes of what was asked for that have gone
  bool bulk_next = false;    ///< some of it goes before the next long message
  bool farewell = false;     ///< the peer has closed in peace
  bool busy = false;         ///< in Messenger's list of channels with something left to send
  bool spoken = false;       ///< in Messenger's list of channels that were told something
  void* owner = nullptr;     ///< the engine's peer

  /// True if something cannot end before the peer has said something.
  bool waits() const {
    return !sends.empty() || !receives.empty() || assembling != nullptr || assembling_unexpected != nullptr;
  }
  bool allows_eager(std::size_t length) const {
    return length <= eager_max && (length <= kAlwaysEager || length <= carrier->eager_limit());
  }
  bool has_work() const { return !waiting.empty() || !streaming.empty() || !control.empty(); }
};

}  // namespace cluster::protocol
