#include "os/port_filter.h"

#include <linux/if_ether.h>
#include <linux/if_packet.h>
#include <netinet/in.h>
#include <sys/socket.h>

#include <algorithm>
#include <cerrno>
#include <cstddef>
#include <span>
#include <utility>

#include "os/packet_headers.h"
#include "wire/frame.h"
#include "wire/relay_frame.h"

namespace cluster::os {
namespace {

constexpr std::uint32_t kWhole = 0xffffffff;
constexpr std::uint32_t kNetworkHeader = ETH_HLEN;
// The flag "more fragments" and the fragment offset, without the flag "don't fragment".
constexpr std::uint32_t kFragmented = 0x3fff;

std::uint32_t ancillary(int field) { return static_cast<std::uint32_t>(SKF_AD_OFF + field); }

std::uint32_t big_endian(ConstBytes bytes) {
  std::uint32_t value = 0;
  for (const std::byte b : bytes) value = value << 8 | std::to_integer<std::uint32_t>(b);
  return value;
}

/// Appends a test of the frame whose header begins at `at`. If the thinning lets the frame pass, the test
/// skips the next instruction.
void append_passing(FilterProgram& program, const link::Thinning& thinning, std::uint32_t at) {
  const std::uint32_t session = at + offsetof(wire::FrameHeader, session);
  const auto end = std::find(thinning.sessions.begin(), thinning.sessions.end(), 0);
  auto left = static_cast<std::uint8_t>(end - thinning.sessions.begin());
  program.push_back(BPF_STMT(BPF_LD | BPF_B | BPF_ABS, session));
  program.push_back(BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, thinning.mark,
                             static_cast<std::uint8_t>(left == 0 ? 1 : left + 2), 0));
  if (left == 0) return;
  program.push_back(BPF_STMT(BPF_LD | BPF_W | BPF_ABS, session));
  for (const std::uint32_t each : std::span(thinning.sessions).first(left)) {
    const wire::Le<std::uint32_t> number = each;
    const std::uint32_t loaded = big_endian(std::as_bytes(std::span(&number, 1)));
    program.push_back(BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, loaded, left, 0));
    --left;
  }
}

/// Appends a test of the frame whose header begins at `at`. If neither a session nor a path can begin with
/// the frame, the test skips the next instruction.
void append_beginning(FilterProgram& program, std::uint32_t at) {
  constexpr std::uint32_t kKindAndFlags = offsetof(wire::FrameHeader, kind);
  static_assert(offsetof(wire::FrameHeader, flags) == kKindAndFlags + 1);
  const auto first_of = [](wire::FrameKind kind) { return static_cast<std::uint32_t>(kind) << 8; };
  program.push_back(BPF_STMT(BPF_LD | BPF_H | BPF_ABS, at + kKindAndFlags));
  program.push_back(BPF_JUMP(BPF_JMP | BPF_JSET | BPF_K, wire::frame_flag::kOpening, 2, 0));
  program.push_back(BPF_JUMP(BPF_JMP | BPF_JGE | BPF_K, first_of(wire::FrameKind::path_challenge), 0, 2));
  program.push_back(
      BPF_JUMP(BPF_JMP | BPF_JGE | BPF_K, first_of(wire::FrameKind::association_unknown), 1, 0));
}

/// Builds a program that accepts a packet if all its conditions hold.
class Conditions {
 public:
  /// Loads one, two or four bytes of the packet from the offset `at`. `width` is BPF_B, BPF_H or BPF_W.
  Conditions& load(int width, std::uint32_t at) {
    program_.push_back(BPF_STMT(static_cast<std::uint16_t>(BPF_LD | BPF_ABS | width), at));
    return *this;
  }
  Conditions& mask(std::uint32_t bits) {
    program_.push_back(BPF_STMT(BPF_ALU | BPF_AND | BPF_K, bits));
    return *this;
  }
  Conditions& must_be(std::uint32_t value) {
    program_.push_back(BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, value, 0, kRefuse));
    return *this;
  }
  Conditions& must_be_at_most(std::uint32_t value) {
    program_.push_back(BPF_JUMP(BPF_JMP | BPF_JGT | BPF_K, value, kRefuse, 0));
    return *this;
  }
  Conditions& must_not_be(std::uint32_t value) {
    program_.push_back(BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, value, kRefuse, 0));
    return *this;
  }
  /// Adds the condition that neither a session nor a path can begin with the frame whose header begins at
  /// `at`.
  Conditions& must_not_begin(std::uint32_t at) {
    append_beginning(program_, at);
    program_.push_back(BPF_STMT(BPF_RET | BPF_K, 0));
    return *this;
  }
  /// Adds the condition that the thinning passes the frame whose header begins at `at`.
  Conditions& must_pass(const link::Thinning& thinning, std::uint32_t at) {
    append_passing(program_, thinning, at);
    program_.push_back(BPF_STMT(BPF_RET | BPF_K, 0));
    return *this;
  }
  /// Completes and returns the program. It accepts the whole packet if every condition holds, and otherwise
  /// drops the packet.
  FilterProgram finish() {
    program_.push_back(BPF_STMT(BPF_RET | BPF_K, kWhole));
    const std::size_t refusal = program_.size();
    program_.push_back(BPF_STMT(BPF_RET | BPF_K, 0));
    for (std::size_t i = 0; i < refusal; ++i) {
      if (BPF_CLASS(program_[i].code) != BPF_JMP) continue;
      for (std::uint8_t* const jump : {&program_[i].jt, &program_[i].jf}) {
        if (*jump == kRefuse) *jump = static_cast<std::uint8_t>(refusal - i - 1);
      }
    }
    return std::move(program_);
  }

 private:
  /// A jump distance that finish() replaces by the distance to the refusal.
  static constexpr std::uint8_t kRefuse = 255;

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

FilterProgram frames_for(const SocketAddress& ours, std::uint16_t ether_type,
                         const link::Thinning& thinning) {
  static_assert(PACKET_HOST == 0 && PACKET_BROADCAST == 1);
  const std::uint32_t last_type = ether_type == kClusterEtherType ? PACKET_HOST : PACKET_BROADCAST;
  Conditions conditions;
  conditions.load(BPF_W, ancillary(SKF_AD_PKTTYPE)).must_be_at_most(last_type);
  conditions.load(BPF_H, ETH_HLEN - 2).must_be(ether_type);
  if (ours.family() == SocketAddress::Family::v6) {
    require_v6(conditions, ours);
  } else {
    require_v4(conditions, ours);
  }
  const auto frame = static_cast<std::uint32_t>(headers_size(ours.family()));
  if (ether_type != kClusterEtherType) conditions.must_not_begin(frame);
  if (thinning.on) conditions.must_pass(thinning, frame);
  return conditions.finish();
}

FilterProgram frames_beside_ring(int index) {
  constexpr std::uint32_t kUdpHeader = 8;  // a program of a UDP socket sees the packet from the UDP header on
  FilterProgram program{BPF_STMT(BPF_LD | BPF_W | BPF_ABS, ancillary(SKF_AD_IFINDEX)),
                        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, static_cast<std::uint32_t>(index), 0, 4)};
  append_beginning(program, kUdpHeader);
  program.push_back(BPF_STMT(BPF_RET | BPF_K, kWhole));
  program.push_back(BPF_STMT(BPF_RET | BPF_K, 0));
  return program;
}

FilterProgram steering(const PortSockets& sockets, const link::Thinning& thinning) {
  // In this program, offset 0 is the first byte after the UDP header.
  constexpr std::uint32_t kKind = offsetof(wire::FrameHeader, kind);
  constexpr std::uint32_t kLength = offsetof(wire::FrameHeader, length);
  constexpr std::uint32_t kBehindSession = offsetof(wire::FrameHeader, session) + sizeof(std::uint32_t);
  constexpr std::uint32_t kTag = sizeof(wire::RelayTag);
  static_assert(sizeof(wire::RelayTag) < sizeof(wire::FrameHeader));
  constexpr auto kKeepAlive = static_cast<std::uint32_t>(wire::FrameKind::keep_alive);
  constexpr std::uint32_t kPart = (1u << link::Thinning::kKeepAliveShift) - 1;
  const bool answered = sockets.keep_alives != PortSockets::kMain;
  FilterProgram program;
  if (thinning.on) {
    program.push_back(BPF_STMT(BPF_LD | BPF_W | BPF_LEN, 0));
    program.push_back(BPF_JUMP(BPF_JMP | BPF_JGE | BPF_K, kBehindSession, 1, 0));
    program.push_back(BPF_STMT(BPF_RET | BPF_K, sockets.aside));
    // The program checks the kind before the session, because it thins the keep-alives of all sessions.
    if (answered) {
      program.push_back(BPF_STMT(BPF_LD | BPF_B | BPF_ABS, kKind));
      program.push_back(BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, kKeepAlive, 0, 4));
      program.push_back(BPF_STMT(BPF_LD | BPF_W | BPF_ABS, ancillary(SKF_AD_RANDOM)));
      program.push_back(BPF_JUMP(BPF_JMP | BPF_JSET | BPF_K, kPart, 1, 0));
      program.push_back(BPF_STMT(BPF_RET | BPF_K, sockets.aside));
      program.push_back(BPF_STMT(BPF_JMP | BPF_JA, 0));
    }
    const std::size_t test = program.size();
    append_passing(program, thinning, 0);
    program.push_back(BPF_STMT(BPF_RET | BPF_K, sockets.aside));
    if (answered) program[test - 1].k = static_cast<std::uint32_t>(program.size() - test);
  }
  // The kernel may have joined a keep-alive and later datagrams from the same address. Such a packet goes to
  // the main socket, because the responder would lose the other datagrams. Only the tag of a relay may follow
  // the frame. It is shorter than any frame.
  program.push_back(BPF_STMT(BPF_LD | BPF_B | BPF_ABS, kKind));
  program.push_back(BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, kKeepAlive, 0, 11));
  program.push_back(BPF_STMT(BPF_LD | BPF_B | BPF_ABS, kLength + 1));  // little-endian
  program.push_back(BPF_STMT(BPF_ALU | BPF_LSH | BPF_K, 8));
  program.push_back(BPF_STMT(BPF_MISC | BPF_TAX, 0));
  program.push_back(BPF_STMT(BPF_LD | BPF_B | BPF_ABS, kLength));
  program.push_back(BPF_STMT(BPF_ALU | BPF_OR | BPF_X, 0));
  program.push_back(BPF_STMT(BPF_MISC | BPF_TAX, 0));
  program.push_back(BPF_STMT(BPF_LD | BPF_W | BPF_LEN, 0));
  program.push_back(BPF_STMT(BPF_ALU | BPF_SUB | BPF_X, 0));
  program.push_back(BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, 0, 1, 0));
  program.push_back(BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, kTag, 0, 1));
  program.push_back(BPF_STMT(BPF_RET | BPF_K, sockets.keep_alives));
  program.push_back(BPF_STMT(BPF_RET | BPF_K, PortSockets::kMain));
  return program;
}

FilterProgram steering_by_host(std::span<const SocketAddress> hosts, SocketAddress::Family family,
                               std::uint64_t secret) {
  const bool v6 = family == SocketAddress::Family::v6;
  const std::uint32_t source = static_cast<std::uint32_t>(SKF_NET_OFF) + (v6 ? 8 : 12);
  const std::uint32_t words = v6 ? 4 : 1;
  const auto factor = [&](std::uint32_t word) {
    return v6 ? static_cast<std::uint32_t>((secret * (2 * word + 1)) >> 32) | 1 : 1;
  };
  FilterProgram program;
  for (std::uint32_t word = 0; word < words; ++word) {
    program.push_back(BPF_STMT(BPF_LD | BPF_W | BPF_ABS, source + 4 * word));
    program.push_back(BPF_STMT(BPF_ALU | BPF_MUL | BPF_K, factor(word)));
    if (word != 0) {
      program.push_back(BPF_STMT(BPF_LDX | BPF_MEM, 0));
      program.push_back(BPF_STMT(BPF_ALU | BPF_XOR | BPF_X, 0));
    }
    program.push_back(BPF_STMT(BPF_ST, 0));
  }
  for (const SocketAddress& host : hosts) {
    if (host.family() != family) continue;
    std::uint32_t sum = 0;
    for (std::uint32_t word = 0; word < words; ++word)
      sum ^= big_endian(host.ip().subspan(4 * word, 4)) * factor(word);
    program.push_back(BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, sum, 0, 1));
    program.push_back(BPF_STMT(BPF_RET | BPF_K, 0));
  }
  program.push_back(BPF_STMT(BPF_RET | BPF_K, 1));
  return program;
}

namespace {

// Offsets in a program of a fanout group. Offset 0 is the first byte after the Ethernet header.
constexpr std::uint32_t kDestinationV4 = 16;
constexpr std::uint32_t kDestinationV6 = 24;
constexpr std::uint32_t kPortV4 = 20 + 2;
constexpr std::uint32_t kPortV6 = 40 + 2;

/// Appends the search in rings of one family. The rings are sorted by port.
class PortSearch {
 public:
  explicit PortSearch(FilterProgram& program) : program_(program) {}

  void append(std::span<const RingTarget> rings) {
    const bool v6 = rings.front().address.family() == SocketAddress::Family::v6;
    program_.push_back(BPF_STMT(BPF_LD | BPF_H | BPF_ABS, v6 ? kPortV6 : kPortV4));
    halve(rings);
  }

 private:
  void halve(std::span<const RingTarget> rings) {
    const auto middle =
        std::find_if(rings.begin() + static_cast<std::ptrdiff_t>(rings.size() / 2), rings.end(),
                     [&](const RingTarget& ring) { return port(ring) != port(rings.front()); });
    if (middle == rings.end()) return append_port(rings);
    const std::uint16_t border = port(*middle);
    const auto split = std::find_if(rings.begin(), rings.end(),
                                    [&](const RingTarget& ring) { return port(ring) == border; });
    const auto lower = static_cast<std::size_t>(split - rings.begin());
    // The upper half may begin farther away than the 255 instructions that a conditional jump reaches.
    // Therefore an unconditional jump leads there. If the port is in the lower half, the conditional jump
    // skips the unconditional jump.
    program_.push_back(BPF_JUMP(BPF_JMP | BPF_JGE | BPF_K, border, 0, 1));
    const std::size_t jump = program_.size();
    program_.push_back(BPF_STMT(BPF_JMP | BPF_JA, 0));
    halve(rings.first(lower));
    program_[jump].k = static_cast<std::uint32_t>(program_.size() - jump - 1);
    halve(rings.subspan(lower));
  }

  /// All rings must have the same port. Compares the addresses only if there are several rings.
  void append_port(std::span<const RingTarget> rings) {
    program_.push_back(BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, port(rings.front()), 1, 0));
    program_.push_back(BPF_STMT(BPF_RET | BPF_K, 0));
    if (rings.size() != 1) {
      for (const RingTarget& ring : rings) append_address(ring);
    }
    program_.push_back(BPF_STMT(BPF_RET | BPF_K, rings.size() == 1 ? rings.front().index : 0));
  }

  void append_address(const RingTarget& ring) {
    const ConstBytes ip = ring.address.ip();
    const std::uint32_t at = ip.size() == 4 ? kDestinationV4 : kDestinationV6;
    const auto words = static_cast<std::uint32_t>(ip.size() / 4);
    for (std::uint32_t word = 0; word < words; ++word) {
      const auto to_next_ring = static_cast<std::uint8_t>(2 * (words - word - 1) + 1);
      program_.push_back(BPF_STMT(BPF_LD | BPF_W | BPF_ABS, at + 4 * word));
      program_.push_back(
          BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, big_endian(ip.subspan(4 * word, 4)), 0, to_next_ring));
    }
    program_.push_back(BPF_STMT(BPF_RET | BPF_K, ring.index));
  }

  static std::uint16_t port(const RingTarget& ring) { return ring.address.port(); }

  FilterProgram& program_;
};

}  // namespace

FilterProgram spreading(std::span<const RingTarget> rings) {
  std::vector<RingTarget> sorted(rings.begin(), rings.end());
  const auto is_v4 = [](const RingTarget& ring) {
    return ring.address.family() == SocketAddress::Family::v4;
  };
  std::sort(sorted.begin(), sorted.end(), [&](const RingTarget& one, const RingTarget& other) {
    return std::pair(is_v4(other), one.address.port()) < std::pair(is_v4(one), other.address.port());
  });
  const auto split = static_cast<std::size_t>(std::count_if(sorted.begin(), sorted.end(), is_v4));
  const std::span<const RingTarget> v4 = std::span(sorted).first(split);
  const std::span<const RingTarget> v6 = std::span(sorted).subspan(split);
  FilterProgram program;
  PortSearch search(program);
  if (!v4.empty() && !v6.empty()) {
    program.push_back(BPF_STMT(BPF_LD | BPF_B | BPF_ABS, 0));
    program.push_back(BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, 0x45, 1, 0));
    program.push_back(BPF_STMT(BPF_JMP | BPF_JA, 0));
    search.append(v4);
    program[2].k = static_cast<std::uint32_t>(program.size() - 3);
    search.append(v6);
  } else if (!sorted.empty()) {
    search.append(sorted);
  } else {
    return no_frames();
  }
  return program;
}

FilterProgram no_frames() { return {BPF_STMT(BPF_RET | BPF_K, 0)}; }

namespace {

int set_program(int socket, int level, int option, FilterProgram& program) {
  sock_fprog description{};
  description.len = static_cast<unsigned short>(program.size());
  description.filter = program.data();
  return setsockopt(socket, level, option, &description, sizeof description) == 0 ? 0 : errno;
}

}  // namespace

int attach_filter(int socket, int option, FilterProgram& program) {
  return set_program(socket, SOL_SOCKET, option, program);
}

int install_spreading(int socket, FilterProgram& program) {
  return set_program(socket, SOL_PACKET, PACKET_FANOUT_DATA, program);
}

}  // namespace cluster::os
