// What all parts of one endpoint's protocol refer to: settings, counters, where completions go, the handles
// of source addresses, and which peers may reach registered memory. Owned by Messenger.
#pragma once

#include "base/counters.h"
#include "protocol/channel.h"
#include "protocol/completion.h"
#include "protocol/region_table.h"

namespace cluster::protocol {

/// What the protocol asks the table of peers: the source address of messages, for endpoints that want it (FI_SOURCE).
class AddressHandles {
 public:
  virtual ~AddressHandles() = default;
  /// The fi_addr of a channel's peer, or kAddrNotAvail.
  virtual std::uint64_t handle_of(const Channel& channel) = 0;
  /// True if the peer is in the address vector, or is a process of this user on this node, which the kernel
  /// lets reach this memory in any case.
  virtual bool is_member(const Channel& channel) = 0;
  /// There is no memory for what the peer is owed: it is about to be lost.
  virtual void lose(const Channel&) {}
};

inline constexpr std::size_t kEagerCredit = 2048 * 1024;
inline constexpr std::size_t kPullWindow = 1024 * 1024;
/// Half of what the pool of requests has: this side's own operations always find a place.
inline constexpr std::size_t kResponsesOfAllMax = std::size_t{1} << 20;

struct MessengerSettings {
  std::size_t tx_requests_max = 4096;        ///< operations under way before -FI_EAGAIN
  std::size_t eager_credit = kEagerCredit;   ///< eager bytes, charges included, that one sender may have here
  std::size_t unexpected_max = 1024 * 1024;  ///< messages that wait for their receive; then senders wait
  std::size_t unexpected_hard_max = 2 * 1024 * 1024;  ///< messages, with those of peers that are waited for
  std::size_t unexpected_bytes_max = std::size_t{2} << 30;
  std::size_t responses_max = kResponsesOfAllMax;  ///< to reads and atomics of all peers, that wait
  std::size_t pull_window = kPullWindow;           ///< bytes pulled and not arrived yet, over all senders
};

struct Context {
  const MessengerSettings settings;
  Counters& counters;
  AddressHandles& handles;
  EndpointBindings bindings{};

  /// A segment that no correct peer sends: it is counted and dropped.
  void refuse_segment() const { ++counters.refused_segment; }
  /// Whether the peer may reach memory by this key at all: it is in the address vector, or the key is one that
  /// the provider has drawn (FI_MR_BASIC), which a peer has from the application alone.
  bool may_access(const Channel& channel, std::uint64_t key) const {
    return bindings.regions != nullptr && (handles.is_member(channel) || bindings.regions->drawn(key));
  }
  /// A remote access that is not allowed; `of_peer` counts those of its peer.
  void refuse_access(std::size_t& of_peer) const {
    ++counters.refused_access;
    ++of_peer;
  }
};

}  // namespace cluster::protocol
