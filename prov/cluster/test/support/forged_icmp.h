// Forged ICMP errors, as any host could send them: that a port is closed to which an endpoint of this node has sent. The kernel hands
// them to the endpoint that they name as the sender.
#pragma once

#include <netinet/icmp6.h>
#include <netinet/in.h>
#include <netinet/ip.h>
#include <netinet/ip6.h>
#include <netinet/ip_icmp.h>
#include <netinet/udp.h>
#include <sys/socket.h>

#include <cstring>
#include <vector>

#include "base/address.h"
#include "base/bytes.h"
#include "os/descriptor.h"

namespace cluster::test {

class IcmpForger {
 public:
  explicit IcmpForger(SocketAddress::Family family)
      : v6_(family == SocketAddress::Family::v6),
        socket_(::socket(v6_ ? AF_INET6 : AF_INET, SOCK_RAW | SOCK_CLOEXEC,
                         v6_ ? int{IPPROTO_ICMPV6} : int{IPPROTO_ICMP})) {}
  /// It needs CAP_NET_RAW.
  bool possible() const { return static_cast<bool>(socket_); }

  /// As if `sender` had sent to `about`.
  void send_port_unreachable(const SocketAddress& sender, const SocketAddress& about, ConstBytes quoted) {
    bytes_.clear();
    if (v6_) {
      icmp6_hdr icmp{};
      icmp.icmp6_type = ICMP6_DST_UNREACH;
      icmp.icmp6_code = ICMP6_DST_UNREACH_NOPORT;
      append(icmp);
      ip6_hdr ip{};
      ip.ip6_vfc = 0x60;
      ip.ip6_nxt = IPPROTO_UDP;
      std::memcpy(&ip.ip6_src, sender.ip().data(), sizeof ip.ip6_src);
      std::memcpy(&ip.ip6_dst, about.ip().data(), sizeof ip.ip6_dst);
      append(ip);
    } else {
      icmphdr icmp{};
      icmp.type = ICMP_DEST_UNREACH;
      icmp.code = ICMP_PORT_UNREACH;
      append(icmp);
      iphdr ip{};
      ip.version = 4;
      ip.ihl = 5;
      ip.protocol = IPPROTO_UDP;
      std::memcpy(&ip.saddr, sender.ip().data(), sizeof ip.saddr);
      std::memcpy(&ip.daddr, about.ip().data(), sizeof ip.daddr);
      append(ip);
    }
    udphdr udp{};
    udp.source = htons(sender.port());
    udp.dest = htons(about.port());
    append(udp);
    bytes_.insert(bytes_.end(), quoted.begin(), quoted.end());
    if (!v6_) set_checksum();  // the kernel does it for IPv6
    sockaddr_storage storage;
    sender.with_port(0).to(storage);
    sendto(socket_.number(), bytes_.data(), bytes_.size(), 0, reinterpret_cast<const sockaddr*>(&storage),
           v6_ ? sizeof(sockaddr_in6) : sizeof(sockaddr_in));
  }

 private:
  template <typename Header>
  void append(const Header& header) {
    const ConstBytes bytes = as_bytes(&header, sizeof header);
    bytes_.insert(bytes_.end(), bytes.begin(), bytes.end());
  }
  void set_checksum() {
    std::uint32_t sum = 0;
    for (std::size_t i = 0; i < bytes_.size(); ++i)
      sum += std::to_integer<std::uint32_t>(bytes_[i]) << (i % 2 == 0 ? 8 : 0);
    while (sum >> 16 != 0) sum = (sum & 0xffff) + (sum >> 16);
    const auto checksum = htons(static_cast<std::uint16_t>(~sum));
    std::memcpy(bytes_.data() + offsetof(icmphdr, checksum), &checksum, sizeof checksum);
  }

  const bool v6_;
  os::Descriptor socket_;
  std::vector<std::byte> bytes_;
};

}  // namespace cluster::test
