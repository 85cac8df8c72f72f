// What all parts of one endpoint's protocol refer to: settings, counters, where completions go, and the
// handles of source addresses. Owned by Messenger.
#pragma once

#include "base/counters.h"
#include "protocol/completion.h"

namespace cluster::protocol {

struct Channel;

/// Finds the source address of messages, for endpoints that want it (FI_SOURCE).
class AddressHandles {
 public:
  virtual ~AddressHandles() = default;
  /// The fi_addr of a channel's peer, or kAddrNotAvail.
  virtual std::uint64_t handle_of(const Channel& channel) = 0;
};

inline constexpr std::size_t kEagerCredit = 2048 * 1024;
inline constexpr std::size_t kPullWindow = 1024 * 1024;

struct MessengerSettings {
  std::size_t tx_requests_max = 4096;        ///< operations under way before -FI_EAGAIN
  std::size_t eager_credit = kEagerCredit;   ///< eager bytes, charges included, that one sender may have here
  std::size_t unexpected_max = 1024 * 1024;  ///< messages that wait for their receive; then senders wait
  std::size_t unexpected_hard_max = 2 * 1024 * 1024;  ///< messages, with those of peers that are waited for
  std::size_t unexpected_bytes_max = std::size_t{2} << 30;
  std::size_t pull_window = kPullWindow;  ///< bytes pulled and not arrived yet, over all senders
};

struct Context {
  const MessengerSettings settings;
  Counters& counters;
  AddressHandles& handles;
  EndpointBindings bindings{};

  /// A segment that no correct peer sends: it is counted and dropped.
  void refuse_segment() const { ++counters.refused_segment; }
};

}  // namespace cluster::protocol
