#include "os/port_filter.h"

#include <linux/if_ether.h>
#include <linux/if_packet.h>
#include <netinet/in.h>
#include <sys/socket.h>

#include <cerrno>
#include <cstddef>

#include "wire/frame.h"

namespace cluster::os {
namespace {

constexpr std::uint32_t kWhole = 0xffffffff;
constexpr std::uint32_t kNetworkHeader = ETH_HLEN;
constexpr std::uint32_t kFragmented = 0x3fff;  // "more fragments" and the offset; not "don't fragment"

std::uint32_t ancillary(int field) { return static_cast<std::uint32_t>(SKF_AD_OFF + field); }

std::uint32_t big_endian(ConstBytes bytes) {
  std::uint32_t value = 0;
  for (const std::byte b : bytes) value = value << 8 | std::to_integer<std::uint32_t>(b);
  return value;
}

/// A chain of conditions that must all hold.
class Conditions {
 public:
  /// BPF_B, BPF_H or BPF_W: a byte, two or four.
  Conditions& load(int width, std::uint32_t at) {
    program_.push_back(BPF_STMT(static_cast<std::uint16_t>(BPF_LD | BPF_ABS | width), at));
    return *this;
  }
  Conditions& mask(std::uint32_t bits) {
    program_.push_back(BPF_STMT(BPF_ALU | BPF_AND | BPF_K, bits));
    return *this;
  }
  Conditions& must_be(std::uint32_t value) {
    program_.push_back(BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, value, 0, 0));
    return *this;
  }
  /// Ends the program: `yes` if every condition held, `no` at the first that did not.
  FilterProgram decide(std::uint32_t yes, std::uint32_t no) {
    program_.push_back(BPF_STMT(BPF_RET | BPF_K, yes));
    const std::size_t refusal = program_.size();
    program_.push_back(BPF_STMT(BPF_RET | BPF_K, no));
    for (std::size_t i = 0; i < refusal; ++i) {
      if (BPF_CLASS(program_[i].code) == BPF_JMP) program_[i].jf = static_cast<std::uint8_t>(refusal - i - 1);
    }
    return std::move(program_);
  }

 private:
  FilterProgram program_;
};

void require_v4(Conditions& conditions, const SocketAddress& ours) {
  constexpr std::uint32_t kUdpHeader = kNetworkHeader + 20;
  conditions.load(BPF_B, kNetworkHeader).must_be(0x45);
  conditions.load(BPF_H, kNetworkHeader + 6).mask(kFragmented).must_be(0);
  conditions.load(BPF_B, kNetworkHeader + 9).must_be(IPPROTO_UDP);
  conditions.load(BPF_W, kNetworkHeader + 16).must_be(big_endian(ours.ip()));
  conditions.load(BPF_H, kUdpHeader + 2).must_be(ours.port());
}

void require_v6(Conditions& conditions, const SocketAddress& ours) {
  constexpr std::uint32_t kUdpHeader = kNetworkHeader + 40;
  conditions.load(BPF_B, kNetworkHeader).mask(0xf0).must_be(0x60);
  conditions.load(BPF_B, kNetworkHeader + 6).must_be(IPPROTO_UDP);
  for (std::uint32_t i = 0; i < 16; i += 4) {
    conditions.load(BPF_W, kNetworkHeader + 24 + i).must_be(big_endian(ours.ip().subspan(i, 4)));
  }
  conditions.load(BPF_H, kUdpHeader + 2).must_be(ours.port());
}

}  // namespace

FilterProgram frames_for(const SocketAddress& ours, std::uint16_t ether_type) {
  Conditions conditions;
  conditions.load(BPF_W, ancillary(SKF_AD_PKTTYPE)).must_be(PACKET_HOST);
  conditions.load(BPF_H, ETH_HLEN - 2).must_be(ether_type);
  if (ours.family() == SocketAddress::Family::v6) {
    require_v6(conditions, ours);
  } else {
    require_v4(conditions, ours);
  }
  return conditions.decide(kWhole, 0);
}

FilterProgram all_but_interface(int index) {
  Conditions conditions;
  conditions.load(BPF_W, ancillary(SKF_AD_IFINDEX)).must_be(static_cast<std::uint32_t>(index));
  return conditions.decide(0, kWhole);
}

FilterProgram keep_alives_to_second() {
  Conditions conditions;  // offset 0 is the first byte behind the UDP header
  conditions.load(BPF_B, offsetof(wire::FrameHeader, kind))
      .must_be(static_cast<std::uint32_t>(wire::FrameKind::keep_alive));
  return conditions.decide(1, 0);
}

int attach_filter(int socket, int option, FilterProgram& program) {
  sock_fprog description{};
  description.len = static_cast<unsigned short>(program.size());
  description.filter = program.data();
  return setsockopt(socket, SOL_SOCKET, option, &description, sizeof description) == 0 ? 0 : errno;
}

}  // namespace cluster::os
