// The state that all parts of one endpoint's protocol share: settings, counters, bindings, and the interface
// to the table of peers. Messenger owns this state.
#pragma once

#include "base/counters.h"
#include "protocol/channel.h"
#include "protocol/completion.h"
#include "protocol/region_table.h"

namespace cluster::protocol {

/// The protocol's view of the table of peers.
class AddressHandles {
 public:
  virtual ~AddressHandles() = default;
  /// Returns the fi_addr of the channel's peer, or kAddrNotAvail.
  virtual std::uint64_t handle_of(const Channel& channel) = 0;
  /// Returns what completions report as the source of the peer's messages (FI_SOURCE). This is the user
  /// identifier of the peer, if the address vector has one. Otherwise it is handle_of(), or kAddrNotAvail if
  /// the application requires user identifiers.
  virtual std::uint64_t source_of(const Channel& channel) { return handle_of(channel); }
  /// Returns true if the peer is in the address vector, or if a transport vouches for the peer. For example,
  /// transports vouch for processes of the same user on this node, and for confirmed siblings of members. A
  /// process of the same user needs no permission: the kernel lets it access this process's memory anyway.
  virtual bool is_member(const Channel& channel) = 0;
  /// Marks the peer as lost, because there is no memory for a segment to it.
  virtual void lose(const Channel&) {}
};

inline constexpr std::size_t kEagerCredit = 2048 * 1024;
inline constexpr std::size_t kPullWindow = 1024 * 1024;
/// The largest number of responses to all peers that wait for space in a carrier. It is half the size of the
/// pool of requests. Therefore operations of this side always find a free request.
inline constexpr std::size_t kResponsesOfAllMax = std::size_t{1} << 20;

struct MessengerSettings {
  std::size_t tx_requests_max = 4096;  ///< with so many operations in progress, calls return -FI_EAGAIN
  /// The eager credit of one sender, in bytes. An eager message in the store of unexpected messages uses up
  /// its length and kMessageCharge of this credit.
  std::size_t eager_credit = kEagerCredit;
  /// The number of messages that may wait for a receive. At this limit, further messages stay with their
  /// carriers (matcher.h).
  std::size_t unexpected_max = 1024 * 1024;
  /// The limit that holds instead of unexpected_max for messages from a peer for which this side waits.
  std::size_t unexpected_hard_max = 2 * 1024 * 1024;
  std::size_t unexpected_bytes_max = std::size_t{2} << 30;
  std::size_t responses_max = kResponsesOfAllMax;  ///< waiting responses to reads and atomics of all peers
  /// The largest size of each of the two pull budgets, in bytes (pull_budget.h).
  std::size_t pull_window = kPullWindow;
};

struct Context {
  const MessengerSettings settings;
  Counters& counters;
  AddressHandles& handles;
  EndpointBindings bindings{};

  /// Counts a segment that no correct peer sends. The caller must drop the segment.
  void refuse_segment() const { ++counters.refused_segment; }
  /// Returns true if the peer may use this key. Either the peer is a member (is_member()), or the provider
  /// has drawn the key at random (FI_MR_BASIC). A peer can learn a random key only from the application.
  bool may_access(const Channel& channel, std::uint64_t key) const {
    return bindings.regions != nullptr && (handles.is_member(channel) || bindings.regions->drawn(key));
  }
  /// Counts a remote access that is not allowed. `of_peer`: the number of the peer's refused accesses, which
  /// is incremented too.
  void refuse_access(std::size_t& of_peer) const {
    ++counters.refused_access;
    ++of_peer;
  }
};

}  // namespace cluster::protocol
