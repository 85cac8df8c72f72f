// The only message of a shared-memory connection. It contains the writer's identity and the geometry of the
// ring that comes with it. Both processes run on one host and use one layout version (part of the listening
// socket's name), so integers are in host byte order.
#pragma once

#include <cstdint>
#include <string>

#include "base/address.h"
#include "shm/layout.h"

namespace cluster::shm {

/// Proves which process sends this: `value` lies at `address` in its memory (PeerMemory).
struct Proof {
  std::uint64_t address = 0;  ///< 0: the process does not offer its memory
  std::uint64_t value = 0;
};

struct Hello {
  Hello() = default;
  Hello(const SocketAddress& writer, std::uint64_t epoch, const Geometry& geometry, const Proof& proof = {},
        std::uint64_t doorbell = 0);

  /// The writer's address; empty if the hello contains none.
  SocketAddress writer() const;
  /// True if the hello is well formed. Check this before any field is used.
  bool valid() const;

  std::uint64_t magic = 0;
  std::uint64_t epoch = 0;     ///< later incarnations of one address have larger ones
  Proof proof;                 ///< shows that the writer's memory is in reach
  std::uint64_t doorbell = 0;  ///< the number of the writer's doorbell
  std::uint32_t layout_version = 0;
  Geometry geometry;
  std::uint32_t scope = 0;
  std::byte ip[16] = {};  ///< network byte order; IPv4 in the first four
  std::uint16_t port = 0;
  std::uint8_t family = 0;  ///< 4 or 6
  std::uint8_t reserved[5] = {};
};
static_assert(sizeof(Hello) == 80, "no padding: every byte that is sent is set");

/// The abstract name of the socket that listens for connections of an endpoint.
std::string socket_name(const SocketAddress& endpoint);
/// The name of the doorbell with this number. The number is random and only peers know it, so no other user
/// can take the name first.
std::string doorbell_name(std::uint64_t number);

}  // namespace cluster::shm
