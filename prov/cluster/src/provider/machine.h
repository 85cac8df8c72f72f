// Implements api::Platform with the operating system: clock, random numbers, and for each endpoint the ports,
// the links and the listener for shared memory. Engines hold references to the Machine. The Machine is never
// destroyed, because applications may still close objects after the destructors of static objects have run.
#pragma once

#include <atomic>
#include <memory>
#include <mutex>
#include <unordered_map>
#include <vector>

#include "api/platform.h"
#include "os/process_fence.h"
#include "os/processor_load.h"
#include "os/system_clock.h"
#include "os/system_random.h"
#include "os/wait_set.h"
#include "provider/endpoint_report.h"
#include "provider/interface_addresses.h"
#include "provider/key_source.h"
#include "provider/options.h"
#include "provider/relay_server.h"
#include "seal/job_key.h"

namespace cluster::provider {

/// The keys of the endpoints of this process, by endpoint name. Objects that serve several endpoints, such as
/// the region directory of a domain (shm/region_directory.h), find the keys here. Any thread may call the
/// methods.
class EndpointKeys {
 public:
  /// Adds keys. They are removed when the returned handle is destroyed.
  std::shared_ptr<void> add(const SocketAddress& name, const seal::JobKeys& keys) {
    // The handle is created before the lock is taken. If shared_ptr has no memory for the handle, it calls
    // the deleter at once, and the deleter takes the lock, too. With the lock held, this would be a deadlock.
    std::shared_ptr<void> handle{this, [name](EndpointKeys* all) { all->remove(name); }};
    const std::lock_guard guard(lock_);
    keys_[name] = keys;
    return handle;
  }
  seal::JobKeys of(const SocketAddress& name) {
    const std::lock_guard guard(lock_);
    const auto found = keys_.find(name);
    return found != keys_.end() ? found->second : seal::JobKeys{};
  }

 private:
  void remove(const SocketAddress& name) {
    const std::lock_guard guard(lock_);
    keys_.erase(name);
  }

  std::mutex lock_;
  std::unordered_map<SocketAddress, seal::JobKeys, SocketAddressHash> keys_;
};

class Machine final : public api::Platform {
 public:
  /// `log` and `options` must outlive the machine. When the machine has derived the keys, it wipes the key
  /// text in `options`.
  Machine(Log& log, Options& options) : log_(log), options_(options), keys_(options) {}

  Log& log() override { return log_; }
  Clock& clock() override { return clock_; }
  Random& random() override { return random_; }
  std::uint64_t yield_processor() override { return os::timed_yield(); }
  unsigned threads_per_processor() override { return os::threads_per_processor(); }
  void sleep_shortest() override { os::sleep_shortest_cancellable(); }
  ThreadFence fence() override { return os::thread_fence(); }
  std::unique_ptr<engine::Engine> build_engine(const api::EngineRequest& request, int& error) override;
  std::unique_ptr<protocol::RegionOffers> open_region_offers() override;
  std::unique_ptr<engine::Sleeper> open_sleeper() override { return engine::Sleeper::open(); }
  SocketAddress resolve(const char* node, const char* service, SocketAddress::Family family) override;
  fi_info* copy_info(const fi_info& info) override { return fi_dupinfo(&info); }
  void free_info(fi_info* info) override { fi_freeinfo(info); }

 private:
  const InterfaceAddress* choose_place(const std::vector<InterfaceAddress>& places,
                                       const SocketAddress& wanted, int& error);
  std::vector<SocketAddress> find_relays(const SocketAddress& name, const KeyFindings& keys);
  std::shared_ptr<RelayServer> start_relay(const KeyFindings& keys);
  void warn_if_few_descriptors(const SocketAddress& opened);
  std::shared_ptr<void> run_in_background(engine::Engine& engine, const EndpointSetup& setup);

  Log& log_;
  const Options& options_;
  KeySource keys_;
  EndpointKeys endpoint_keys_;
  os::SystemClock clock_;
  os::SystemRandom random_;
  std::mutex relay_lock_;
  std::weak_ptr<RelayServer> relay_;          ///< the relay of this process
  std::atomic<bool> few_descriptors_{false};  ///< the warning about few descriptors has been logged
};

}  // namespace cluster::provider
