#include "provider/machine.h"

#include <rdma/fi_errno.h>

#include <cerrno>
#include <chrono>
#include <cstring>
#include <system_error>

#include "multipath/link_bundle.h"
#include "multipath/rail_choice.h"
#include "os/probe_responder.h"
#include "os/process_fence.h"
#include "os/progress_thread.h"
#include "provider/addressing.h"
#include "provider/endpoint_report.h"
#include "provider/report_server.h"
#include "shm/local_listener.h"

namespace cluster::provider {
namespace {

/// Everything that happened at all, as name=value.
std::string account(const Counters& counters) {
  std::string text;
  counters.each([&text](const char* name, std::uint64_t value, const char*) {
    if (value == 0) return;
    text.append(" ").append(name).append("=").append(std::to_string(value));
  });
  return text;
}

/// What an engine borrows and gives back at its end; its account goes to the log then.
struct EngineResources {
  EngineResources(CounterPool& from, const SocketAddress& name, Log& to)
      : pool(from), counters(from.take()), owner(name), log(to) {}
  ~EngineResources() {
    probe_responders.clear();
    if (log.enabled(LogLevel::info)) {
      // Past the formatting, which would cut so long a line.
      log.write(LogLevel::info, ("endpoint " + owner.text() + " ends:" + account(counters)).c_str());
    }
    pool.give_back(counters);
  }
  EngineResources(const EngineResources&) = delete;
  EngineResources& operator=(const EngineResources&) = delete;

  CounterPool& pool;
  Counters& counters;
  SocketAddress owner;
  Log& log;
  std::vector<std::shared_ptr<void>> probe_responders;  ///< one for each rail
};

/// Real time orders the lives of one name across restarts of the process, even of the node.
std::uint64_t real_time_ns() {
  const auto now = std::chrono::system_clock::now().time_since_epoch();
  return static_cast<std::uint64_t>(std::chrono::duration_cast<std::chrono::nanoseconds>(now).count());
}

const char* cure_for(int error) {
  switch (error) {
    case EADDRINUSE: return "another process has it: choose another port, or none to get a free one";
    case EADDRNOTAVAIL: return "no interface of this node has that address";
    case EACCES: return "ports below 1024 are for root: choose another";
    case EMFILE: return "too many open files: raise ulimit -n";
    default: return "see the kernel's word for it";
  }
}

std::unique_ptr<link::Link> one_of(std::vector<std::unique_ptr<link::Link>> links) {
  if (links.size() == 1) return std::move(links.front());
  return std::make_unique<multipath::LinkBundle>(std::move(links));
}

std::string listed(const std::vector<std::string>& words) {
  std::string text;
  for (const std::string& word : words) text.append(text.empty() ? "" : ", ").append(word);
  return text;
}

}  // namespace

Counters& CounterPool::take() {
  const std::lock_guard guard(mutex_);
  if (free_.empty()) {
    all_.push_back(std::make_unique<Counters>());
    free_.reserve(all_.size());  // so that giving back never allocates
    return *all_.back();
  }
  Counters& counters = *free_.back();
  free_.pop_back();
  counters = {};
  return counters;
}

void CounterPool::give_back(Counters& counters) {
  const std::lock_guard guard(mutex_);
  free_.push_back(&counters);
}

std::shared_ptr<os::UdpPort> Machine::open_port(const InterfaceAddress& place, const SocketAddress& wanted,
                                                int& error) {
  const SocketAddress name = place.address.with_port(wanted.port());
  std::shared_ptr<os::UdpPort> port = os::UdpPort::open(name, error);
  if (port == nullptr) {
    log_.warn("cannot use %s on %s: %s (%s)", name.text().c_str(), place.interface.name.c_str(),
              std::generic_category().message(error).c_str(), cure_for(error));
  }
  return port;
}

LinkChoice Machine::open_link(const std::shared_ptr<os::UdpPort>& port, const InterfaceAddress& place,
                              bool sessions, const Environment& environment) {
  LinkChoice choice = choose_link(port, place.interface, options_, environment, sessions);
  if (choice.link == nullptr) {
    log_.warn("FI_CLUSTER_LINK=packet is not possible: %s. FI_CLUSTER_LINK=udp works without, auto chooses",
              choice.reason.c_str());
  } else if (!choice.reason.empty()) {
    log_.info("frames from %s go by udp: %s", port->name().text().c_str(), choice.reason.c_str());
  }
  return choice;
}

bool Machine::add_rail(const InterfaceAddress& place, std::shared_ptr<os::UdpPort> port,
                       const Environment& environment, RailParts& ground) {
  LinkChoice choice = open_link(port, place, ground.sessions, environment);
  if (choice.link == nullptr) return false;
  if (ground.links.empty()) ground.why_link = choice.reason;
  ground.rails.push_back({port->name(), place.prefix_bits, place.interface.name});
  ground.links.push_back(std::move(choice.link));
  ground.ports.push_back(std::move(port));
  return true;
}

/// A rail that cannot be had is done without: the one that names the endpoint is there.
void Machine::add_rails(std::span<const InterfaceAddress> places, const InterfaceAddress& named,
                        const Environment& environment, RailParts& ground) {
  std::vector<std::string> unknown;
  const auto further = multipath::choose_rails(places, named, options_.text(Options::Name::rails), unknown);
  for (const std::string& name : unknown) {
    log_.warn("FI_CLUSTER_RAILS names %s, which is no interface that is up and has a fitting address",
              name.c_str());
  }
  for (const InterfaceAddress* place : further) {
    int error = 0;
    const SocketAddress wanted = place->address.with_port(ground.ports.front()->name().port());
    std::shared_ptr<os::UdpPort> port = os::UdpPort::open(wanted, error);
    if (port == nullptr) port = os::UdpPort::open(place->address, error);
    if (port == nullptr) {
      log_.warn("no rail on %s: %s", place->interface.name.c_str(),
                std::generic_category().message(error).c_str());
      continue;
    }
    port->bind_egress(place->interface.index);
    add_rail(*place, std::move(port), environment, ground);
  }
}

std::unique_ptr<engine::Engine> Machine::build_engine(const SocketAddress& wanted,
                                                      engine::EndpointType service, int& error) {
  const std::vector<InterfaceAddress> places = list_interface_addresses();
  AddressFilter wish;
  wish.interface = options_.text(Options::Name::iface);
  wish.family = wanted.family();
  wish.source = wanted;
  const InterfaceAddress* place = choose(places, wish);
  if (place == nullptr) {
    log_.warn("no endpoint at %s: no interface that is up has that address",
              wanted.empty() ? "any address" : wanted.text().c_str());
    error = FI_EADDRNOTAVAIL;
    return nullptr;
  }
  const std::shared_ptr<os::UdpPort> port = open_port(*place, wanted, error);
  if (port == nullptr) return nullptr;
  auto lease = std::make_shared<EngineResources>(counters_, port->name(), log_);
  // Before there are threads of ours: in a process of one thread it costs nothing, later it waits for the
  // kernel.
  os::register_process_fence();
  const Environment environment{clock_, random_, log_, lease->counters, fence()};
  const bool datagrams = service == engine::EndpointType::dgram;
  RailParts ground;
  ground.sessions = !datagrams;
  if (!add_rail(*place, port, environment, ground)) {
    error = FI_EOPNOTSUPP;
    return nullptr;
  }
  if (!datagrams) add_rails(places, *place, environment, ground);
  const engine::EngineSettings settings = options_.settings();
  const std::uint64_t epoch = real_time_ns();
  std::unique_ptr<shm::LocalListener> host;
  std::string reason = datagrams ? "datagrams do without" : "FI_CLUSTER_SHM=no";
  if (settings.shm && !datagrams) {
    const shm::ShmSettings rings{.ring_bytes = settings.shm_ring_bytes, .single_copy = settings.single_copy};
    host = shm::open_listener(port->name(), epoch, rings, environment, reason);
  }
  for (const auto& each : ground.ports)
    lease->probe_responders.push_back(os::start_probe_responder(each, log_));
  std::unique_ptr<link::Link> link = one_of(std::move(ground.links));
  std::vector<std::string> interfaces;
  for (const multipath::Rail& rail : ground.rails) interfaces.push_back(rail.label);
  log_.info("endpoint %s on %s: %s link, frames of at most %zu bytes, shared memory %s%s",
            port->name().text().c_str(), listed(interfaces).c_str(), link->name(), link->frame_max(),
            host != nullptr ? "on" : "off: ", host != nullptr ? "" : reason.c_str());
  const EndpointSetup setup{port->name(),      interfaces,      link->name(), ground.why_link,
                            link->frame_max(), host != nullptr, reason,       datagrams};
  auto engine = std::make_unique<engine::Engine>(
      engine::EngineParts{environment, settings, port->name(), epoch, std::move(link), std::move(host),
                          std::move(lease), service, std::move(ground.rails)});
  engine->set_progress_client(attend(*engine, setup));
  return engine;
}

/// From now on the library's own thread looks after the engine, and answers who asks about it, until the
/// handle is dropped.
std::shared_ptr<void> Machine::attend(engine::Engine& engine, const EndpointSetup& setup) {
  struct Attention {
    std::shared_ptr<void> progress_client;
    std::unique_ptr<ReportServer> report_server;
    std::shared_ptr<void> answering;
  };
  auto attention = std::make_shared<Attention>();
  int error = 0;
  attention->progress_client =
      os::start_progress_client([&engine] { return engine.run_in_background(); }, error);
  if (attention->progress_client == nullptr) {
    log_.warn("no background thread (%s): peers wait while the application makes no call",
              std::generic_category().message(error).c_str());
    return nullptr;
  }
  std::string reason;
  attention->report_server = ReportServer::open(
      setup.name,
      [this, &engine, setup](Report& report) {
        const std::optional<engine::EndpointStats> seen = engine.stats();
        if (!seen) return false;
        report_endpoint(setup, *seen, report);
        report_options(options_, report);
        return true;
      },
      reason);
  if (attention->report_server == nullptr) {
    log_.info("nobody can ask about %s: %s", setup.name.text().c_str(), reason.c_str());
    return attention;
  }
  ReportServer* const report_server = attention->report_server.get();
  attention->answering = os::start_progress_client([report_server] { return report_server->visit(); }, error);
  return attention;
}

SocketAddress Machine::resolve(const char* node, const char* service, SocketAddress::Family family) {
  fi_info hints{};
  hints.addr_format = format_of_family(family);
  Addresses addresses;
  std::string reason;
  if (read_addresses(node, service, 0, &hints, addresses, reason) != 0) log_.info("%s", reason.c_str());
  return addresses.destination;
}

}  // namespace cluster::provider
