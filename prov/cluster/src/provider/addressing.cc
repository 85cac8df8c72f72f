#include "provider/addressing.h"

#include <netdb.h>
#include <rdma/fi_errno.h>

#include <cstring>
#include <memory>

#include "api/sockaddr_io.h"
#include "os/descriptor.h"

namespace cluster::provider {
namespace {

using Family = SocketAddress::Family;

int socket_family(Family family) {
  return family == Family::v4 ? AF_INET : family == Family::v6 ? AF_INET6 : AF_UNSPEC;
}

/// Returns the first IPv4 address of the name or, if it has none, its first address. If the name has no
/// address, returns an empty address and sets `reason` to the resolver's error.
SocketAddress resolve(const char* host, const char* service, Family family, std::uint64_t flags,
                      std::string& reason) {
  addrinfo hints{};
  hints.ai_family = socket_family(family);
  hints.ai_socktype = SOCK_DGRAM;
  if ((flags & FI_NUMERICHOST) != 0) hints.ai_flags |= AI_NUMERICHOST;
  if ((flags & FI_SOURCE) != 0) hints.ai_flags |= AI_PASSIVE;
  addrinfo* found = nullptr;
  const int error = getaddrinfo(host, service, &hints, &found);
  if (error != 0) {
    reason = std::string("cannot resolve ") + (host == nullptr ? "service " : host) +
             (service == nullptr ? "" : std::string(host == nullptr ? "" : ":") + service) + ": " +
             (error == EAI_SYSTEM ? os::error_text(errno) : gai_strerror(error));
    return {};
  }
  const std::unique_ptr<addrinfo, decltype(&freeaddrinfo)> list(found, freeaddrinfo);
  SocketAddress first;
  for (const addrinfo* entry = found; entry != nullptr; entry = entry->ai_next) {
    const SocketAddress address = SocketAddress::from(entry->ai_addr, entry->ai_addrlen);
    if (address.family() == Family::v4) return address;
    if (first.empty()) first = address;
  }
  if (first.empty()) reason = std::string(host == nullptr ? "service" : host) + " has no IP address";
  return first;
}

/// Resolves the node and the service that the caller of fi_getinfo passes. `node` may also be an address in
/// libfabric's text form with a port of its own.
SocketAddress resolve_node(const char* node, const char* service, Family family, std::uint64_t flags,
                           std::string& reason) {
  const std::optional<AddressText> text = node != nullptr ? parse_address_text(node) : std::nullopt;
  if (text) {
    if (family != Family::none && text->family != Family::none && text->family != family) {
      reason = "the address family differs from that of addr_format";
      return {};
    }
    if (text->family != Family::none) family = text->family;
    node = text->host.empty() ? nullptr : text->host.c_str();
    if (!text->port.empty()) service = text->port.c_str();
    if (node == nullptr && service == nullptr) {
      reason = "the address has neither host nor port";
      return {};
    }
  } else if (node == nullptr && family == Family::none) {
    family = Family::v4;  // the caller accepts both families; prefer IPv4, as resolve() does
  }
  return resolve(node, service, family, flags, reason);
}

/// Converts an address from the hints. If the address is not in the format that the hints name, returns an
/// empty address and sets `reason` to the cause.
SocketAddress from_hint(const void* address, std::size_t size, std::uint32_t format, std::string& reason) {
  const Family family = api::family_of_format(format);
  const SocketAddress found = SocketAddress::from(static_cast<const sockaddr*>(address), size);
  if (found.empty() || (family != Family::none && found.family() != family)) {
    reason = "the address in the hints does not have the format that addr_format names";
    return {};
  }
  return found;
}

}  // namespace

std::optional<AddressText> parse_address_text(std::string_view text) {
  const std::size_t colon = text.find("://");
  if (colon == std::string_view::npos) return std::nullopt;
  const std::string_view scheme = text.substr(0, colon);
  AddressText result;
  if (scheme == "fi_sockaddr_in") {
    result.family = Family::v4;
  } else if (scheme == "fi_sockaddr_in6") {
    result.family = Family::v6;
  } else if (scheme != "fi_sockaddr") {
    return std::nullopt;
  }
  std::string_view rest = text.substr(colon + 3);
  if (rest.starts_with('[')) {
    const std::size_t bracket = rest.find(']');
    if (bracket == std::string_view::npos) return std::nullopt;
    result.host = rest.substr(1, bracket - 1);
    rest.remove_prefix(bracket + 1);
    if (!rest.empty() && rest.front() != ':') return std::nullopt;
  } else {
    const std::size_t end = std::min(rest.find(':'), rest.size());
    result.host = rest.substr(0, end);
    rest.remove_prefix(end);
  }
  if (!rest.empty()) result.port = rest.substr(1);
  return result;
}

int read_addresses(const char* node, const char* service, std::uint64_t flags, const fi_info* hints,
                   Addresses& out, std::string& reason) {
  const bool local = (flags & FI_SOURCE) != 0;
  if (local && node == nullptr && service == nullptr) {
    reason = "FI_SOURCE needs a node or a service";
    return -FI_EINVAL;
  }
  out = {};
  const std::uint32_t format =
      hints == nullptr ? static_cast<std::uint32_t>(FI_FORMAT_UNSPEC) : hints->addr_format;
  out.family = api::family_of_format(format);
  if (node != nullptr || service != nullptr) {
    SocketAddress& target = local ? out.source : out.destination;
    target = resolve_node(node, service, out.family, flags, reason);
    if (target.empty()) return -FI_ENODATA;
  }
  if (hints != nullptr && hints->src_addr != nullptr && !local) {
    out.source = from_hint(hints->src_addr, hints->src_addrlen, format, reason);
    if (out.source.empty()) return -FI_ENODATA;
  }
  if (hints != nullptr && hints->dest_addr != nullptr && out.destination.empty()) {
    out.destination = from_hint(hints->dest_addr, hints->dest_addrlen, format, reason);
    if (out.destination.empty()) return -FI_ENODATA;
  }
  out.port = out.source.port();
  const bool both = !out.source.empty() && !out.destination.empty();
  if (both && out.source.family() != out.destination.family()) {
    reason = "source and destination belong to different address families";
    return -FI_ENODATA;
  }
  if (!out.source.empty()) out.family = out.source.family();
  if (!out.destination.empty()) out.family = out.destination.family();
  return 0;
}

}  // namespace cluster::provider
