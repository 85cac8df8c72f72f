// The source and destination addresses that a caller of fi_getinfo means, from node, service, flags and
// hints. Names are resolved here, the only place that may wait for a name server.
#pragma once

#include <rdma/fabric.h>

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "base/address.h"

namespace cluster::provider {

struct Addresses {
  SocketAddress source;       ///< empty or a wildcard: any of this node's
  SocketAddress destination;  ///< empty: not given
  std::uint16_t port = 0;     ///< of the source, also when only a service was named
  SocketAddress::Family family = SocketAddress::Family::none;  ///< none: either
};

/// 0, or -FI_EINVAL or -FI_ENODATA with the cause in `reason`.
int read_addresses(const char* node, const char* service, std::uint64_t flags, const fi_info* hints,
                   Addresses& out, std::string& reason);

/// libfabric's text form of a socket address: "fi_sockaddr_in://10.0.0.1:9228",
/// "fi_sockaddr_in6://[fd00::1]:9228", or fi_sockaddr:// with either. The port may be missing, and
/// so may the host.
struct AddressText {
  SocketAddress::Family family = SocketAddress::Family::none;
  std::string host;
  std::string port;
};
std::optional<AddressText> parse_address_text(std::string_view text);

}  // namespace cluster::provider
