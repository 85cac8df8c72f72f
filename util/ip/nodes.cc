#include "nodes.h"

#include <ifaddrs.h>
#include <netdb.h>
#include <netinet/in.h>
#include <sys/socket.h>

#include <memory>
#include <set>
#include <stdexcept>

namespace cluster::ip {
namespace {

std::string numeric(const sockaddr* address) {
  const socklen_t length = address->sa_family == AF_INET ? sizeof(sockaddr_in) : sizeof(sockaddr_in6);
  char text[NI_MAXHOST];
  return ::getnameinfo(address, length, text, sizeof text, nullptr, 0, NI_NUMERICHOST) == 0 ? text : "";
}

std::set<std::string> own_addresses() {
  std::set<std::string> found;
  ifaddrs* all = nullptr;
  if (::getifaddrs(&all) != 0) return found;
  const std::unique_ptr<ifaddrs, decltype(&::freeifaddrs)> owned(all, ::freeifaddrs);
  for (const ifaddrs* each = all; each != nullptr; each = each->ifa_next) {
    if (each->ifa_addr != nullptr &&
        (each->ifa_addr->sa_family == AF_INET || each->ifa_addr->sa_family == AF_INET6))
      found.insert(numeric(each->ifa_addr));
  }
  return found;
}

}  // namespace

std::vector<Node> resolve(const std::vector<std::string>& names) {
  std::vector<Node> nodes;
  for (const std::string& name : names) {
    addrinfo hints = {};
    hints.ai_socktype = SOCK_DGRAM;
    addrinfo* found = nullptr;
    const int error = ::getaddrinfo(name.c_str(), nullptr, &hints, &found);
    if (error != 0)
      throw std::runtime_error("the node '" + name + "' has no address: " + ::gai_strerror(error));
    nodes.push_back({name, numeric(found->ai_addr)});
    ::freeaddrinfo(found);
  }
  return nodes;
}

const Node* own_node(const std::vector<Node>& nodes) {
  const std::set<std::string> own = own_addresses();
  for (const Node& node : nodes) {
    // A loopback address is on every node: /etc/hosts often has one for the node's own name.
    if (own.count(node.address) != 0 && !node.address.starts_with("127.") && node.address != "::1")
      return &node;
  }
  return nullptr;
}

}  // namespace cluster::ip
