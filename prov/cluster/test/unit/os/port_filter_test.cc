#include "os/port_filter.h"

#include <gtest/gtest.h>
#include <sys/socket.h>

#include <algorithm>
#include <cstddef>
#include <vector>

#include "conformance/two_hosts.h"
#include "link/process_probe.h"
#include "os/descriptor.h"
#include "os/packet_headers.h"
#include "wire/frame.h"

namespace cluster::os {
namespace {

using Family = SocketAddress::Family;

/// Runs the program in the kernel: a socket pair delivers only what passes.
class Sieve {
 public:
  explicit Sieve(FilterProgram program) {
    int ends[2];
    EXPECT_EQ(socketpair(AF_UNIX, SOCK_DGRAM | SOCK_NONBLOCK, 0, ends), 0);
    in_ = Descriptor(ends[0]);
    out_ = Descriptor(ends[1]);
    EXPECT_EQ(attach_filter(out_.number(), SO_ATTACH_FILTER, program), 0);
  }
  bool passes(const std::vector<std::byte>& frame) {
    // A refused datagram is an error (EPERM) to its sender, or simply is not there.
    send(in_.number(), frame.data(), frame.size(), MSG_NOSIGNAL);
    std::vector<std::byte> arrived(frame.size() + 1);
    return recv(out_.number(), arrived.data(), arrived.size(), 0) == static_cast<ssize_t>(frame.size());
  }

 private:
  Descriptor in_;
  Descriptor out_;
};

std::vector<std::byte> frame_to(const SocketAddress& to, std::size_t payload,
                                Framing framing = Framing::udp) {
  const Origin origin{{}, test::loopback(to.family()).with_port(1)};
  link::Path path;
  path.to = to;
  std::vector<std::byte> frame(headers_size(to.family()) + payload);
  write_headers(frame.data(), origin, path, payload, framing);
  return frame;
}

SocketAddress ours(Family family) { return test::loopback(family).with_port(9228); }

/// Differs from ours() in byte `at` of the IP.
SocketAddress other(Family family, std::size_t at) {
  const SocketAddress base = ours(family);
  std::vector<std::byte> changed(base.ip().begin(), base.ip().end());
  changed[at] ^= std::byte{1};
  return family == Family::v4 ? SocketAddress::v4(changed.data(), 9228)
                              : SocketAddress::v6(changed.data(), 9228);
}

TEST(PortFilter, LetsThroughOurFramesOfAnySize) {
  for (const Family family : {Family::v4, Family::v6}) {
    Sieve sieve(frames_for(ours(family), ip_ether_type(family)));
    for (const std::size_t payload :
         {std::size_t{4}, std::size_t{32}, std::size_t{1472}, std::size_t{60000}}) {
      EXPECT_TRUE(sieve.passes(frame_to(ours(family), payload))) << payload;
    }
  }
}

TEST(PortFilter, HoldsBackOtherPortsAndHosts) {
  for (const Family family : {Family::v4, Family::v6}) {
    Sieve sieve(frames_for(ours(family), ip_ether_type(family)));
    EXPECT_FALSE(sieve.passes(frame_to(ours(family).with_port(9229), 32)));
    EXPECT_FALSE(sieve.passes(frame_to(ours(family).with_port(9228 ^ 0x100), 32)));
    for (std::size_t at = 0; at < ours(family).ip().size(); ++at) {
      EXPECT_FALSE(sieve.passes(frame_to(other(family, at), 32))) << at;
    }
  }
}

TEST(PortFilter, KnowsOneTypeFromTheOther) {
  for (const Family family : {Family::v4, Family::v6}) {
    Sieve ip(frames_for(ours(family), ip_ether_type(family)));
    EXPECT_FALSE(ip.passes(frame_to(ours(family), 64, Framing::own)));
    Sieve own(frames_for(ours(family), kClusterEtherType));
    EXPECT_TRUE(own.passes(frame_to(ours(family), 64, Framing::own)));
    EXPECT_FALSE(own.passes(frame_to(ours(family), 64)));
    EXPECT_FALSE(own.passes(frame_to(ours(family).with_port(9229), 64, Framing::own)));
  }
}

/// The host's firewall has to let these pass, and it does not see the frames of a ring.
TEST(PortFilter, LeavesFramesWithWhichASessionOrAPathBeginsToTheSocket) {
  using enum wire::FrameKind;
  for (const Family family : {Family::v4, Family::v6}) {
    Sieve ip(frames_for(ours(family), ip_ether_type(family)));
    Sieve own(frames_for(ours(family), kClusterEtherType));
    for (std::uint8_t kind = 1; kind <= static_cast<std::uint8_t>(sibling_response); ++kind) {
      for (unsigned flags = 0; flags < 256; ++flags) {
        const auto is = [&](wire::FrameKind each) { return kind == static_cast<std::uint8_t>(each); };
        const bool begins = (flags & wire::frame_flag::kOpening) != 0 || is(path_challenge) ||
                            is(path_response) || is(association_request) || is(association_response);
        for (const Framing framing : {Framing::udp, Framing::own}) {
          std::vector<std::byte> frame = frame_to(ours(family), 64, framing);
          frame.at(headers_size(family) + offsetof(wire::FrameHeader, kind)) = std::byte{kind};
          frame.at(headers_size(family) + offsetof(wire::FrameHeader, flags)) = static_cast<std::byte>(flags);
          const bool passes = framing == Framing::own ? own.passes(frame) : ip.passes(frame);
          EXPECT_EQ(passes, framing == Framing::own || !begins) << int{kind} << " " << flags;
        }
      }
    }
  }
}

TEST(PortFilter, HoldsBackFragmentsOptionsAndOtherProtocols) {
  struct Damage {
    std::size_t at;
    int value;
  };
  Sieve sieve_v4(frames_for(ours(Family::v4), ip_ether_type(Family::v4)));
  for (const Damage damage : {Damage{14, 0x46}, {20, 0x20}, {20, 0x01}, {21, 1}, {23, 6}, {13, 0x06}}) {
    std::vector<std::byte> frame = frame_to(ours(Family::v4), 64);
    frame[damage.at] = static_cast<std::byte>(damage.value);
    EXPECT_FALSE(sieve_v4.passes(frame)) << damage.at;
  }
  Sieve sieve_v6(frames_for(ours(Family::v6), ip_ether_type(Family::v6)));
  for (const Damage damage : {Damage{14, 0x40}, {20, 44}, {20, 0}, {12, 0x08}}) {
    std::vector<std::byte> frame = frame_to(ours(Family::v6), 64);
    frame[damage.at] = static_cast<std::byte>(damage.value);
    EXPECT_FALSE(sieve_v6.passes(frame)) << damage.at;
  }
}

TEST(PortFilter, HoldsBackFramesTooShortToTell) {
  for (const Family family : {Family::v4, Family::v6}) {
    Sieve sieve(frames_for(ours(family), ip_ether_type(family)));
    std::vector<std::byte> frame = frame_to(ours(family), 0);
    frame.resize(frame.size() - 5);  // the destination port is cut
    EXPECT_FALSE(sieve.passes(frame));
  }
}

TEST(PortFilter, DuringAFloodOnlyFramesWithTheMarkPass) {
  for (const Family family : {Family::v4, Family::v6}) {
    Sieve sieve(frames_for(ours(family), ip_ether_type(family), {.mark = 0x17, .on = true}));
    std::vector<std::byte> frame = frame_to(ours(family), 64);
    std::byte& mark = frame.at(headers_size(family) + offsetof(wire::FrameHeader, session));
    for (unsigned value = 0; value < 256; ++value) {
      mark = static_cast<std::byte>(value);
      EXPECT_EQ(sieve.passes(frame), value == 0x17) << value;
    }
    mark = std::byte{0x17};
    frame.resize(headers_size(family) + offsetof(wire::FrameHeader, session));
    EXPECT_FALSE(sieve.passes(frame)) << "too short to have a mark";
  }
}

TEST(PortFilter, DuringAFloodFramesOfTheListedSessionsPassAsWell) {
  for (const std::size_t listed : {std::size_t{1}, std::size_t{3}, link::Thinning::kSessionsMax}) {
    link::Thinning thinning{.mark = 0x17, .on = true};
    for (std::size_t i = 0; i < listed; ++i)
      thinning.sessions[i] = 0xABCDEF42 + static_cast<std::uint32_t>(i << 8);
    Sieve sieve(frames_for(ours(Family::v4), ip_ether_type(Family::v4), thinning));
    const auto passes = [&](std::uint32_t session) {
      std::vector<std::byte> frame = frame_to(ours(Family::v4), 64);
      const wire::Le<std::uint32_t> number = session;
      std::memcpy(&frame.at(headers_size(Family::v4) + offsetof(wire::FrameHeader, session)), &number,
                  sizeof number);
      return sieve.passes(frame);
    };
    EXPECT_TRUE(passes(0x12345617)) << "it has the mark";
    for (std::size_t i = 0; i < listed; ++i) EXPECT_TRUE(passes(thinning.sessions[i])) << i;
    EXPECT_FALSE(passes(0xABCDEF43));
    EXPECT_FALSE(passes(0x42EFCDAB));
    EXPECT_FALSE(passes(0));
  }
}

TEST(PortFilter, TheKernelTakesAsManyMemberHostsAsAreNamed) {
  for (const Family family : {Family::v4, Family::v6}) {
    std::vector<SocketAddress> hosts;
    for (std::size_t i = 0; i < link::ProcessProbe::kHostsMax; ++i) {
      std::vector<std::byte> ip(16, static_cast<std::byte>(i));
      ip[1] = static_cast<std::byte>(i >> 8);
      hosts.push_back(family == Family::v4 ? SocketAddress::v4(ip.data(), 0)
                                           : SocketAddress::v6(ip.data(), 0));
    }
    EXPECT_LE(steering_by_host(hosts, family, 12345).size(), std::size_t{BPF_MAXINSNS});
  }
}

/// Runs the instructions that spreading() uses, as the kernel does for a fanout group: `packet` begins behind the Ethernet
/// header, and a load beyond its end returns 0.
std::uint32_t run_spreading(const FilterProgram& program, ConstBytes packet) {
  std::uint32_t a = 0;
  for (std::size_t at = 0; at < program.size(); ++at) {
    const sock_filter& step = program[at];
    if (BPF_CLASS(step.code) == BPF_RET) return step.k;
    if (BPF_CLASS(step.code) == BPF_LD) {
      const std::size_t size = BPF_SIZE(step.code) == BPF_W ? 4 : BPF_SIZE(step.code) == BPF_H ? 2 : 1;
      if (step.k + size > packet.size()) return 0;
      a = 0;
      for (std::size_t i = 0; i < size; ++i) a = a << 8 | std::to_integer<std::uint32_t>(packet[step.k + i]);
    } else if (BPF_OP(step.code) == BPF_JA) {
      at += step.k;
    } else {
      const bool taken = BPF_OP(step.code) == BPF_JGE ? a >= step.k : a == step.k;
      EXPECT_TRUE(BPF_OP(step.code) == BPF_JGE || BPF_OP(step.code) == BPF_JEQ);
      at += taken ? step.jt : step.jf;
    }
  }
  ADD_FAILURE() << "the program has no end";
  return 0;
}

std::uint32_t ring_of(const FilterProgram& program, const SocketAddress& to) {
  const std::vector<std::byte> frame = frame_to(to, 32);
  return run_spreading(program, ConstBytes(frame).subspan(kEthernetBytes));
}

TEST(Spreading, EachPortHasItsRing) {
  for (const Family family : {Family::v4, Family::v6}) {
    for (const std::size_t count : {1u, 2u, 3u, 64u, 255u, 256u}) {
      std::vector<RingTarget> rings;
      for (std::size_t i = 0; i < count; ++i) {
        const auto port = static_cast<std::uint16_t>(20000 + i * 7919 % 40009);
        rings.push_back({ours(family).with_port(port), static_cast<std::uint32_t>(count - 1 - i)});
      }
      const FilterProgram program = spreading(rings);
      EXPECT_LE(program.size(), static_cast<std::size_t>(BPF_MAXINSNS));
      for (const RingTarget& ring : rings) EXPECT_EQ(ring_of(program, ring.address), ring.index);
      EXPECT_EQ(ring_of(program, ours(family).with_port(1)), 0u);
      EXPECT_EQ(ring_of(program, ours(family).with_port(65535)), 0u);
      EXPECT_EQ(run_spreading(program, {}), 0u) << "a frame without a port";
    }
  }
}

TEST(Spreading, BothFamiliesUnderOneEtherType) {
  std::vector<RingTarget> rings;
  for (std::uint32_t i = 0; i < 200; ++i) {
    const auto port = static_cast<std::uint16_t>(30000 + i / 2);  // each port once in each family
    rings.push_back({ours(i % 2 == 0 ? Family::v6 : Family::v4).with_port(port), i});
  }
  const FilterProgram program = spreading(rings);
  for (const RingTarget& ring : rings) EXPECT_EQ(ring_of(program, ring.address), ring.index);
}

TEST(Spreading, OnePortOfSeveralAddresses) {
  for (const Family family : {Family::v4, Family::v6}) {
    std::vector<RingTarget> rings{{ours(family), 1}, {ours(family).with_port(9229), 2}};
    for (std::uint32_t at = 0; at < ours(family).ip().size(); ++at)
      rings.push_back({other(family, at), 10 + at});
    const FilterProgram program = spreading(rings);
    for (const RingTarget& ring : rings) EXPECT_EQ(ring_of(program, ring.address), ring.index);
    const SocketAddress base = ours(family);
    std::vector<std::byte> unknown(base.ip().begin(), base.ip().end());
    unknown[0] ^= std::byte{1};
    unknown[3] ^= std::byte{2};
    EXPECT_EQ(ring_of(program, family == Family::v4 ? SocketAddress::v4(unknown.data(), 9228)
                                                    : SocketAddress::v6(unknown.data(), 9228)),
              0u);
  }
}

TEST(Spreading, WithoutRings) { EXPECT_EQ(ring_of(spreading({}), ours(Family::v4)), 0u); }

}  // namespace
}  // namespace cluster::os
