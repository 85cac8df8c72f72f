#include "os/resolver.h"

#include <netdb.h>

#include <algorithm>
#include <memory>

namespace cluster::os {

std::vector<SocketAddress> resolve(const char* node, const char* service, Names names) {
  addrinfo hints{};
  hints.ai_family = AF_UNSPEC;
  hints.ai_socktype = SOCK_DGRAM;
  hints.ai_flags = (node == nullptr ? AI_PASSIVE : 0) |
                   (names == Names::numeric_only ? AI_NUMERICHOST | AI_NUMERICSERV : 0);
  addrinfo* list = nullptr;
  if (getaddrinfo(node, service, &hints, &list) != 0) return {};
  const std::unique_ptr<addrinfo, decltype(&freeaddrinfo)> owner(list, freeaddrinfo);
  std::vector<SocketAddress> addresses;
  for (const addrinfo* entry = list; entry != nullptr; entry = entry->ai_next) {
    const SocketAddress address = SocketAddress::from(entry->ai_addr, entry->ai_addrlen);
    if (address.empty()) continue;
    if (std::find(addresses.begin(), addresses.end(), address) == addresses.end())
      addresses.push_back(address);
  }
  return addresses;
}

}  // namespace cluster::os
