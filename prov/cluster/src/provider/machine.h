// The real machine, put together: for every endpoint a port, a link and a shared-memory host on it,
// real time and real chance. What is handed to engines by reference lives here and is never
// destroyed: libfabric cleans up after the destructors of static objects have run.
#pragma once

#include <memory>
#include <mutex>
#include <span>
#include <string>
#include <vector>

#include "api/platform.h"
#include "multipath/address_pairing.h"
#include "os/processor_yield.h"
#include "os/system_clock.h"
#include "os/system_random.h"
#include "os/thread_fence.h"
#include "os/udp_port.h"
#include "provider/endpoint_report.h"
#include "provider/interface_addresses.h"
#include "provider/link_choice.h"
#include "provider/options.h"

namespace cluster::provider {

/// Counters of engines that have gone are used again, never freed: parts of an engine may still count
/// while it is being taken apart.
class CounterPool {
 public:
  Counters& take();
  void give_back(Counters& counters);

 private:
  std::mutex mutex_;
  std::vector<std::unique_ptr<Counters>> all_;
  std::vector<Counters*> free_;
};

class Machine final : public api::Platform {
 public:
  /// `log` and `options` outlive the machine.
  Machine(Log& log, const Options& options, std::uint32_t core_version)
      : log_(log), options_(options), core_version_(core_version) {}

  Log& log() override { return log_; }
  Clock& clock() override { return clock_; }
  std::uint64_t yield_processor() override { return os::timed_yield(); }
  void sleep_shortest() override { os::sleep_shortest(); }
  ThreadFence fence() override { return os::thread_fence(); }
  std::uint32_t core_version() const override { return core_version_; }
  std::unique_ptr<engine::Engine> build_engine(const SocketAddress& wanted, engine::EndpointType service,
                                               int& error) override;
  std::unique_ptr<engine::Sleeper> open_sleeper() override { return engine::Sleeper::open(); }
  SocketAddress resolve(const char* node, const char* service, SocketAddress::Family family) override;

 private:
  std::shared_ptr<os::UdpPort> open_port(const InterfaceAddress& place, const SocketAddress& wanted,
                                         int& error);
  /// What an endpoint stands on, rail by rail.
  struct RailParts {
    std::vector<std::shared_ptr<os::UdpPort>> ports;
    std::vector<std::unique_ptr<link::Link>> links;
    std::vector<multipath::Rail> rails;
    std::string why_link;  ///< the first is no packet link
    bool sessions = true;  ///< what is built there has some
  };
  void add_rails(std::span<const InterfaceAddress> places, const InterfaceAddress& named,
                 const Environment& environment, RailParts& ground);
  bool add_rail(const InterfaceAddress& place, std::shared_ptr<os::UdpPort> port,
                const Environment& environment, RailParts& ground);
  LinkChoice open_link(const std::shared_ptr<os::UdpPort>& port, const InterfaceAddress& place, bool sessions,
                       const Environment& environment);
  std::shared_ptr<void> attend(engine::Engine& engine, const EndpointSetup& setup);

  Log& log_;
  const Options& options_;
  std::uint32_t core_version_;
  os::SystemClock clock_;
  os::SystemRandom random_;
  CounterPool counters_;
};

}  // namespace cluster::provider
