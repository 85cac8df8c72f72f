#include "os/ring_claim.h"

#include <cerrno>
#include <string>
#include <utility>

#include "os/local_socket.h"

namespace cluster::os {

std::optional<Descriptor> claim_ring(int index, SocketAddress::Family family, std::size_t rings) {
  const std::string prefix =
      "cluster-ring-1/" + std::to_string(index) + (family == SocketAddress::Family::v6 ? "/ipv6/" : "/ipv4/");
  for (std::size_t number = 0; number < rings; ++number) {
    int error = 0;
    Descriptor name = reserve_name(prefix + std::to_string(number), error);
    if (error != EADDRINUSE) return name;
  }
  return std::nullopt;
}

}  // namespace cluster::os
