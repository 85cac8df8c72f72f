#include "host_report.h"

#include <sys/utsname.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <span>
#include <string>
#include <string_view>
#include <thread>
#include <vector>

#include "environment_check.h"
#include "multipath/interface_choice.h"
#include "os/descriptor.h"
#include "os/interfaces.h"
#include "os/system_clock.h"
#include "os/system_random.h"
#include "provider/capabilities.h"
#include "provider/endpoint_report.h"
#include "provider/interface_addresses.h"
#include "provider/key_source.h"
#include "provider/options.h"
#include "provider/rail_opener.h"
#include "shm/local_listener.h"
#include "single_copy_probe.h"

namespace cluster::info {
namespace {

using provider::InterfaceAddress;
using provider::OptionRow;
using provider::Options;

/// The objects opened for the report log nothing: their reasons are in the report.
class NullLog final : public Log {
 public:
  bool enabled(LogLevel) const override { return false; }
  void write(LogLevel, const char*) override {}
};

struct SystemEnvironment {
  os::SystemClock clock;
  os::SystemRandom random;
  NullLog log;
  Counters counters;

  Environment environment() { return {clock, random, log, counters}; }
};

std::optional<std::string> from_environment(const OptionRow& row) {
  const char* said = std::getenv(provider::variable(row).c_str());
  return said == nullptr ? std::nullopt : std::optional<std::string>(said);
}

/// A record of kind ignored_option for each variable that looks like an option but is none: it has no effect.
void report_ignored_options(Report& report) {
  for (const provider::UnknownOption& unknown : provider::unknown_options(environ))
    report.emplace_back("ignored_option").text("option", unknown.name).text("why", unknown.line);
}

/// A record of kind warning for each setting that cannot have the intended effect.
void report_warnings(const Options& options, std::span<const InterfaceAddress> places,
                     const InterfaceAddress* chosen, Report& report) {
  const auto warn = [&report](const std::string& why) {
    if (!why.empty()) report.emplace_back("warning").text("why", why);
  };
  warn(provider_trouble(std::getenv("FI_PROVIDER")));
  warn(provider_path_trouble(std::getenv("FI_PROVIDER_PATH")));
  Options copy = options;  // it loses its key
  warn(provider::KeySource(copy).find({}).error);
  if (chosen == nullptr) return;
  std::vector<std::string> unknown;
  multipath::choose_rails(places, *chosen, options.text(Options::Name::rails), unknown);
  for (const std::string& name : unknown)
    warn("FI_CLUSTER_RAILS names " + name +
         ", which is not an interface that is up and has an address: see the interfaces below");
}

/// The options in force with another FI_CLUSTER_LINK.
Options with_link(const std::string& link) {
  std::vector<std::string> errors;
  return Options(
      [&](const OptionRow& row) -> std::optional<std::string> {
        if (std::string_view(row.name) == "link") return link;
        return from_environment(row);
      },
      errors);
}

void report_host(Report& report) {
  utsname names{};
  ::uname(&names);
  report.emplace_back("host")
      .text("host", names.nodename)
      .text("kernel", std::string(names.sysname) + " " + names.release)
      .number("processors", std::thread::hardware_concurrency())
      .text("provider_version",
            std::to_string(CLUSTER_VERSION_MAJOR) + "." + std::to_string(CLUSTER_VERSION_MINOR));
}

void report_interface(const os::Interface& interface, const std::string& address, const char* use,
                      const std::string& why, Report& report) {
  Record& record = report.emplace_back("interface");
  record.text("use", use).text("interface", interface.name).text("address", address).text("why", why);
  record.flag("up", interface.up).flag("carrier", interface.running).number("mtu_bytes", interface.mtu);
  if (interface.speed_mbit > 0) record.number("speed_mbit", static_cast<std::uint64_t>(interface.speed_mbit));
}

/// In the order in which endpoints prefer them.
void report_interfaces(std::span<const InterfaceAddress> places, const InterfaceAddress* chosen,
                       Report& report) {
  for (const InterfaceAddress& place : places) {
    report_interface(place.interface, place.address.ip_text(), &place == chosen ? "chosen" : "possible",
                     place.reason, report);
    report.back().text("network", place.network);
  }
  const std::vector<os::Interface> interfaces = os::list_interfaces();
  for (const multipath::RankedInterface& ranked : multipath::rank_interfaces(interfaces)) {
    if (!ranked.usable) report_interface(*ranked.interface, "", "refused", ranked.reason, report);
  }
}

void report_way(const char* name, bool permitted, bool chosen, const std::string& why, Report& report) {
  report.emplace_back("link")
      .text("link", name)
      .text("use", chosen      ? "chosen"
                   : permitted ? "possible"
                               : "refused")
      .text("why", why);
}

/// Opens a queue pair as an endpoint would, and closes it. "Chosen" means that endpoints use it beside packet
/// or udp.
void report_verbs(const InterfaceAddress& place, const Options& options, Report& report) {
  SystemEnvironment world;
  std::string why;
  const auto port = provider::choose_verbs(place, options, why);
  os::OpenedVerbs opened;
  if (port) {
    const std::string& library = options.text(Options::Name::test_verbs);
    opened = os::open_verbs_link(library, *port, world.environment(), why);
  }
  if (opened.link != nullptr) why = "beside the other link: " + provider::verbs_text(*port);
  report_way("verbs", opened.link != nullptr, opened.link != nullptr, why, report);
}

/// Opens each link as an endpoint with this address would, and closes it.
void report_links(const InterfaceAddress& place, const Options& options, Report& report) {
  SystemEnvironment world;
  int error = 0;
  const std::shared_ptr<os::UdpPort> port = os::UdpPort::open(place.address, error);
  if (port == nullptr) {
    const std::string why = place.address.ip_text() + ": " + os::error_text(error);
    for (const char* name : {"packet", "udp", "verbs"}) report_way(name, false, false, why, report);
    return;
  }
  const std::string& wanted = options.text(Options::Name::link);
  const provider::LinkChoice choice =
      provider::choose_link(port, place.interface, with_link("packet"), world.environment());
  const std::unique_ptr<link::Link>& packet = choice.link;
  const bool by_packet = packet != nullptr && wanted != "udp";
  const std::string size =
      packet == nullptr ? "" : "frames of at most " + std::to_string(packet->frame_max()) + " bytes";
  report_way("packet", packet != nullptr, by_packet, packet != nullptr ? size : choice.reason, report);
  const auto udp = provider::choose_link(port, place.interface, with_link("udp"), world.environment()).link;
  report_way("udp", true, wanted != "packet" && !by_packet,
             "frames of at most " + std::to_string(udp->frame_max()) + " bytes", report);
  report_verbs(place, options, report);
}

void report_shared_memory(const InterfaceAddress* place, const Options& options, Report& report) {
  const transport::EngineSettings settings = options.settings();
  if (!settings.shm) {
    report_way("shm", false, false, "FI_CLUSTER_SHM=no", report);
  } else if (place == nullptr) {
    report_way("shm", false, false, "no interface is usable", report);
  } else {
    SystemEnvironment world;
    int error = 0;
    std::string why = "no free UDP port";
    const std::shared_ptr<os::UdpPort> port = os::UdpPort::open(place->address, error);
    const auto host =
        port == nullptr ? nullptr
                        : shm::open_listener(port->name(), 1, {settings.shm_ring_bytes, settings.single_copy},
                                             world.environment(), why);
    if (host != nullptr) why = "for peers on this node that run as the same user";
    report_way("shm", host != nullptr, host != nullptr, why, report);
  }
  std::string why = single_copy_error();
  const bool permitted = why.empty();
  if (permitted) why = "large messages on this node are copied once, between the processes";
  report_way("single_copy", permitted, permitted && settings.shm, why, report);
}

void report_thresholds(const Options& options, Report& report) {
  const transport::EngineSettings settings = options.settings();
  const auto add = [&](const char* name, std::size_t bytes, const char* meaning) {
    report.emplace_back("threshold").text("threshold", name).number("bytes", bytes).text("meaning", meaning);
  };
  add("shm_eager", settings.shm_eager_max, "longest message sent eagerly to a peer on this node");
  add("net_eager", settings.net_eager_max, "longest message sent eagerly to another node");
  add("eager_credit", settings.eager_credit, "limit of unexpected messages of one sender");
  add("pull_window", settings.pull_window, "limit of pulled data in flight, over all senders");
}

}  // namespace

Report host_report() {
  Report report;
  std::vector<std::string> errors;
  const Options options(from_environment, errors);
  report_host(report);
  for (const std::string& error : errors) report.emplace_back("refusal").text("why", error);
  report_ignored_options(report);
  provider::AddressFilter filter;
  filter.interface = options.text(Options::Name::iface);
  int listing_error = 0;
  const std::vector<InterfaceAddress> places = provider::list_interface_addresses({}, listing_error);
  const InterfaceAddress* chosen = provider::choose_address(places, filter);
  if (chosen == nullptr) {
    report.emplace_back("refusal").text(
        "why", "this provider offers nothing: " + provider::no_address_reason(filter, places, listing_error));
  }
  report_warnings(options, places, chosen, report);
  report_interfaces(places, chosen, report);
  if (chosen != nullptr) report_links(*chosen, options, report);
  report_shared_memory(chosen, options, report);
  report_thresholds(options, report);
  provider::report_options(options, report);
  return report;
}

}  // namespace cluster::info
