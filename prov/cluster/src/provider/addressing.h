// The source and destination addresses that a caller of fi_getinfo asks for by node, service, flags and
// hints. Names are resolved here and nowhere else, so only these functions may wait for a name server.
#pragma once

#include <rdma/fabric.h>

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "base/address.h"

namespace cluster::provider {

struct Addresses {
  SocketAddress source;       ///< empty or a wildcard: any address of this node
  SocketAddress destination;  ///< empty if the caller gives none
  std::uint16_t port = 0;     ///< of the source; set even if the caller names only a service
  SocketAddress::Family family = SocketAddress::Family::none;  ///< none: either family
};

/// Returns 0; or -FI_EINVAL or -FI_ENODATA, with the cause in `reason`.
int read_addresses(const char* node, const char* service, std::uint64_t flags, const fi_info* hints,
                   Addresses& out, std::string& reason);

/// libfabric's text form of a socket address: "fi_sockaddr_in://10.0.0.1:9228",
/// "fi_sockaddr_in6://[fd00::1]:9228", or fi_sockaddr:// with either. Port and host may be missing.
struct AddressText {
  SocketAddress::Family family = SocketAddress::Family::none;
  std::string host;
  std::string port;
};
std::optional<AddressText> parse_address_text(std::string_view text);

}  // namespace cluster::provider
