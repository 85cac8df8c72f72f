// What all parts of one endpoint's protocol share: settings, counters, completion queues, the handles of
// source addresses, and which peers may access registered memory. Messenger owns it.
#pragma once

#include "base/counters.h"
#include "protocol/channel.h"
#include "protocol/completion.h"
#include "protocol/region_table.h"

namespace cluster::protocol {

/// The protocol's questions to the table of peers: the source address of messages (FI_SOURCE).
class AddressHandles {
 public:
  virtual ~AddressHandles() = default;
  /// Returns the fi_addr of the channel's peer, or kAddrNotAvail.
  virtual std::uint64_t handle_of(const Channel& channel) = 0;
  /// True if the peer is in the address vector, or is a process of this user on this node. The kernel lets
  /// such a process access this memory anyway.
  virtual bool is_member(const Channel& channel) = 0;
  /// Marks the peer as lost, because there is no memory for a segment to it.
  virtual void lose(const Channel&) {}
};

inline constexpr std::size_t kEagerCredit = 2048 * 1024;
inline constexpr std::size_t kPullWindow = 1024 * 1024;
/// Half of the pool of requests, so that operations of this side always find a place.
inline constexpr std::size_t kResponsesOfAllMax = std::size_t{1} << 20;

struct MessengerSettings {
  std::size_t tx_requests_max = 4096;  ///< operations in progress before -FI_EAGAIN
  /// Eager bytes, charges included, that one sender may have in this store.
  std::size_t eager_credit = kEagerCredit;
  /// Messages that may wait for their receive. Beyond this limit, senders wait.
  std::size_t unexpected_max = 1024 * 1024;
  /// The same limit, including messages of peers for which this side waits.
  std::size_t unexpected_hard_max = 2 * 1024 * 1024;
  std::size_t unexpected_bytes_max = std::size_t{2} << 30;
  std::size_t responses_max = kResponsesOfAllMax;  ///< waiting responses to reads and atomics of all peers
  /// Bytes requested from all senders that have not arrived yet.
  std::size_t pull_window = kPullWindow;
};

struct Context {
  const MessengerSettings settings;
  Counters& counters;
  AddressHandles& handles;
  EndpointBindings bindings{};

  /// Counts and drops a segment that no correct peer sends.
  void refuse_segment() const { ++counters.refused_segment; }
  /// True if the peer may use this key at all: it is in the address vector, or the provider has drawn the key
  /// (FI_MR_BASIC). A peer gets a drawn key only from the application.
  bool may_access(const Channel& channel, std::uint64_t key) const {
    return bindings.regions != nullptr && (handles.is_member(channel) || bindings.regions->drawn(key));
  }
  /// Counts a remote access that is not allowed. `of_peer` counts those of its peer.
  void refuse_access(std::size_t& of_peer) const {
    ++counters.refused_access;
    ++of_peer;
  }
};

}  // namespace cluster::protocol
