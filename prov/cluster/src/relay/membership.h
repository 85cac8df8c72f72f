// The membership of this endpoint at one relay: the endpoint's side of the exchange in wire/relay_frame.h.
// There is no timer. The owner calls ask() whenever it needs the relay, and ask() limits the requests.
//
// The endpoint does not know over which of its links it reaches the relay. So each request leaves over all of
// them, and the endpoint accepts the first offer.
//
// A relay that has begun anew does not know the endpoint any more, and a relay knows a source that a router
// may have changed. Then frames through the relay get lost, and the owner asks again. Until the answer comes,
// the endpoint keeps its former number.
#pragma once

#include <cstdint>

#include "base/environment.h"
#include "link/link.h"
#include "relay/relay_key.h"

namespace cluster::relay {

class Membership {
 public:
  /// `relay`: the address of the relay. `keys` must outlive the object.
  Membership(const SocketAddress& relay, const JobRelayKeys& keys) : relay_(relay), keys_(&keys) {}

  const SocketAddress& relay() const { return relay_; }
  bool joined() const { return member_ != 0; }
  /// Returns the number that the relay has given to this endpoint.
  std::uint32_t member() const { return member_; }
  /// Returns the path to the relay.
  const link::Path& path() const { return path_; }
  /// Returns when the relay has last answered a join.
  Time joined_at() const { return joined_at_; }
  /// Returns how many requests have left since then.
  unsigned asks() const { return asks_; }

  /// Asks the relay to make the endpoint with this name a member, unless the last request left a short time
  /// ago. `links`: how many links `link` has.
  void ask(Time now, const SocketAddress& name, std::uint8_t links, link::Link& link, Random& random);
  /// Handles a frame from the relay. Returns true if the endpoint is a member now and was none before.
  bool on_frame(Time now, ConstBytes frame, const link::Path& from, link::Link& link);
  /// The endpoint has another name now, so its former membership has no use.
  void leave() { *this = Membership(relay_, *keys_); }

 private:
  static constexpr Duration kAskIntervalMin = 50ms;
  static constexpr Duration kAskIntervalMax = 1s;

  SocketAddress relay_;
  const JobRelayKeys* keys_;
  link::Path path_;
  std::uint32_t member_ = 0;
  std::uint64_t number_ = 0;  ///< number of the last request while it is unanswered, else 0
  bool offered_ = false;      ///< the relay has answered this request with an offer
  unsigned asks_ = 0;
  Duration ask_interval_{};
  Time next_ask_{};
  Time joined_at_{};
};

}  // namespace cluster::relay
