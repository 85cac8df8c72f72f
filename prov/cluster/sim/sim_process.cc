#include "sim/sim_process.h"

#include <algorithm>
#include <string>

#include "multipath/link_bundle.h"
#include "relay/relayed_link.h"
#include "seal/sealed_link.h"
#include "shm/local_listener.h"
#include "sim/sim_probe.h"
#include "verbs/verbs_transport.h"

namespace cluster::sim {
namespace {

constexpr std::uint64_t kStreamApplication = 4;
constexpr std::uint64_t kPollsPerFullTurn = 4;

}  // namespace

/// Writes what the engine logs into the trace.
void SimProcess::TraceLog::write(LogLevel, const char* line) {
  const AllocationMeter::Scope uncounted(nullptr);
  trace_.line("host %u says: %s", host_, line);
}

SimProcess::SimProcess(const SharedParts& shared, const HostProfile& profile, HostNumber host,
                       std::uint64_t epoch, SimClock& clock, SeededRandom& engine_random,
                       AllocationMeter& memory)
    : host_(host), reachable_(shared.regions), memory_(memory), log_(shared.trace, host) {
  const std::uint32_t incarnation = shared.oracle.incarnations().of(host);
  {
    const AllocationMeter::Scope scope(&memory_);
    std::vector<multipath::Rail> rails;
    const Environment environment{clock, engine_random, log_, counters_};
    std::unique_ptr<link::Link> link = make_link(shared, profile, incarnation, environment, rails);
    transport::EngineSettings settings = profile.settings;
    settings.device_reads = profile.device;
    std::vector<engine::MakeTransport> further;
    if (profile.device) {
      further.emplace_back([open = shared.devices.opener(host)](const transport::TransportContext& context) {
        return std::make_unique<verbs::VerbsTransport>(context, std::vector{open});
      });
    }
    engine_ = std::make_unique<engine::Engine>(engine::EngineParts{
        .environment = environment,
        .settings = settings,
        .name = address_of(host),
        .epoch = epoch,
        .link = std::move(link),
        .local_listener = nullptr,
        .resources = nullptr,
        .type = shared.plan.datagrams ? engine::EndpointType::dgram : engine::EndpointType::rdm,
        .rails = std::move(rails),
        .probe = std::make_unique<SimProbe>(shared.network, shared.oracle.incarnations(), host,
                                            profile.kernel_answers),
        .region_connector = shared.regions.connector(host),
        .roster = std::make_shared<const engine::EndpointRoster>(),
        .further_transports = std::move(further)});
    engine_->attach(shared.addresses,
                    {.tx_queue = &sends_, .rx_queue = &receives_, .regions = &regions_, .want_source = true});
  }
  reachable_.set(host, &regions_);
  application_ = std::make_unique<Application>(
      ApplicationEnvironment{*engine_,
                             regions_,
                             memory_,
                             shared.oracle,
                             shared.rma,
                             shared.atomics,
                             shared.trace,
                             shared.event_queue,
                             shared.plan,
                             {observed_->frame_max(), profile.settings.net_eager_max},
                             host,
                             shared.hosts,
                             incarnation},
      SeededRandom::stream(shared.seed, kStreamApplication, std::uint64_t{incarnation} << 32 | host));
}

/// Makes the link of an engine. As in an endpoint, several interfaces form a bundle. Datagram endpoints use
/// one interface.
std::unique_ptr<link::Link> SimProcess::make_link(const SharedParts& shared, const HostProfile& profile,
                                                  std::uint32_t incarnation, const Environment& environment,
                                                  std::vector<multipath::Rail>& rails) {
  std::vector<std::unique_ptr<link::Link>> links;
  std::vector<SocketAddress> addresses;
  const RailNumber used = shared.plan.datagrams ? 1 : shared.network.rails();
  for (RailNumber rail = 0; rail < used; ++rail) {
    auto link = std::make_unique<SimLink>(shared.network, host_, rail, incarnation, profile.frame_max,
                                          profile.ethertype);
    links_.push_back(link.get());
    links.push_back(std::move(link));
    addresses.push_back(address_of(host_, rail));
    rails.push_back({addresses.back(), kNetworkBits, "rail" + std::to_string(rail)});
  }
  const RailNumber devices = shared.network.device_rail();
  if (profile.device && shared.network.joins_devices() && !shared.network.port(host_, devices).down) {
    auto link = std::make_unique<SimLink>(shared.network, host_, devices, incarnation,
                                          profile.device_frame_max, false);
    links_.push_back(link.get());
    links.push_back(std::move(link));
    rails.push_back({shared.network.present_address(host_, devices), kGidBits, "device",
                     profile.device_frame_max, profile.prefers_device});
  }
  if (shared.plan.datagrams) rails.clear();
  std::unique_ptr<link::Link> link = links.size() == 1
                                         ? std::move(links.front())
                                         : std::make_unique<multipath::LinkBundle>(std::move(links));
  if (!profile.relays.empty()) {
    link = std::make_unique<relay::RelayedLink>(
        std::move(link),
        relay::RelayedSetup{*profile.credentials, addresses.front(), static_cast<std::uint8_t>(used),
                            profile.relays},
        environment);
  }
  if (profile.credentials) {
    link = std::make_unique<seal::SealedLink>(std::move(link), *profile.credentials, std::move(addresses),
                                              environment);
  }
  auto observed = std::make_unique<ObservedLink>(std::move(link), links_, shared.network, shared.oracle,
                                                 session_peers_, host_);
  observed_ = observed.get();
  return observed;
}

void SimProcess::poll() {
  const std::uint64_t refused_before = counters_.refused_stale;
  {
    const AllocationMeter::Scope scope(&memory_);
    // As with real applications, most turns may skip what was done a short time ago.
    ++polls_ % kPollsPerFullTurn == 0 ? engine_->poll() : engine_->try_poll();
  }
  check_wrong_peer_refused(refused_before);
}

/// Runs the progress thread once, and reads the completion queues. A real application would read them later,
/// but the oracle needs the completions as they come.
void SimProcess::run_progress_thread() {
  const std::uint64_t refused_before = counters_.refused_stale;
  {
    const AllocationMeter::Scope scope(&memory_);
    engine_->run_in_background();
  }
  check_wrong_peer_refused(refused_before);
  read_completions();
}

/// A frame of the wrong peer is read alone in a turn. So if the engine refused no frame in this turn, it
/// accepted that one.
void SimProcess::check_wrong_peer_refused(std::uint64_t refused_before) {
  if (!session_peers_.take_wrong_peer() || counters_.refused_stale > refused_before) return;
  throw SafetyFailure(
      "host " + std::to_string(host_) +
      " accepts a frame for a session of its own that is from another incarnation than the session's peer");
}

bool SimProcess::read_completions() {
  const auto all = [](const protocol::Completion&) { return true; };
  std::vector<protocol::Completion> sends;
  std::vector<protocol::Completion> receives;
  constexpr std::size_t everything = ~std::size_t{0};
  sends_.drain(everything, all, [&](const protocol::Completion& c) { sends.push_back(c); });
  receives_.drain(everything, all, [&](const protocol::Completion& c) { receives.push_back(c); });
  if (sends.empty() && receives.empty()) return false;
  succeeded_ = succeeded_ || std::any_of(sends.begin(), sends.end(), [](const protocol::Completion& c) {
                 return c.status == Status::ok;
               });
  for (const protocol::Completion& completion : receives) application_->complete(completion);
  for (const protocol::Completion& completion : sends) application_->complete(completion);
  return true;
}

bool SimProcess::has_frames() const {
  return observed_->has_frames() ||
         std::any_of(links_.begin(), links_.end(), [](const SimLink* link) { return link->has_frames(); });
}

void SimProcess::disconnect() {
  observed_->disconnect();
  for (SimLink* link : links_) link->disconnect();
}

void SimProcess::close() {
  reachable_.set(host_, nullptr);
  {
    const AllocationMeter::Scope scope(&memory_);
    engine_.reset();
  }
  application_->check_returned_buffers();
}

}  // namespace cluster::sim
