// What travels between nodes. A message begins with its number, one more than that of the sender's message before to the
// same peer. Behind it is either an IP packet with the header (struct virtio_net_hdr) with which the interface delivered
// it, or a greeting: the first message to a node, which says which addresses its sender has. A greeting also says that no
// message with a lower number comes any more.
//
// The header lets one message carry a super-frame: up to 64 KB that the kernel cuts into segments where it has to. It
// also says that a checksum is not computed yet; the provider protects the bytes in between.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "address.h"

namespace cluster::ip {

/// A packet with its header, or a greeting: a message without its number.
using Message = std::span<const std::uint8_t>;

constexpr std::size_t kNumberBytes = 4;
constexpr std::size_t kHeaderBytes = 10;        ///< of struct virtio_net_hdr
constexpr std::size_t kPacketBytesMax = 65545;  ///< the header and the longest packet of IPv4
constexpr std::size_t kMessageBytesMax = kNumberBytes + kPacketBytesMax;
constexpr unsigned kAddressesMax = 2;  ///< of a node: one of IPv4, one of IPv6

void write_number(std::uint32_t number, std::uint8_t* message);
std::uint32_t read_number(const std::uint8_t* message);

/// The two addresses of a packet.
struct Ends {
  Address from, to;
};
/// The ends of the packet in a message. Nothing if the message is no packet: this is the gate for bytes of peers, too.
std::optional<Ends> ends_of(Message message);

struct Greeting {
  bool wants_answer = false;  ///< the sender does not know the addresses of the receiver
  std::uint8_t queues = 1;    ///< of the sender's interface
  std::vector<Address> addresses;
};

bool is_greeting(Message message);
/// Returns the length of the message that it writes, which is short.
std::size_t write(const Greeting& greeting, std::uint8_t* message);
/// Nothing if the message is no greeting, or is malformed or of another version.
std::optional<Greeting> read_greeting(Message message);

}  // namespace cluster::ip
