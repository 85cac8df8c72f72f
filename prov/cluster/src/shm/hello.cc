#include "shm/hello.h"

#include <algorithm>

#include "shm/greeting.h"

namespace cluster::shm {
namespace {

constexpr std::uint64_t kHelloMagic = 0x676e69722d6c6c63;  // "cll-ring"

}  // namespace

Hello::Hello(const SocketAddress& writer, std::uint64_t number, const Geometry& cut, const Proof& shown,
             std::uint64_t rung)
    : magic(kHelloMagic),
      epoch(number),
      proof(shown),
      doorbell(rung),
      layout_version(kLayoutVersion),
      geometry(cut),
      scope(writer.scope()),
      port(writer.port()),
      family(writer.family() == SocketAddress::Family::v6 ? 6 : 4) {
  std::ranges::copy(writer.ip(), ip);
}

SocketAddress Hello::writer() const {
  if (family == 4) return SocketAddress::v4(ip, port);
  if (family == 6) return SocketAddress::v6(ip, port, scope);
  return {};
}

bool Hello::valid() const {
  const SocketAddress name = writer();
  return magic == kHelloMagic && layout_version == kLayoutVersion && !name.empty() && !name.wildcard() &&
         name.port() != 0 && geometry.valid();
}

std::string socket_name(const SocketAddress& endpoint) {
  return plain_name("cluster-", kLayoutVersion, endpoint);
}

std::string doorbell_name(std::uint64_t number) { return "cluster-doorbell/" + std::to_string(number); }

}  // namespace cluster::shm
