#include "provider/rail_opener.h"

#include <cerrno>
#include <cstdint>
#include <string>

#include "multipath/interface_choice.h"
#include "multipath/link_bundle.h"
#include "os/descriptor.h"
#include "os/packet_link.h"
#include "os/udp_link.h"
#include "wire/opening.h"

namespace cluster::provider {
namespace {

/// Returns the remedy for `error`, as a text that follows os::error_text() in the log line. Port 0 means that
/// the endpoint asked for any free port of `range`.
std::string cure_for(int error, std::uint16_t port, const PortRange& range) {
  switch (error) {
    case EADDRINUSE:
      if (port == 0 && !range.any())
        return "; no port of FI_CLUSTER_PORTS=" + std::to_string(range.first) + "-" +
               std::to_string(range.last) +
               " is free: each endpoint of this node needs one, so widen the range";
      return port == 0 ? "; no port is free: widen net.ipv4.ip_local_port_range"
                       : "; another process has this port: name another port, or none to get a free one";
    case EADDRNOTAVAIL: return "; no interface of this node has this address (see \"ip address\")";
    case EACCES: return "; a port below 1024 needs CAP_NET_BIND_SERVICE: name another port";
    default: return "";
  }
}

/// Opens a port with the number of `wanted`. If this number is 0, opens the first free port of `range`, or
/// one that the kernel chooses if there is no range.
std::shared_ptr<os::UdpPort> open_within(const SocketAddress& wanted, const PortRange& range, int& error) {
  if (wanted.port() != 0 || range.any()) return os::UdpPort::open(wanted, error);
  for (std::uint32_t number = range.first; number <= range.last; ++number) {
    auto port = os::UdpPort::open(wanted.with_port(static_cast<std::uint16_t>(number)), error);
    if (port != nullptr || error != EADDRINUSE) return port;
  }
  return nullptr;
}

}  // namespace

LinkChoice choose_link(const std::shared_ptr<os::UdpPort>& port, const os::Interface& interface,
                       const Options& options, const Environment& environment, bool sessions) {
  const std::string& wanted = options.text(Options::Name::link);
  LinkChoice choice;
  if (wanted == "udp") {
    choice.reason = "FI_CLUSTER_LINK=udp";
  } else if (!interface.has_ethernet || interface.loopback) {
    choice.reason = interface.name + " is not an Ethernet interface";
  } else {
    os::PacketSettings settings = options.packet_settings();
    if (!sessions) settings.ethertype = false;
    settings.ring_outside_group = wanted == "packet";
    choice.link = os::open_packet_link(port, interface, settings, environment, choice.reason, &choice.rings);
  }
  if (choice.link == nullptr && wanted != "packet") {
    choice.link = os::open_udp_link(port, interface.mtu, environment);
  }
  return choice;
}

std::optional<os::VerbsPort> choose_verbs(const InterfaceAddress& place, const Options& options,
                                          std::string& reason) {
  const std::string& wanted = options.text(Options::Name::link);
  if (wanted != "auto" && wanted != "verbs") {
    reason = "FI_CLUSTER_LINK=" + wanted;
    return std::nullopt;
  }
  std::optional<os::VerbsPort> found =
      os::find_verbs_port(options.text(Options::Name::test_verbs), place.interface, place.address, reason);
  if (!found || found->active) return found;
  reason = "port " + found->name() + " is not active";
  return std::nullopt;
}

/// An IPv4 address is the last 32 of the 128 bits of its GID.
unsigned gid_prefix_bits(const InterfaceAddress& place) {
  const bool v4 = place.address.family() == SocketAddress::Family::v4;
  return place.prefix_bits == 0 ? 0 : place.prefix_bits + (v4 ? 96 : 0);
}

std::vector<std::string> OpenedRails::interface_names() const {
  std::vector<std::string> names;
  for (const multipath::Rail& rail : rails) names.push_back(rail.label);
  return names;
}

std::unique_ptr<link::Link> OpenedRails::take_link() {
  if (links.size() == 1) return std::move(links.front());
  return std::make_unique<multipath::LinkBundle>(std::move(links));
}

std::shared_ptr<os::UdpPort> open_port(const InterfaceAddress& place, std::uint16_t port,
                                       const PortRange& range, Log& log, int& error) {
  const SocketAddress name = place.address.with_port(port);
  std::shared_ptr<os::UdpPort> opened = open_within(name, range, error);
  if (opened == nullptr) {
    log.warn("cannot use %s on %s: %s%s", name.text().c_str(), place.interface.name.c_str(),
             os::error_text(error).c_str(), cure_for(error, port, range).c_str());
  }
  return opened;
}

bool add_rail(const InterfaceAddress& place, std::shared_ptr<os::UdpPort> port, const Options& options,
              const Environment& environment, bool sessions, OpenedRails& rails) {
  LinkChoice choice = choose_link(port, place.interface, options, environment, sessions);
  if (choice.link == nullptr) {
    environment.log.warn("FI_CLUSTER_LINK=packet is not possible: %s; FI_CLUSTER_LINK=udp needs no privilege",
                         choice.reason.c_str());
    return false;
  }
  if (!choice.reason.empty())
    environment.log.info("endpoint address %s uses the udp link: %s", port->name().text().c_str(),
                         choice.reason.c_str());
  if (rails.links.empty()) {
    rails.not_packet_reason = choice.reason;
    rails.rings = std::move(choice.rings);
  }
  rails.rails.push_back({port->name(), place.prefix_bits, place.interface.name});
  rails.places.push_back(place);
  rails.links.push_back(std::move(choice.link));
  rails.ports.push_back(std::move(port));
  return true;
}

void add_further_rails(std::span<const InterfaceAddress> places, const InterfaceAddress& named,
                       const Options& options, const Environment& environment, OpenedRails& rails) {
  Log& log = environment.log;
  std::vector<std::string> unknown;
  const auto further = multipath::choose_rails(places, named, options.text(Options::Name::rails), unknown);
  for (const std::string& name : unknown) {
    log.warn(
        "FI_CLUSTER_RAILS names %s, but no interface of that name is up and has an address of the endpoint's "
        "address family (see \"ip address\")",
        name.c_str());
  }
  for (const InterfaceAddress* place : further) {
    int error = 0;
    // Uses the same port number on every rail, if it is free there, so that a packet capture is easier to
    // read.
    const SocketAddress wanted = place->address.with_port(rails.ports.front()->name().port());
    std::shared_ptr<os::UdpPort> port = os::UdpPort::open(wanted, error);
    if (port == nullptr) port = open_within(place->address, options.ports(), error);
    if (port == nullptr) {
      log.warn("cannot use %s as a rail: %s%s", place->interface.name.c_str(), os::error_text(error).c_str(),
               cure_for(error, 0, options.ports()).c_str());
      continue;
    }
    port->bind_egress(place->interface.index);
    add_rail(*place, std::move(port), options, environment, true, rails);
  }
}

bool add_verbs_rails(const Options& options, bool keyed, const Environment& environment, OpenedRails& rails) {
  std::string reason;
  for (const InterfaceAddress& place : rails.places) {
    if (rails.rails.size() == multipath::kPathsMax || rails.verbs.size() == wire::kVerbsMax) break;
    std::string why_not;
    std::optional<os::VerbsPort> port = choose_verbs(place, options, why_not);
    os::OpenedVerbs opened;
    if (port)
      opened = os::open_verbs_link(options.text(Options::Name::test_verbs), *port, environment, why_not);
    if (opened.link == nullptr) {
      // On a node without RDMA devices, all interfaces have the same reason, which is logged once.
      if (why_not != reason)
        environment.log.info("interface %s has no rail over an RDMA device: %s", place.interface.name.c_str(),
                             why_not.c_str());
      if (reason.empty()) reason = why_not;
      continue;
    }
    const bool preferred = options.text(Options::Name::link) == "verbs";
    rails.rails.push_back({opened.address, gid_prefix_bits(place), port->name(), port->mtu, preferred});
    rails.links.push_back(std::move(opened.link));
    rails.verbs.push_back({*std::move(port), std::move(opened.state)});
    if (!keyed) rails.readers.push_back(place);
  }
  if (!rails.verbs.empty() || options.text(Options::Name::link) != "verbs") return true;
  environment.log.warn("FI_CLUSTER_LINK=verbs is not possible: %s; FI_CLUSTER_LINK=auto needs no RDMA device",
                       reason.c_str());
  return false;
}

}  // namespace cluster::provider
