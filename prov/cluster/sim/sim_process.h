// One process of a host, from its start to its end: an application, its engine, and the links and queues
// between them. Everything that the engine allocates is charged to the host's meter.
//
// The process checks each turn of its engine: the engine must refuse a frame that names a session of this
// process and comes from another incarnation than the session's peer.
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

/// How a host behaves. This is drawn once for a run.
struct HostProfile {
  /// Idle sessions send nothing, because the network has to fall silent at the end.
  HostProfile() { settings.refresh_interval = Duration{0}; }

  transport::EngineSettings settings;
  std::size_t frame_max = 1472;
  bool ethertype = false;               ///< its links have an EtherType path
  bool device = false;                  ///< it has an RDMA device
  std::size_t device_frame_max = 1024;  ///< the longest frame that its queue pair for datagrams carries
  bool prefers_device = false;          ///< frames take the device while that works
  bool kernel_answers = false;          ///< its kernel says whether its process exists
  Duration poll_gap = 300ns;            ///< longest time between two polls of a waiting application
  Duration frame_cost = 100ns;          ///< time to receive or send a frame
  Duration clock_ahead{0};
  Duration linger = 2s;                          ///< longest wait of a leaving process until it owes nothing
  std::optional<seal::Credentials> credentials;  ///< if set, it seals its frames
  std::vector<SocketAddress> relays;             ///< that its processes use
};

/// What all hosts have in common.
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
  /// One turn of the library's progress thread.
  void run_progress_thread();
  /// The application reads its completion queues. Returns true if there was a completion.
  bool read_completions();
  /// Returns true if an operation has succeeded since the start, or since clear_success().
  bool has_succeeded() const { return succeeded_; }
  void clear_success() { succeeded_ = false; }

  /// Returns true if frames wait in a link.
  bool has_frames() const;
  SimLink& link(RailNumber rail) { return *links_[rail]; }
  bool has_link(RailNumber rail) const { return rail < links_.size(); }
  /// The process is being killed. Nothing that it still sends reaches the network.
  void disconnect();
  /// Ends the engine. Throws if the library has written to buffers that it had already given back.
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
  std::vector<SimLink*> links_;  ///< they belong to the engine; by rail
  std::uint64_t polls_ = 0;
  ObservedLink* observed_ = nullptr;  ///< the link above links_
  std::unique_ptr<Application> application_;
  /// Declared behind the queues and counters to which it writes, so that it is destroyed before them.
  std::unique_ptr<engine::Engine> engine_;
  bool succeeded_ = false;
};

}  // namespace cluster::sim
