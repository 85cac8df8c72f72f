// The message with which an endpoint offers a ring to a peer. It contains the identity of the sender, which
// writes the ring, and the geometry of the ring. The descriptor of the ring's memory is sent with the
// message. Integers are in host byte order, because both processes run on one host. Both processes use the
// same layout version, because this version is part of the name of the listening socket.
#pragma once

#include <cstdint>
#include <string>

#include "base/address.h"
#include "shm/layout.h"

namespace cluster::shm {

/// Shows which process sends the hello: `value` is at `address` in the memory of that process (PeerMemory).
struct Proof {
  std::uint64_t address = 0;  ///< 0 if the process does not offer its memory
  std::uint64_t value = 0;
};

struct Hello {
  Hello() = default;
  Hello(const SocketAddress& writer, std::uint64_t epoch, const Geometry& geometry, const Proof& proof = {},
        std::uint64_t doorbell = 0);

  /// Returns the writer's address, or an empty address if the hello contains none.
  SocketAddress writer() const;
  /// Returns true if the hello is well formed. Otherwise no field may be used.
  bool valid() const;

  std::uint64_t magic = 0;
  std::uint64_t epoch = 0;     ///< later incarnations of one address have larger epochs
  Proof proof;                 ///< shows which process is the writer
  std::uint64_t doorbell = 0;  ///< the number of the writer's doorbell
  std::uint32_t layout_version = 0;
  Geometry geometry;
  std::uint32_t scope = 0;
  std::byte ip[16] = {};  ///< in network byte order; an IPv4 address is in the first four bytes
  std::uint16_t port = 0;
  std::uint8_t family = 0;  ///< 4 or 6
  std::uint8_t reserved[5] = {};
};
static_assert(sizeof(Hello) == 80, "no padding: every byte that is sent is set");

/// Returns the abstract name of the socket on which an endpoint listens for connections.
std::string socket_name(const SocketAddress& endpoint);
/// Returns the name of the doorbell with this number. The number is random and only peers know it, so no
/// other user can take the name first.
std::string doorbell_name(std::uint64_t number);

}  // namespace cluster::shm
