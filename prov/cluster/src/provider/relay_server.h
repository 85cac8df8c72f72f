// Runs a relay (relay/relay.h) in this process, on the progress thread. It has a UDP socket at the same port
// of each address of this node, so that it is found in each network that the node belongs to.
#pragma once

#include <memory>
#include <span>
#include <string>
#include <vector>

#include "base/environment.h"
#include "link/link.h"
#include "os/progress_thread.h"
#include "os/wait_set.h"
#include "provider/interface_addresses.h"
#include "relay/relay.h"

namespace cluster::provider {

/// The port of relays, unless somebody chooses another one.
inline constexpr std::uint16_t kRelayPort = 9227;

class RelayServer {
 public:
  /// Opens the sockets at those addresses of `places` that belong to no loopback interface. Returns null and
  /// sets `reason` if there is none, for example because another process of this node relays already.
  /// `clock`, `random` and `log` must outlive the server.
  static std::unique_ptr<RelayServer> open(std::vector<relay::JobRelayKeys> jobs,
                                           std::span<const InterfaceAddress> places, std::uint16_t port,
                                           Clock& clock, Random& random, Log& log, std::string& reason,
                                           const relay::Limits& limits = {});
  RelayServer(const RelayServer&) = delete;
  RelayServer& operator=(const RelayServer&) = delete;

  /// Makes the progress thread run the relay until the server is destroyed. Returns false and sets `reason`
  /// if there is no such thread.
  bool run_in_background(std::string& reason);
  /// Forwards what has arrived, and returns when to call again.
  os::NextWake serve();

  const std::vector<SocketAddress>& addresses() const { return addresses_; }
  const relay::Relay& relay() const { return *relay_; }

 private:
  static constexpr int kBurstsPerCall = 32;

  RelayServer(Clock& clock, Random& random, Log& log) : environment_{clock, random, log, counters_} {}

  Counters counters_;
  Environment environment_;
  std::vector<SocketAddress> addresses_;
  std::unique_ptr<link::Link> link_;
  std::unique_ptr<relay::Relay> relay_;
  std::unique_ptr<os::WaitSet> arrivals_;  ///< readable when frames wait
  std::shared_ptr<void> client_;
};

/// A relay as a user writes it: "name", "name:port", "[IPv6 address]:port", or an IP address.
struct RelayName {
  std::string host;
  std::string port;
};
/// Parses relays that are separated by commas.
std::vector<RelayName> parse_relays(std::string_view text);

}  // namespace cluster::provider
