// One process of a host, from its start to its end: an application, the engine that it uses, the links and
// queues between them. Everything that the engine allocates is booked to the host's memory meter.
//
// Whatever the engine reads of a session is checked here: a frame that names a session of this process and
// comes from another incarnation than the session's peer must be refused.
#pragma once

#include <memory>
#include <optional>
#include <vector>

#include "engine/engine.h"
#include "protocol/completion.h"
#include "protocol/region_table.h"
#include "seal/job_key.h"
#include "sim/allocation_meter.h"
#include "sim/application.h"
#include "sim/observed_link.h"
#include "sim/session_peers.h"
#include "sim/sim_clock.h"
#include "sim/sim_device.h"
#include "sim/sim_link.h"
#include "sim/sim_network.h"
#include "sim/sim_regions.h"
#include "transport/address_table.h"

namespace cluster::sim {

/// How a host behaves; drawn once.
struct HostProfile {
  /// Idle sessions send nothing, because the network has to fall silent at the end.
  HostProfile() { settings.refresh_interval = Duration{0}; }

  transport::EngineSettings settings;
  std::size_t frame_max = 1472;
  bool ethertype = false;       ///< its links have one
  bool device = false;          ///< it has an RDMA device
  bool kernel_answers = false;  ///< says whether its process exists
  Duration poll_gap = 300ns;    ///< longest time between two polls of a waiting application
  Duration frame_cost = 100ns;  ///< of taking in or sending a frame
  Duration clock_ahead{0};
  Duration linger = 2s;                          ///< how long a process that leaves waits for what it owes
  std::optional<seal::Credentials> credentials;  ///< it seals
};

/// What hosts have in common.
struct SharedParts {
  EventQueue& event_queue;
  SimNetwork& network;
  Oracle& oracle;
  RmaOracle& rma;
  AtomicOracle& atomics;
  SimRegions& regions;
  SimDevices& devices;
  Trace& trace;
  const transport::AddressTable& addresses;
  const WorkloadPlan& plan;
  std::uint32_t hosts;
  std::uint64_t seed;
};

class SimProcess {
 public:
  SimProcess(const SharedParts& shared, const HostProfile& profile, HostNumber host, std::uint64_t epoch,
             SimClock& clock, SeededRandom& engine_random, AllocationMeter& memory);
  ~SimProcess() { reachable_.set(host_, nullptr); }
  SimProcess(const SimProcess&) = delete;
  SimProcess& operator=(const SimProcess&) = delete;

  engine::Engine& engine() { return *engine_; }
  Application& application() { return *application_; }
  const Counters& counters() const { return counters_; }

  /// One turn of the engine.
  void poll();
  /// A turn of the library's own thread while the application is away.
  void run_progress_thread();
  /// The application reads its completion queues; true if there was anything.
  bool read_completions();
  /// True if an operation has succeeded since the start, or since clear_success().
  bool has_succeeded() const { return succeeded_; }
  void clear_success() { succeeded_ = false; }

  /// True if frames wait in a link.
  bool has_frames() const;
  SimLink& link(RailNumber rail) { return *links_[rail]; }
  bool has_link(RailNumber rail) const { return rail < links_.size(); }
  /// The process is killed: nothing that it still sends reaches the network.
  void disconnect();
  /// The engine ends; throws if the library has written to buffers that it had already given back.
  void close();

 private:
  class TraceLog final : public Log {
   public:
    TraceLog(Trace& trace, HostNumber host) : trace_(trace), host_(host) {}
    bool enabled(LogLevel) const override { return trace_.on(); }
    void write(LogLevel, const char* line) override;

   private:
    Trace& trace_;
    HostNumber host_;
  };

  std::unique_ptr<link::Link> make_link(const SharedParts& shared, const HostProfile& profile,
                                        std::uint32_t incarnation, const Environment& environment,
                                        std::vector<multipath::Rail>& rails);
  void check_wrong_peer_refused(std::uint64_t refused_before);

  HostNumber host_;
  SimRegions& reachable_;
  AllocationMeter& memory_;
  TraceLog log_;
  Counters counters_;
  SessionPeers session_peers_;
  protocol::CompletionQueue sends_;
  protocol::CompletionQueue receives_;
  protocol::RegionTable regions_;
  std::vector<SimLink*> links_;  ///< the engine's, by rail
  std::uint64_t polls_ = 0;
  ObservedLink* observed_ = nullptr;  ///< above them
  std::unique_ptr<Application> application_;
  std::unique_ptr<engine::Engine> engine_;  ///< behind the queues and counters that it writes to
  bool succeeded_ = false;
};

}  // namespace cluster::sim
