// The one message of a shared-memory connection: the writer's identity and how the ring that comes with it
// is cut. It travels between processes of one host and one version of the layout (part of the listening
// socket's name), so its integers are the host's.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>

#include "base/address.h"
#include "shm/layout.h"

namespace cluster::shm {

/// As it is sent.
struct HelloMessage {
  std::uint64_t magic;
  std::uint64_t epoch;
  std::uint64_t proof_address;
  std::uint64_t proof_value;
  std::uint64_t doorbell;
  std::uint32_t layout_version;
  std::uint32_t slots;
  std::uint32_t arena_bytes;
  std::uint32_t scope;
  std::uint8_t ip[16];  ///< network byte order; IPv4 in the first four
  std::uint16_t port;
  std::uint8_t family;  ///< 4 or 6
  std::uint8_t reserved[5];
};
static_assert(sizeof(HelloMessage) == 80, "no padding: every byte that is sent is set");

/// Proves which process sends this: `value` lies at `address` in its memory (PeerMemory).
struct Proof {
  std::uint64_t address = 0;  ///< 0: its memory is not offered
  std::uint64_t value = 0;
};

/// The hello after it has been checked.
struct Hello {
  SocketAddress writer;
  std::uint64_t epoch = 0;  ///< later incarnations of one address have larger ones
  Geometry geometry;
  Proof proof;                 ///< that the writer's memory is in reach
  std::uint64_t doorbell = 0;  ///< the number of the writer's doorbell
};

/// The abstract name of the socket that listens for connections of an endpoint.
std::string socket_name(const SocketAddress& endpoint);
/// The name of the doorbell with this number. The number is random and only peers know it: no other user can take the name
/// first.
std::string doorbell_name(std::uint64_t number);

HelloMessage encode(const Hello& hello);
/// Nothing if the message is invalid.
std::optional<Hello> decode(const HelloMessage& message);

}  // namespace cluster::shm
