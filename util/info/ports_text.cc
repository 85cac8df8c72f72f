#include "ports_text.h"

#include <cstdlib>
#include <fstream>
#include <optional>
#include <vector>

namespace cluster::info {
namespace {

using provider::OptionRow;
using provider::Options;
using provider::PortRange;

constexpr const char* kAgents = "7947";  // util/clusterd_lib
constexpr const char* kGroups = "9228";  // engine/collective_endpoint.cc, without FI_CLUSTER_PORTS
constexpr const char* kListeners = "mld-listener-query, mld-listener-report, mld2-listener-report";

std::string text_of(const PortRange& range) {
  const std::string first = std::to_string(range.first);
  return range.first == range.last ? first : first + "-" + std::to_string(range.last);
}

std::string nftables(const std::string& ports, bool from_user) {
  const std::string udp = from_user ? ports : "{ " + ports + ", " + kGroups + " }";
  std::string text =
      "# nftables: in your chains for what comes in and for what goes out (here: of the table inet filter)\n";
  for (const char* const chain : {"input", "output"}) {
    for (const std::string& what :
         {"udp dport " + udp, "tcp dport " + ports, std::string("ct state established,related"),
          std::string("ip protocol igmp"), "icmpv6 type { " + std::string(kListeners) + " }"}) {
      text.append("nft add rule inet filter ").append(chain).append(" ").append(what).append(" accept\n");
    }
  }
  return text;
}

std::string firewalld(const std::string& ports, bool from_user) {
  const std::string groups =
      from_user ? "" : std::string("firewall-cmd --permanent --add-port=") + kGroups + "/udp\n";
  return "# firewalld\n"
         "firewall-cmd --permanent --add-port=" +
         ports + "/udp\n" + groups + "firewall-cmd --permanent --add-port=" + ports +
         "/tcp\n"
         "firewall-cmd --permanent --add-protocol=igmp\n"
         "firewall-cmd --reload\n";
}

std::string security_group(const std::string& ports, bool from_user) {
  std::string text =
      "# a security group (here: of AWS), for all nodes of the job; outgoing traffic needs the same where it "
      "is filtered\n";
  for (const char* const protocol : {"udp", "tcp"}) {
    text += std::string("aws ec2 authorize-security-group-ingress --group-id GROUP --source-group GROUP ") +
            "--protocol " + protocol + " --port " + ports + "\n";
  }
  if (!from_user) {
    text += std::string("aws ec2 authorize-security-group-ingress --group-id GROUP --source-group GROUP ") +
            "--protocol udp --port " + kGroups + "\n";
  }
  return text;
}

}  // namespace

PortRange ports_in_use(bool& from_user, std::string& error) {
  std::vector<std::string> errors;
  const Options options(
      [](const OptionRow& row) -> std::optional<std::string> {
        const char* const value = std::getenv(provider::variable(row).c_str());
        const bool ports = std::string_view(row.name) == "ports" && value != nullptr;
        return ports ? std::optional<std::string>(value) : std::nullopt;
      },
      errors);
  if (!errors.empty()) error = errors.front();
  PortRange range = options.ports();
  from_user = !range.any();
  if (from_user || !error.empty()) return range;
  std::ifstream file("/proc/sys/net/ipv4/ip_local_port_range");
  if (!(file >> range.first >> range.last)) error = "the kernel does not say which ports it chooses";
  return range;
}

std::string ports_text(const PortRange& range, bool from_user) {
  const std::string ports = text_of(range);
  std::string text;
  if (from_user) {
    text = "# Ports of endpoints (FI_CLUSTER_PORTS=" + ports + ", the same on all nodes of a job).\n";
  } else {
    text =
        "# FI_CLUSTER_PORTS is not set, so the kernel chooses the ports of endpoints. Set it, for example "
        "to 40000-40063,\n# to open fewer ports.\n";
  }
  text +=
      "# UDP carries the data. TCP tells whether a silent peer still lives; no data travels on it. IGMP and "
      "MLD are for\n# multicast groups" +
      std::string(from_user ? "" : ", which use UDP port " + std::string(kGroups)) + ".\n" +
      "# Agents (clusterd), if they run, also need UDP and TCP port " + std::string(kAgents) + ".\n";
  return text + "\n" + nftables(ports, from_user) + "\n" + firewalld(ports, from_user) + "\n" +
         security_group(ports, from_user);
}

}  // namespace cluster::info
