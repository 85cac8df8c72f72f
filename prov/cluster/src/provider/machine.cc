#include "provider/machine.h"

#include <rdma/fi_errno.h>

#include <algorithm>

#include "api/sockaddr_io.h"
#include "os/descriptor.h"
#include "os/keep_alive_responder.h"
#include "os/progress_thread.h"
#include "os/secret_memory.h"
#include "os/tcp_probe.h"
#include "os/udp_link.h"
#include "os/verbs_reader.h"
#include "provider/addressing.h"
#include "provider/rail_opener.h"
#include "provider/report_server.h"
#include "relay/keep_alive_answer.h"
#include "relay/relayed_link.h"
#include "seal/group_seal.h"
#include "seal/sealed_link.h"
#include "shm/local_listener.h"
#include "shm/peer_regions.h"
#include "shm/region_directory.h"
#include "verbs/verbs_transport.h"

namespace cluster::provider {
namespace {

/// If fewer descriptors than this are free after an endpoint was opened, the provider logs a warning. The
/// endpoint will need one descriptor for each peer on the same node.
constexpr std::size_t kSpareDescriptors = 8;

/// Returns a text with " name=value" for each counter that is not 0. If all counters are 0, says that the
/// endpoint was not used.
std::string text_of(const Counters& counters) {
  std::string text;
  counters.each([&text](const char* name, std::uint64_t value, const char*) {
    if (value == 0) return;
    text.append(" ").append(name).append("=").append(std::to_string(value));
  });
  return text.empty() ? " it was not used" : text;
}

std::string joined(const std::vector<std::string>& words) {
  std::string text;
  for (const std::string& word : words) text.append(text.empty() ? "" : ", ").append(word);
  return text;
}

/// The objects that must exist as long as an engine. The destructor logs the engine's counters.
struct EngineResources {
  EngineResources(const SocketAddress& engine_name, Log& to) : name(engine_name), log(to) {}
  ~EngineResources() {
    // Calls write(), because info() would truncate such a long line.
    if (log.enabled(LogLevel::info))
      log.write(LogLevel::info, ("endpoint " + name.text() + " closed:" + text_of(counters)).c_str());
  }
  EngineResources(const EngineResources&) = delete;
  EngineResources& operator=(const EngineResources&) = delete;

  Counters counters;
  SocketAddress name;
  Log& log;
  std::vector<std::shared_ptr<void>> keep_alive_responders;  ///< one for each rail
  std::shared_ptr<void> keys;                                ///< the handle of the keys in EndpointKeys
  std::shared_ptr<RelayServer> relay;                        ///< the relay of this process, or null
};

/// Registers an engine and its report server as clients of the progress thread. The members are destroyed in
/// reverse order, so the thread stops calling the report server before the server is destroyed.
struct BackgroundClients {
  std::shared_ptr<void> engine;
  std::unique_ptr<ReportServer> report_server;
  std::shared_ptr<void> report;
};

/// Returns true if the user permits processes on this node to read and write each other's memory.
bool reaches_memory(const transport::EngineSettings& settings) {
  return settings.shm && settings.single_copy;
}

/// Opens the listener for peers on this node. If this endpoint cannot use shared memory, returns null and
/// sets `reason` to the cause.
std::unique_ptr<shm::LocalListener> open_shm(const SocketAddress& name, std::uint64_t epoch,
                                             engine::EndpointType type,
                                             const transport::EngineSettings& settings,
                                             const KeyFindings& findings, const Environment& environment,
                                             std::string& reason) {
  if (type == engine::EndpointType::dgram) {
    reason = "datagram endpoints use the network only";
    return nullptr;
  }
  if (!settings.shm) {
    reason = "FI_CLUSTER_SHM=no";
    return nullptr;
  }
  const shm::ShmSettings rings{.ring_bytes = settings.shm_ring_bytes,
                               .single_copy = settings.single_copy,
                               .keys = findings.job_keys()};
  return shm::open_listener(name, epoch, rings, environment, reason);
}

/// Returns the function that answers keep-alives. Like all frames of this endpoint, the answers are sealed if
/// there is a key. Otherwise they carry a checksum.
os::KeepAliveAnswerer keep_alive_answerer(const std::optional<seal::Credentials>& credentials,
                                          const SocketAddress& name) {
  if (!credentials) return os::answer_plain_keep_alive;
  return [credentials = *credentials, name](ConstBytes frame, const SocketAddress& asked, Bytes answer) {
    return relay::answer_keep_alive(credentials, frame, name, asked, answer);
  };
}

/// Returns an epoch derived from the real time. Therefore each incarnation of an address has a larger epoch
/// than the incarnation before, even if the process or the node has restarted. This does not hold if the
/// clock was set back (docs/protocol.md).
std::uint64_t epoch_of(Clock& clock) {
  return static_cast<std::uint64_t>((clock.now().time_since_epoch() + clock.realtime_offset()).count());
}

std::unique_ptr<link::Link> seal_link(std::unique_ptr<link::Link> link, const KeyFindings& keys,
                                      const OpenedRails& rails, const Environment& environment) {
  environment.log.info(
      "endpoint %s: frames are %s with the key from %s", rails.ports.front()->name().text().c_str(),
      keys.credentials->mode == seal::Mode::encrypt ? "encrypted" : "authenticated", keys.source.c_str());
  std::vector<SocketAddress> addresses;
  for (const auto& port : rails.ports) addresses.push_back(port->name());
  return std::make_unique<seal::SealedLink>(std::move(link), *keys.credentials, std::move(addresses),
                                            environment);
}

/// Returns the link, below the seal, that also uses these relays.
std::unique_ptr<link::Link> relay_link(std::unique_ptr<link::Link> link, const KeyFindings& keys,
                                       const OpenedRails& rails, std::vector<SocketAddress> relays,
                                       const Environment& environment) {
  relay::RelayedSetup setup{*keys.credentials, rails.ports.front()->name(),
                            static_cast<std::uint8_t>(rails.ports.size()), std::move(relays),
                            relay::kRejoinAfter};
  return std::make_unique<relay::RelayedLink>(std::move(link), std::move(setup), environment);
}

/// Returns the factories of further transports in the order of preference. The transports rank after shared
/// memory and before the network. A new transport adds its factory here. The factory captures the resources
/// of the host that the transport needs. Not inlined, because its objects would otherwise take stack in
/// build_engine().
[[gnu::noinline]] std::vector<engine::MakeTransport> further_transports(const OpenedRails& rails,
                                                                        const Options& options) {
  std::vector<engine::MakeTransport> made;
  if (!rails.readers.empty()) {
    std::vector<link::OpenReadDevice> devices;
    for (const InterfaceAddress& place : rails.readers) {
      devices.emplace_back([place, library = options.text(Options::Name::test_verbs)](std::string& reason) {
        return os::open_verbs_reader(library, place.interface, place.address, gid_prefix_bits(place), reason);
      });
    }
    made.emplace_back([devices](const transport::TransportContext& context) {
      return std::make_unique<verbs::VerbsTransport>(context, devices);
    });
  }
  return made;
}

std::unique_ptr<link::MulticastJoiner> open_multicast(const std::shared_ptr<os::UdpPort>& port,
                                                      const InterfaceAddress& place, const KeyFindings& keys,
                                                      const Environment& environment) {
  std::unique_ptr<link::MulticastJoiner> plain =
      os::open_group_joiner(port, place.interface.index, environment);
  if (!keys.credentials) return plain;
  return std::make_unique<seal::SealedGroups>(std::move(plain), *keys.credentials, port->name(), environment);
}

}  // namespace

/// Returns the address at which an endpoint opens, or null after a warning. Not inline: the filter should not
/// stay on the stack while the engine is built.
[[gnu::noinline]] const InterfaceAddress* Machine::choose_place(const std::vector<InterfaceAddress>& places,
                                                                const SocketAddress& wanted, int& error) {
  AddressFilter filter;
  filter.interface = options_.text(Options::Name::iface);
  filter.family = wanted.family();
  filter.source = wanted;
  const InterfaceAddress* const place = choose_address(places, filter);
  if (place != nullptr) return place;
  log_.warn("cannot open an endpoint at %s: %s", wanted.empty() ? "any address" : wanted.text().c_str(),
            no_address_reason(filter, places, error).c_str());
  if (error == 0) error = FI_EADDRNOTAVAIL;
  return nullptr;
}

std::unique_ptr<engine::Engine> Machine::build_engine(const api::EngineRequest& request, int& error) {
  os::raise_descriptor_limit();
  os::reserve_descriptor_table();  // like register_process_fence() below, before the first thread
  const std::vector<InterfaceAddress> places = list_interface_addresses(request.wanted, error);
  const InterfaceAddress* const place = choose_place(places, request.wanted, error);
  if (place == nullptr) return nullptr;
  const KeyFindings keys = keys_.find(request.auth_key);
  if (!keys.error.empty()) {
    log_.warn("cannot open an endpoint: %s", keys.error.c_str());
    error = FI_EACCES;
    return nullptr;
  }
  const std::shared_ptr<os::UdpPort> port =
      open_port(*place, request.wanted.port(), options_.ports(), log_, error);
  if (port == nullptr) return nullptr;
  const SocketAddress name = port->name();
  auto resources = std::make_shared<EngineResources>(name, log_);
  // This call comes before the provider starts its first thread. The kernel registers a process without
  // waiting while the process has only one thread.
  os::register_process_fence();
  const Environment environment{clock_, random_, log_, resources->counters, fence()};
  const bool sessions = request.type == engine::EndpointType::rdm;
  OpenedRails rails;
  if (!add_rail(*place, port, options_, environment, sessions, rails)) {
    error = FI_EOPNOTSUPP;
    return nullptr;
  }
  if (sessions) add_further_rails(places, *place, options_, environment, rails);
  if (sessions && !add_verbs_rails(options_, keys.credentials.has_value(), environment, rails)) {
    error = FI_EOPNOTSUPP;
    return nullptr;
  }
  for (const auto& each : rails.ports) {
    resources->keep_alive_responders.push_back(
        os::start_keep_alive_responder(each, log_, keep_alive_answerer(keys.credentials, name)));
  }
  transport::EngineSettings settings = options_.settings();
  if (request.collectives)
    settings.ack_delay = rails.ports.size() > 1 ? reliability::kAckDelayOfRails : reliability::kAckDelayLate;
  settings.device_reads = !rails.readers.empty();
  const std::uint64_t epoch = epoch_of(clock_);
  std::string no_shm_reason;
  resources->keys = endpoint_keys_.add(name, keys.job_keys());
  auto shm = open_shm(name, epoch, request.type, settings, keys, environment, no_shm_reason);
  std::unique_ptr<link::Link> link = rails.take_link();
  std::vector<SocketAddress> relays = find_relays(name, keys);
  if (!relays.empty()) link = relay_link(std::move(link), keys, rails, std::move(relays), environment);
  if (keys.credentials) link = seal_link(std::move(link), keys, rails, environment);
  resources->relay = start_relay(keys);
  const EndpointSetup setup{name,
                            rails.interface_names(),
                            link->name(),
                            rails.not_packet_reason,
                            link->frame_max(),
                            shm != nullptr,
                            no_shm_reason,
                            !sessions,
                            rails.rings,
                            rails.verbs};
  log_.info("endpoint %s on %s: %s link, frames of at most %zu bytes, shared memory %s%s",
            name.text().c_str(), joined(setup.interfaces).c_str(), link->name(), link->frame_max(),
            setup.shm ? "on" : "off: ", setup.shm ? "" : no_shm_reason.c_str());
  std::unique_ptr<shm::RegionConnector> region_connector;
  if (sessions && reaches_memory(settings))
    region_connector = std::make_unique<shm::PeerRegionConnector>(random_, log_, keys.job_keys());
  std::unique_ptr<link::ProcessProbe> probe = sessions ? os::TcpProbe::open(name, log_) : nullptr;
  auto engine = std::make_unique<engine::Engine>(
      engine::EngineParts{environment, settings, name, epoch, std::move(link), std::move(shm),
                          std::move(resources), request.type, std::move(rails.rails), std::move(probe),
                          std::move(region_connector), open_multicast(port, *place, keys, environment),
                          request.roster, request.memory, further_transports(rails, options_)});
  engine->set_progress_client(run_in_background(*engine, setup));
  warn_if_few_descriptors(name);
  return engine;
}

/// Returns the addresses of the relays that the endpoint with this name may use. Logs a warning for each
/// relay that it cannot use.
std::vector<SocketAddress> Machine::find_relays(const SocketAddress& name, const KeyFindings& keys) {
  const std::string& text = options_.text(Options::Name::relays);
  std::vector<SocketAddress> relays;
  if (text.empty()) return relays;
  if (!keys.credentials) {
    log_.warn(
        "FI_CLUSTER_RELAYS has no effect, because relays serve only endpoints with a key (set "
        "FI_CLUSTER_KEY_FILE)");
    return relays;
  }
  for (const RelayName& each : parse_relays(text)) {
    const SocketAddress relay = resolve(each.host.c_str(), each.port.c_str(), name.family());
    if (relay.family() == name.family() && relay.port() != 0) {
      if (std::ranges::find(relays, relay) == relays.end()) relays.push_back(relay);
    } else {
      log_.warn(
          "endpoint %s cannot use the relay %s of FI_CLUSTER_RELAYS: it has no address of the endpoint's "
          "address family",
          name.text().c_str(), each.host.c_str());
    }
  }
  return relays;
}

/// Returns the relay of this process, if the user wants one. It runs as long as an endpoint of this process
/// exists.
std::shared_ptr<RelayServer> Machine::start_relay(const KeyFindings& keys) {
  if (!options_.boolean(Options::Name::relay)) return nullptr;
  const std::lock_guard guard(relay_lock_);
  std::shared_ptr<RelayServer> server = relay_.lock();
  if (server != nullptr) return server;
  std::string reason = "relays need a key (set FI_CLUSTER_KEY_FILE)";
  int error = 0;
  if (keys.credentials) {
    server =
        RelayServer::open({relay::relay_keys(keys.credentials->keys)}, list_interface_addresses({}, error),
                          kRelayPort, clock_, random_, log_, reason);
  }
  if (server == nullptr || !server->run_in_background(reason)) {
    log_.warn("this process is no relay, although FI_CLUSTER_RELAY is set: %s", reason.c_str());
    return nullptr;
  }
  std::vector<std::string> addresses;
  for (const SocketAddress& each : server->addresses()) addresses.push_back(each.text());
  log_.info("this process is a relay of its job at %s", joined(addresses).c_str());
  relay_ = server;
  return server;
}

/// Logs this warning at most once in a process.
void Machine::warn_if_few_descriptors(const SocketAddress& opened) {
  if (os::can_open(kSpareDescriptors) || few_descriptors_.exchange(true)) return;
  log_.warn(
      "endpoint %s: this process has almost no free file descriptors, so shared memory or keep-alives may "
      "not work (raise the hard limit of open files, \"ulimit -Hn\")",
      opened.text().c_str());
}

std::unique_ptr<protocol::RegionOffers> Machine::open_region_offers() {
  if (!reaches_memory(options_.settings())) return nullptr;
  return std::make_unique<shm::RegionDirectory>(
      clock_, random_, log_, [this](const SocketAddress& endpoint) { return endpoint_keys_.of(endpoint); });
}

/// Makes the progress thread run the engine, and answer cluster-info's requests about the engine, until the
/// returned handle is destroyed. Returns null if there is no progress thread.
std::shared_ptr<void> Machine::run_in_background(engine::Engine& engine, const EndpointSetup& setup) {
  auto clients = std::make_shared<BackgroundClients>();
  int error = 0;
  clients->engine = os::start_progress_client([&engine] { return engine.run_in_background(); }, error);
  if (clients->engine == nullptr) {
    log_.warn(
        "this process has no progress thread (%s): peers wait while the application makes no libfabric call",
        (os::error_text(error) +
         (error == EAGAIN ? ": raise \"ulimit -u\", or pids.max of the job's cgroup" : ""))
            .c_str());
    return nullptr;
  }
  engine.set_progress_call([client = clients->engine.get()] { os::hurry_progress_client(client); });
  std::string reason;
  clients->report_server = ReportServer::open(
      setup.name,
      [this, &engine, setup](Report& report) {
        const std::optional<engine::EndpointStats> stats = engine.stats();
        if (!stats) return false;
        report_endpoint(setup, *stats, report);
        report_options(options_, report);
        return true;
      },
      reason);
  if (clients->report_server == nullptr) {
    log_.info("cluster-info cannot show endpoint %s: %s", setup.name.text().c_str(), reason.c_str());
    return clients;
  }
  ReportServer* const report_server = clients->report_server.get();
  clients->report = os::start_progress_client([report_server] { return report_server->serve(); }, error);
  return clients;
}

SocketAddress Machine::resolve(const char* node, const char* service, SocketAddress::Family family) {
  fi_info hints{};
  hints.addr_format = api::format_of_family(family);
  Addresses addresses;
  std::string reason;
  if (read_addresses(node, service, 0, &hints, addresses, reason) != 0) log_.info("%s", reason.c_str());
  return addresses.destination;
}

}  // namespace cluster::provider
