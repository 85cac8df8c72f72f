// Determines the source and destination addresses that a caller of fi_getinfo asks for by node, service,
// flags and hints. In the provider, only the functions of this file resolve names. So no other function waits
// for a name server.
#pragma once

#include <rdma/fabric.h>

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "base/address.h"

namespace cluster::provider {

struct Addresses {
  SocketAddress source;       ///< if it is empty or a wildcard, the caller accepts any address of this node
  SocketAddress destination;  ///< empty if the caller gives none
  std::uint16_t port = 0;     ///< the port of `source`, even if `source` is a wildcard
  /// The family that the caller asks for; `none` if the caller accepts both families.
  SocketAddress::Family family = SocketAddress::Family::none;
};

/// Returns 0. On failure returns -FI_EINVAL or -FI_ENODATA and sets `reason` to the cause.
int read_addresses(const char* node, const char* service, std::uint64_t flags, const fi_info* hints,
                   Addresses& out, std::string& reason);

/// A socket address in libfabric's text form, divided into its parts. The text form is
/// "fi_sockaddr_in://10.0.0.1:9228" or "fi_sockaddr_in6://[fd00::1]:9228". With fi_sockaddr:// the address
/// may be of either family. Host and port may be missing.
struct AddressText {
  SocketAddress::Family family = SocketAddress::Family::none;
  std::string host;
  std::string port;
};
std::optional<AddressText> parse_address_text(std::string_view text);

}  // namespace cluster::provider
