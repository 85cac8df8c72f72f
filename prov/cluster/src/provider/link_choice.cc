#include "provider/link_choice.h"

#include "os/packet_link.h"
#include "os/udp_link.h"

namespace cluster::provider {
namespace {

bool is_ethernet(const os::Interface& interface) { return interface.has_ethernet && !interface.loopback; }

}  // namespace

LinkChoice choose_link(const std::shared_ptr<os::UdpPort>& port, const os::Interface& interface,
                       const Options& options, const Environment& environment, bool sessions) {
  const std::string& wanted = options.text(Options::Name::link);
  LinkChoice choice;
  if (wanted == "udp") {
    choice.reason = "FI_CLUSTER_LINK=udp";
  } else if (!is_ethernet(interface)) {
    choice.reason = interface.name + " is not an Ethernet interface";
  } else {
    os::PacketSettings settings = options.packet_settings();
    if (!sessions) settings.ethertype = false;
    if (wanted == "packet") settings.rings.reset();  // asked for by name: no limit
    choice.link = os::open_packet_link(port, interface, settings, environment, choice.reason);
  }
  if (choice.link == nullptr && wanted != "packet") {
    choice.link = os::open_udp_link(port, interface.mtu, environment);
  }
  return choice;
}

}  // namespace cluster::provider
