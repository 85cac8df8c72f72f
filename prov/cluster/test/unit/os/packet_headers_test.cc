#include "os/packet_headers.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <vector>

namespace cluster::os {
namespace {

std::vector<std::byte> bytes_of(std::initializer_list<int> values) {
  std::vector<std::byte> bytes;
  for (const int value : values) bytes.push_back(static_cast<std::byte>(value));
  return bytes;
}

constexpr std::array<std::byte, 6> kOurMac{std::byte{2}, std::byte{0}, std::byte{0},
                                           std::byte{0}, std::byte{0}, std::byte{1}};
constexpr std::array<std::byte, 6> kPeerMac{std::byte{2}, std::byte{0}, std::byte{0},
                                            std::byte{0}, std::byte{0}, std::byte{9}};

struct Ends {
  Origin origin;
  link::Path to;
};

Ends ends_v4() {
  const auto ours = bytes_of({10, 0, 0, 1});
  const auto peer = bytes_of({10, 0, 0, 2});
  Ends ends{{kOurMac, SocketAddress::v4(ours.data(), 4000)}, {}};
  ends.to = {SocketAddress::v4(peer.data(), 5000), kPeerMac, true};
  return ends;
}

Ends ends_v6() {
  std::vector<std::byte> ours(16);
  ours[0] = std::byte{0xfd};
  ours[15] = std::byte{1};
  std::vector<std::byte> peer = ours;
  peer[15] = std::byte{2};
  Ends ends{{kOurMac, SocketAddress::v6(ours.data(), 4000)}, {}};
  ends.to = {SocketAddress::v6(peer.data(), 5000), kPeerMac, true};
  return ends;
}

std::vector<std::byte> frame_with(const Ends& ends, std::size_t payload, Framing framing) {
  const std::size_t headers = headers_size(ends.to.to.family());
  std::vector<std::byte> frame(headers + payload, std::byte{0x5a});
  write_headers(frame.data(), ends.origin, ends.to, payload, framing);
  return frame;
}

std::uint32_t sum_of(ConstBytes bytes) {
  std::uint32_t sum = 0;
  for (std::size_t i = 0; i < bytes.size(); i += 2) {
    sum += std::to_integer<std::uint32_t>(bytes[i]) << 8;
    if (i + 1 < bytes.size()) sum += std::to_integer<std::uint32_t>(bytes[i + 1]);
  }
  while (sum >> 16 != 0) sum = (sum & 0xffff) + (sum >> 16);
  return sum;
}

TEST(FrameHeaders, WritesIpv4AsTheRfcsWantIt) {
  const std::vector<std::byte> frame = frame_with(ends_v4(), 4, Framing::udp);
  const std::vector<std::byte> expected = bytes_of({
      2,         0,          0,         0,          0,  9,  2,    0, 0,  0,  0,    1,
      0x08,      0x00,                                                                    // Ethernet
      0x45,      0,          0,         32,         0,  0,  0x40, 0, 64, 17, 0x26, 0xcb,  // IPv4
      10,        0,          0,         1,          10, 0,  0,    2,                      //
      4000 >> 8, 4000 & 255, 5000 >> 8, 5000 & 255, 0,  12, 0,    0,                      // UDP
      0x5a,      0x5a,       0x5a,      0x5a,
  });
  EXPECT_EQ(frame, expected);
  EXPECT_EQ(sum_of(ConstBytes(frame).subspan(14, 20)), 0xffffU) << "IPv4 header checksum (RFC 1071)";
}

TEST(FrameHeaders, PseudoSumIsCompletedByTheSumOfTheDatagram) {
  for (const Ends& ends : {ends_v4(), ends_v6()}) {
    const std::size_t payload = 100;
    const std::vector<std::byte> frame = frame_with(ends, payload, Framing::udp_sum_later);
    const std::size_t udp = headers_size(ends.to.to.family()) - 8;
    // What the device will do: sum over UDP header (holding the pseudo sum) and payload, complement.
    const std::uint32_t checksum = ~sum_of(ConstBytes(frame).subspan(udp)) & 0xffff;
    // What the receiver will do: sum over pseudo header and datagram must come to all ones.
    std::vector<std::byte> checked(ends.origin.address.ip().begin(), ends.origin.address.ip().end());
    checked.insert(checked.end(), ends.to.to.ip().begin(), ends.to.to.ip().end());
    for (const int value : {0, 17, 0, 108}) checked.push_back(static_cast<std::byte>(value));
    checked.insert(checked.end(), frame.begin() + static_cast<std::ptrdiff_t>(udp), frame.end());
    const std::size_t field = checked.size() - 108 + kUdpChecksumOffset;
    checked[field] = static_cast<std::byte>(checksum >> 8);
    checked[field + 1] = static_cast<std::byte>(checksum);
    EXPECT_EQ(sum_of(checked), 0xffffU);
  }
}

TEST(FrameHeaders, ReadsBackWhatItWroteWithoutPadding) {
  for (const Ends& ends : {ends_v4(), ends_v6()}) {
    std::vector<std::byte> frame = frame_with(ends, 3, Framing::udp_sum_later);
    frame.resize(frame.size() + 20);  // a short frame is padded on the wire
    link::InFrame in;
    ASSERT_TRUE(read_headers(frame, 7, in));
    EXPECT_EQ(in.bytes.size(), 3U);
    EXPECT_EQ(in.bytes.data(), frame.data() + headers_size(ends.to.to.family()));
    EXPECT_EQ(in.from.to, ends.origin.address);
    EXPECT_EQ(in.from.mac, kOurMac);
    EXPECT_TRUE(in.from.mac_known);
  }
}

bool same(const link::InFrame& one, const link::InFrame& other) {
  return one.bytes.data() == other.bytes.data() && one.bytes.size() == other.bytes.size() &&
         one.from.to == other.from.to && one.from.same_mac(other.from) &&
         one.from.mac_known == other.from.mac_known && one.from.ethertype == other.from.ethertype;
}

/// Of every frame that LastHeaders accepts, read_headers() says the same.
TEST(FrameHeaders, TheLastHeadersReadTheNextFrame) {
  for (const Ends& ends : {ends_v4(), ends_v6()}) {
    for (const Framing framing : {Framing::udp, Framing::own}) {
      std::vector<std::byte> first = frame_with(ends, 50, framing);
      link::InFrame in;
      ASSERT_TRUE(read_headers(first, 7, in));
      LastHeaders last;
      link::InFrame by_last;
      EXPECT_FALSE(last.read(first, by_last));
      last.remember(first, in);
      std::vector<std::byte> next = frame_with(ends, 400, framing);
      ASSERT_TRUE(read_headers(next, 7, in));
      ASSERT_TRUE(last.read(next, by_last));
      EXPECT_TRUE(same(by_last, in));
      std::size_t accepted = 0;
      for (std::size_t bit = 0; bit < 8 * headers_size(ends.to.to.family()); ++bit) {
        std::vector<std::byte> damaged = next;
        damaged[bit / 8] ^= std::byte{1} << bit % 8;
        if (!last.read(damaged, by_last)) continue;
        ++accepted;
        ASSERT_TRUE(read_headers(damaged, 7, in)) << bit;
        EXPECT_TRUE(same(by_last, in)) << bit;
      }
      EXPECT_LT(accepted, 130u) << "lengths, identification, checksums and the receiver's hardware address";
      last.forget();
      EXPECT_FALSE(last.read(next, by_last));
    }
  }
}

TEST(FrameHeaders, TheLastHeadersRefuseWhatIsCutOff) {
  const Ends ends = ends_v4();
  std::vector<std::byte> frame = frame_with(ends, 50, Framing::own);
  link::InFrame in;
  ASSERT_TRUE(read_headers(frame, 7, in));
  LastHeaders last;
  last.remember(frame, in);
  for (std::size_t size = 0; size < frame.size(); ++size)
    EXPECT_FALSE(last.read(Bytes(frame).first(size), in)) << size;
}

TEST(FrameHeaders, TheShortcutIsTheSamePacketUnderAnotherType) {
  for (const Ends& ends : {ends_v4(), ends_v6()}) {
    std::vector<std::byte> frame = frame_with(ends, 3, Framing::own);
    EXPECT_EQ(frame[12], std::byte{0x88});
    EXPECT_EQ(frame[13], std::byte{0xb5});
    link::InFrame in;
    in.from.ethertype = false;
    ASSERT_TRUE(read_headers(frame, 7, in));
    EXPECT_TRUE(in.from.ethertype);
    EXPECT_EQ(in.bytes.size(), 3U);
    EXPECT_EQ(in.from.to, ends.origin.address);
    std::vector<std::byte> plain = frame_with(ends, 3, Framing::udp);
    ASSERT_TRUE(read_headers(plain, 7, in));
    EXPECT_FALSE(in.from.ethertype);
    std::copy_n(plain.begin() + 12, 2, frame.begin() + 12);
    EXPECT_EQ(frame, plain);
  }
}

TEST(FrameHeaders, LinkLocalPeersAreNamedWithTheInterface) {
  Ends ends = ends_v6();
  std::vector<std::byte> local(16);
  local[0] = std::byte{0xfe};
  local[1] = std::byte{0x80};
  ends.origin.address = SocketAddress::v6(local.data(), 4000, 7);
  link::InFrame in;
  std::vector<std::byte> frame = frame_with(ends, 8, Framing::udp_sum_later);
  ASSERT_TRUE(read_headers(frame, 7, in));
  EXPECT_EQ(in.from.to, ends.origin.address);
}

TEST(FrameHeaders, RefusesEveryTruncation) {
  for (const Ends& ends : {ends_v4(), ends_v6()}) {
    for (const Framing framing : {Framing::udp, Framing::own}) {
      std::vector<std::byte> frame = frame_with(ends, 16, framing);
      link::InFrame in;
      for (std::size_t size = 0; size < frame.size(); ++size) {
        EXPECT_FALSE(read_headers(Bytes(frame).first(size), 1, in)) << size;
      }
    }
  }
}

TEST(FrameHeaders, RefusesContradictions) {
  struct Damage {
    std::size_t at;
    int value;
    const char* what;
  };
  const auto expect_refused = [](const Ends& ends, std::initializer_list<Damage> damages) {
    for (const Damage& damage : damages) {
      std::vector<std::byte> frame = frame_with(ends, 16, Framing::udp);
      frame[damage.at] = static_cast<std::byte>(damage.value);
      link::InFrame in;
      EXPECT_FALSE(read_headers(frame, 1, in)) << damage.what;
    }
  };
  expect_refused(ends_v4(), {{12, 0x88, "EtherType"},
                             {14, 0x46, "IP options"},
                             {17, 45, "total length beyond the frame"},
                             {17, 19, "total length below the header"},
                             {20, 0x20, "more fragments"},
                             {21, 1, "fragment offset"},
                             {23, 6, "TCP"},
                             {39, 25, "UDP length beyond the packet"},
                             {39, 7, "UDP length below the header"}});
  expect_refused(ends_v6(), {{14, 0x40, "version"},
                             {19, 25, "payload length beyond the frame"},
                             {20, 44, "fragment header"},
                             {59, 25, "UDP length beyond the packet"}});
}

// --- headers that are kept for lone frames ---

TEST(KeptHeaders, AreWhatWriteHeadersWrites) {
  for (const Ends& ends : {ends_v4(), ends_v6()}) {
    for (const bool ethertype : {false, true}) {
      KeptHeaders kept;
      kept.write(ends.origin, ends.to, ethertype);
      for (const std::size_t payload : {1472, 8, 0, 255, 256, 1021}) {
        const ConstBytes got = kept.with_payload(payload);
        std::vector<std::byte> wanted(headers_size(ends.to.to.family()));
        write_headers(wanted.data(), ends.origin, ends.to, payload, ethertype ? Framing::own : Framing::udp);
        ASSERT_EQ(got.size(), sizeof(OffloadHeader) + wanted.size());
        EXPECT_TRUE(std::ranges::equal(got.subspan(sizeof(OffloadHeader)), wanted)) << payload;
        EXPECT_TRUE(std::ranges::all_of(got.first(sizeof(OffloadHeader)),
                                        [](std::byte byte) { return byte == std::byte{0}; }));
      }
    }
  }
}

TEST(KeptHeaders, FitOnlyTheirPath) {
  const Ends ends = ends_v4();
  KeptHeaders kept;
  EXPECT_FALSE(kept.fits(ends.to, false));
  kept.write(ends.origin, ends.to, false);
  EXPECT_TRUE(kept.fits(ends.to, false));
  EXPECT_FALSE(kept.fits(ends.to, true));
  link::Path other = ends.to;
  other.to = other.to.with_port(5001);
  EXPECT_FALSE(kept.fits(other, false));
  other = ends.to;
  other.mac = kOurMac;
  EXPECT_FALSE(kept.fits(other, false));
  other = ends.to;
  other.mac_known = false;
  EXPECT_FALSE(kept.fits(other, false));
  kept.forget();
  EXPECT_FALSE(kept.fits(ends.to, false));
}

}  // namespace
}  // namespace cluster::os
