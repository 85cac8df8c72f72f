#include "packet.h"

namespace cluster::ip {
namespace {

/// VIRTIO_NET_HDR_F_NEEDS_CSUM and _DATA_VALID of <linux/virtio_net.h>, which is no header for C++.
constexpr std::uint8_t kKnownFlags = 1 | 2;
constexpr std::size_t kIpv4Bytes = 20, kIpv6Bytes = 40;

/// In place of the header of a packet, none of which begins with a 'c': it has flags that do not exist.
constexpr char kMagic[kHeaderBytes + 1] = "cluster-ip";
constexpr std::uint8_t kVersion = 1;

/// Bytes behind the magic: version, wants_answer, queues, count of addresses, addresses.
constexpr std::size_t kFixedBytes = kHeaderBytes + 4;

}  // namespace

void write_number(std::uint32_t number, std::uint8_t* message) {
  for (unsigned i = 0; i < kNumberBytes; ++i) message[i] = static_cast<std::uint8_t>(number >> 8 * i);
}

std::uint32_t read_number(const std::uint8_t* message) {
  std::uint32_t number = 0;
  for (unsigned i = 0; i < kNumberBytes; ++i) number |= static_cast<std::uint32_t>(message[i]) << 8 * i;
  return number;
}

std::optional<Ends> ends_of(Message message) {
  if (message.size() < kHeaderBytes + kIpv4Bytes || message.size() > kPacketBytesMax) return std::nullopt;
  if ((message[0] & ~kKnownFlags) != 0) return std::nullopt;
  const Message packet = message.subspan(kHeaderBytes);
  Ends ends;
  switch (packet[0] >> 4) {
    case 4:
      ends.from = from_ipv4(&packet[12]);
      ends.to = from_ipv4(&packet[16]);
      return ends;
    case 6:
      if (packet.size() < kIpv6Bytes) return std::nullopt;
      std::memcpy(ends.from.data(), &packet[8], ends.from.size());
      std::memcpy(ends.to.data(), &packet[24], ends.to.size());
      // Otherwise an IPv6 packet could pass as one from the owner of an IPv4 address.
      return is_ipv4(ends.from) || is_ipv4(ends.to) ? std::nullopt : std::optional(ends);
    default: return std::nullopt;
  }
}

bool is_greeting(Message message) {
  return message.size() >= kHeaderBytes && std::memcmp(message.data(), kMagic, kHeaderBytes) == 0;
}

std::size_t write(const Greeting& greeting, std::uint8_t* message) {
  std::memcpy(message, kMagic, kHeaderBytes);
  message[kHeaderBytes] = kVersion;
  message[kHeaderBytes + 1] = greeting.wants_answer;
  message[kHeaderBytes + 2] = greeting.queues;
  message[kHeaderBytes + 3] = static_cast<std::uint8_t>(greeting.addresses.size());
  std::size_t length = kFixedBytes;
  for (const Address& address : greeting.addresses) {
    std::memcpy(message + length, address.data(), address.size());
    length += address.size();
  }
  return length;
}

std::optional<Greeting> read_greeting(Message message) {
  if (!is_greeting(message) || message.size() < kFixedBytes || message[kHeaderBytes] != kVersion)
    return std::nullopt;
  const unsigned count = message[kHeaderBytes + 3];
  if (count > kAddressesMax || message.size() != kFixedBytes + count * sizeof(Address)) return std::nullopt;
  Greeting greeting{message[kHeaderBytes + 1] != 0, message[kHeaderBytes + 2], {}};
  for (unsigned i = 0; i < count; ++i) {
    Address& address = greeting.addresses.emplace_back();
    std::memcpy(address.data(), &message[kFixedBytes + i * sizeof address], sizeof address);
  }
  return greeting;
}

}  // namespace cluster::ip
