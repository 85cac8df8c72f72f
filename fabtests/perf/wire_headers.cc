#include "wire_headers.h"

#include <arpa/inet.h>
#include <net/if.h>
#include <netinet/in.h>
#include <netinet/ip.h>
#include <netinet/udp.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <stdexcept>

namespace perf {
namespace {

/// virtio_net_hdr; <linux/virtio_net.h> is no C++.
struct VnetHeader {
  std::uint8_t flags = 0;
  std::uint8_t gso_type = 0;
  std::uint16_t headers_size = 0;
  std::uint16_t gso_size = 0;
  std::uint16_t checksum_start = 0;
  std::uint16_t checksum_offset = 0;
};
static_assert(sizeof(VnetHeader) == kVnetBytes);
constexpr std::uint8_t kNeedsChecksum = 1, kGsoUdpL4 = 5;

std::uint32_t sum(const void* bytes, std::size_t size, std::uint32_t start) {
  for (std::size_t i = 0; i < size; i += 2) {
    std::uint16_t word;
    std::memcpy(&word, static_cast<const char*>(bytes) + i, sizeof word);
    start += word;
  }
  return start;
}

std::uint16_t fold(std::uint32_t value) {
  while (value >> 16 != 0) value = (value & 0xffff) + (value >> 16);
  return static_cast<std::uint16_t>(value);
}

template <typename Header>
void append(std::vector<char>& bytes, const Header& header) {
  const auto* at = reinterpret_cast<const char*>(&header);
  bytes.insert(bytes.end(), at, at + sizeof header);
}

void append_udp(std::vector<char>& bytes, const WireChoice& choice, const WireAddress& from,
                const WireAddress& to, std::size_t payload, bool checksum) {
  const auto udp_bytes = static_cast<std::uint16_t>(sizeof(udphdr) + payload);
  iphdr ip{};
  ip.version = 4;
  ip.ihl = 5;
  ip.tot_len = htons(static_cast<std::uint16_t>(sizeof ip + udp_bytes));
  ip.frag_off = htons(IP_DF);
  ip.ttl = 64;
  ip.protocol = IPPROTO_UDP;
  ip.saddr = from.ip;
  ip.daddr = to.ip;
  ip.check = static_cast<std::uint16_t>(~fold(sum(&ip, sizeof ip, 0)));
  if (choice.behind == Behind::bad_sum) ip.check ^= 0x5555;
  append(bytes, ip);
  udphdr udp{};
  udp.source = from.port;
  udp.dest = to.port;
  udp.len = htons(udp_bytes);
  if (checksum) udp.check = fold(sum(&ip.saddr, 8, htons(IPPROTO_UDP) + std::uint32_t{udp.len}));
  append(bytes, udp);
}

}  // namespace

void fail(const std::string& what) { throw std::runtime_error(what + ": " + std::strerror(errno)); }

WireAddress address_of(const std::string& interface) {
  WireAddress address;
  const int socket = ::socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
  ifreq request{};
  std::strncpy(request.ifr_name, interface.c_str(), IFNAMSIZ - 1);
  const bool has_mac = ::ioctl(socket, SIOCGIFHWADDR, &request) == 0;
  std::memcpy(address.mac.data(), request.ifr_hwaddr.sa_data, address.mac.size());
  const bool has_ip = has_mac && ::ioctl(socket, SIOCGIFADDR, &request) == 0;
  address.ip = reinterpret_cast<const sockaddr_in*>(&request.ifr_addr)->sin_addr.s_addr;
  const int error = errno;
  ::close(socket);
  errno = error;
  if (!has_ip) fail(interface);
  return address;
}

std::size_t headers_bytes(const WireChoice& choice) {
  return choice.frames_as == FramesAs::udp ? kUdpHeadersBytes : kEthernetBytes;
}

std::vector<char> headers(const WireChoice& choice, const WireAddress& from, const WireAddress& to,
                          std::size_t payload, std::size_t segment) {
  std::vector<char> bytes;
  VnetHeader vnet;
  if (segment != 0) {
    vnet.flags = kNeedsChecksum;
    vnet.gso_type = kGsoUdpL4;
    vnet.headers_size = kUdpHeadersBytes;
    vnet.gso_size = static_cast<std::uint16_t>(segment);
    vnet.checksum_start = kUdpHeadersBytes - sizeof(udphdr);
    vnet.checksum_offset = offsetof(udphdr, check);
  }
  if (choice.vnet_header) append(bytes, vnet);
  bytes.insert(bytes.end(), to.mac.begin(), to.mac.end());
  bytes.insert(bytes.end(), from.mac.begin(), from.mac.end());
  const bool udp = choice.frames_as == FramesAs::udp;
  append(bytes, htons(udp ? std::uint16_t{0x0800} : kExperimentalType));
  if (udp) append_udp(bytes, choice, from, to, payload, segment != 0);
  return bytes;
}

}  // namespace perf
