#include "provider/relay_server.h"

#include <algorithm>
#include <utility>

#include "multipath/link_bundle.h"
#include "os/descriptor.h"
#include "os/udp_link.h"
#include "os/udp_port.h"

namespace cluster::provider {
namespace {

/// More links than a path can name would be of no use.
constexpr std::size_t kSocketsMax = 32;

}  // namespace

std::unique_ptr<RelayServer> RelayServer::open(std::vector<relay::JobRelayKeys> jobs,
                                               std::span<const InterfaceAddress> places, std::uint16_t port,
                                               Clock& clock, Random& random, Log& log, std::string& reason,
                                               const relay::Limits& limits) {
  auto server = std::unique_ptr<RelayServer>(new RelayServer(clock, random, log));
  std::vector<std::unique_ptr<link::Link>> links;
  reason = "no interface has an address";
  for (const InterfaceAddress& place : places) {
    if (place.interface.loopback || links.size() == kSocketsMax) continue;
    int error = 0;
    auto opened = os::UdpPort::open(place.address.with_port(port), error);
    if (opened == nullptr) {
      reason = place.address.with_port(port).text() + ": " + os::error_text(error);
      continue;
    }
    server->addresses_.push_back(opened->name());
    links.push_back(os::open_udp_link(std::move(opened), place.interface.mtu, server->environment_));
  }
  if (links.empty()) return nullptr;
  server->link_ = std::make_unique<multipath::LinkBundle>(std::move(links));
  server->arrivals_ = os::WaitSet::open();
  if (server->arrivals_ == nullptr) {
    reason = "this process has no free descriptor";
    return nullptr;
  }
  for (const int descriptor : server->link_->descriptors()) server->arrivals_->add(descriptor, nullptr);
  server->relay_ =
      std::make_unique<relay::Relay>(std::move(jobs), *server->link_, server->environment_, limits);
  return server;
}

bool RelayServer::run_in_background(std::string& reason) {
  int error = 0;
  client_ = os::start_progress_client([this] { return serve(); }, error);
  if (client_ == nullptr) reason = os::error_text(error);
  return client_ != nullptr;
}

os::NextWake RelayServer::serve() {
  link_->before_sleep();  // the next call looks at each link
  for (int i = 0; i < kBurstsPerCall; ++i) {
    if (relay_->poll() == 0) return {os::NextWake::kUntilReadable, arrivals_->descriptor()};
  }
  return {Duration{0}};
}

std::vector<RelayName> parse_relays(std::string_view text) {
  std::vector<RelayName> names;
  while (!text.empty()) {
    const std::size_t comma = std::min(text.find(','), text.size());
    std::string_view word = text.substr(0, comma);
    text.remove_prefix(std::min(comma + 1, text.size()));
    while (!word.empty() && word.front() == ' ') word.remove_prefix(1);
    while (!word.empty() && word.back() == ' ') word.remove_suffix(1);
    if (word.empty()) continue;
    RelayName name{std::string(word), std::to_string(kRelayPort)};
    const std::size_t bracket = word.front() == '[' ? word.find(']') : std::string_view::npos;
    const std::size_t colon = bracket != std::string_view::npos ? word.find(':', bracket) : word.rfind(':');
    const bool one_colon = bracket != std::string_view::npos || word.find(':') == colon;
    if (bracket != std::string_view::npos) name.host = word.substr(1, bracket - 1);
    if (colon != std::string_view::npos && one_colon) {
      if (bracket == std::string_view::npos) name.host = word.substr(0, colon);
      name.port = word.substr(colon + 1);
    }
    names.push_back(std::move(name));
  }
  return names;
}

}  // namespace cluster::provider
