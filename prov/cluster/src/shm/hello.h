// The one message of a shared-memory connection: the writer's identity and how the ring that comes with it
// is cut. It travels between processes of one host and one version of the layout (part of the listening
// socket's name), so its integers are the host's.
#pragma once

#include <cstdint>
#include <string>

#include "base/address.h"
#include "shm/layout.h"

namespace cluster::shm {

/// Proves which process sends this: `value` lies at `address` in its memory (PeerMemory).
struct Proof {
  std::uint64_t address = 0;  ///< 0: its memory is not offered
  std::uint64_t value = 0;
};

struct Hello {
  Hello() = default;
  Hello(const SocketAddress& writer, std::uint64_t epoch, const Geometry& geometry, const Proof& proof = {},
        std::uint64_t doorbell = 0);

  /// Empty if it is none.
  SocketAddress writer() const;
  /// What a message must be before anything in it is used.
  bool valid() const;

  std::uint64_t magic = 0;
  std::uint64_t epoch = 0;     ///< later incarnations of one address have larger ones
  Proof proof;                 ///< that the writer's memory is in reach
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
/// The name of the doorbell with this number. The number is random and only peers know it: no other user can take the name
/// first.
std::string doorbell_name(std::uint64_t number);

}  // namespace cluster::shm
