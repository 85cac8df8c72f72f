// Connections (FI_EP_MSG) on a simulated clock and network, judged by ConnectionOracle. Endpoints connect,
// accept, reject, exchange messages, shut down, close, and die. An address is soon used by the next
// endpoint. The tested objects are whole engines with their connections (src/connection). The simulation
// does what api/ does with a request: it opens an endpoint.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "sim/connection_host.h"
#include "sim/faults.h"
#include "sim/simulation.h"

namespace cluster::sim {

/// The workload of cluster-sim that consists of these runs. No other workload includes them.
inline constexpr const char* kConnectionWorkload = "connections";

class ConnectionSimulation final : public EventHandler {
 public:
  explicit ConnectionSimulation(const RunOptions& options);
  const std::string& description() const { return description_; }
  RunReport run();

 private:
  enum class What : std::uint8_t { dial, answer, accept, kill, close_passive, pause, cut, join };

  void draw(const RunOptions& options);
  ConnectionScript draw_script();
  void plan(Duration after, What what, std::uint64_t detail = 0);
  void handle_event(std::uint64_t note) override;
  void dial();
  void answer();
  void accept(ConnectionOracle::Attempt attempt);
  void kill();
  void cut();
  ConnectionHost* free_host(bool for_request);
  void run_for(Duration duration);
  void listen_again();
  void finish();
  template <typename Reached>
  void run_until(Duration limit, const char* awaited, Reached&& reached);

  SeededRandom random_;
  std::string description_;
  Severity severity_ = Severity::none;
  HostNumber passives_ = 1;  ///< how many hosts listen; they are the first ones
  Duration horizon_{0};
  Duration peer_timeout_{0};
  bool finishing_ = false;
  EventQueue events_;
  Trace trace_{events_};
  std::unique_ptr<SimNetwork> network_;
  ConnectionOracle oracle_;
  std::vector<PendingRequest> requests_;
  std::vector<std::unique_ptr<ConnectionHost>> hosts_;
};

}  // namespace cluster::sim
