#include "os/unlisted_peers.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <vector>

#include "wire/frame.h"

namespace cluster::os {
namespace {

SocketAddress peer_number(std::uint8_t number) {
  const std::array<std::byte, 4> ip{std::byte{10}, std::byte{1}, std::byte{2}, std::byte{number}};
  return SocketAddress::v4(ip.data(), 4711);
}

constexpr HardwareAddress kCard{std::byte{2}, std::byte{0}, std::byte{0},
                                std::byte{0}, std::byte{0}, std::byte{7}};
constexpr Time kNow{1h};
using Verdict = UnlistedPeers::Verdict;

TEST(UnlistedPeers, FramesToOnePeerGoToAllHostsEverMoreRarely) {
  UnlistedPeers peers;
  EXPECT_EQ(peers.ask_all(kNow, peer_number(1)), Verdict::now);
  EXPECT_EQ(peers.ask_all(kNow + UnlistedPeers::kAskAgain - 1ns, peer_number(1)), Verdict::no);
  EXPECT_EQ(peers.ask_all(kNow + UnlistedPeers::kAskAgain, peer_number(1)), Verdict::now);
  const Time third = kNow + 3 * UnlistedPeers::kAskAgain;
  EXPECT_EQ(peers.ask_all(third - 1ns, peer_number(1)), Verdict::no) << "the time has doubled";
  EXPECT_EQ(peers.ask_all(third, peer_number(1)), Verdict::now);
  peers.note(third, peer_number(1), kCard);
  Time now = third + 1h;
  for (int i = 0; i < 10; ++i, now += UnlistedPeers::kAskAgainMax)
    EXPECT_EQ(peers.ask_all(now, peer_number(1)), Verdict::now);
}

TEST(UnlistedPeers, FramesToManyPeersShareAnAllowance) {
  UnlistedPeers peers;
  int allowed = 0;
  for (std::uint8_t i = 0; i < 100; ++i)
    allowed += peers.ask_all(kNow, peer_number(i)) == Verdict::now ? 1 : 0;
  EXPECT_EQ(allowed, UnlistedPeers::kBurst + 1);
  EXPECT_FALSE(peers.allows(kNow));
  const Time later = kNow + UnlistedPeers::kInterval;
  EXPECT_TRUE(peers.allows(later));
  EXPECT_EQ(peers.ask_all(later, peer_number(100)), Verdict::now);
  EXPECT_EQ(peers.ask_all(later, peer_number(101)), Verdict::later);
}

TEST(UnlistedPeers, AnAddressIsThatWhichThePeerHasShown) {
  UnlistedPeers peers;
  EXPECT_TRUE(peers.empty());
  peers.ask_all(kNow, peer_number(1));
  EXPECT_EQ(peers.find(peer_number(1), Time{}), nullptr) << "it was only asked";
  EXPECT_TRUE(peers.contains(peer_number(1)));
  EXPECT_FALSE(peers.contains(peer_number(2)));
  peers.note(kNow, peer_number(1), kCard);
  ASSERT_NE(peers.find(peer_number(1), kNow), nullptr);
  EXPECT_EQ(*peers.find(peer_number(1), kNow), kCard);
  EXPECT_EQ(peers.find(peer_number(1), kNow + 1ns), nullptr);
  EXPECT_EQ(peers.find(peer_number(2), Time{}), nullptr);
}

TEST(UnlistedPeers, AForgedAddressGetsEverySecondFrame) {
  UnlistedPeers peers;
  EXPECT_FALSE(peers.takes_turn(peer_number(1)));
  peers.note(kNow, peer_number(1), kCard);
  for (int i = 0; i < 3; ++i) {
    EXPECT_TRUE(peers.takes_turn(peer_number(1)));
    peers.note(kNow, peer_number(1), kCard);
    EXPECT_FALSE(peers.takes_turn(peer_number(1)));
  }
}

TEST(UnlistedPeers, ForgedFramesDoNotFillTheMemory) {
  UnlistedPeers peers;
  const SocketAddress first = peer_number(1);
  peers.note(kNow, first, kCard);
  for (std::uint16_t port = 1; port <= 4096; ++port) peers.note(kNow, peer_number(2).with_port(port), kCard);
  EXPECT_EQ(peers.find(first, Time{}), nullptr);
}

/// A lone arrival of one frame, with `behind` after it.
class Arrival {
 public:
  Arrival(std::uint8_t flags, ConstBytes behind) : bytes_(40 + behind.size()) {
    wire::FrameHeader& header = wire::header_at(bytes_.data());
    header.kind = static_cast<std::uint8_t>(wire::FrameKind::flow);
    header.flags = flags;
    const ConstBytes piece = ConstBytes(bytes_).first(40);
    wire::encode_frame(header, {&piece, 1});
    std::copy(behind.begin(), behind.end(), bytes_.begin() + 40);
    in.bytes = bytes_;
    take_address_trailer(in);
  }
  link::InFrame in;

 private:
  std::vector<std::byte> bytes_;
};

TEST(AddressTrailer, IsRemovedFromTheFrameAndNothingElseIs) {
  wire::AddressTrailer trailer = address_trailer(kCard);
  const auto arrive = [](const wire::AddressTrailer& behind) {
    return Arrival(wire::frame_flag::kOpening, as_bytes(&behind, sizeof behind));
  };
  EXPECT_EQ(arrive(trailer).in.bytes.size(), 40u);
  EXPECT_EQ(arrive(trailer).in.from.mac, kCard);
  EXPECT_FALSE(arrive(trailer).in.from.mac_known);
  trailer.mac[0] = 3;
  EXPECT_EQ(arrive(trailer).in.bytes.size(), 48u) << "the address is that of a group";
  trailer = address_trailer(kCard);
  trailer.magic = wire::kMagic;
  EXPECT_EQ(arrive(trailer).in.bytes.size(), 48u) << "another frame may begin there";
  EXPECT_EQ(Arrival(0, as_bytes(&trailer, 7)).in.bytes.size(), 47u);
}

TEST(AddressTrailer, FollowsShortFramesThatBeginASessionOrPath) {
  std::array<std::byte, 512> bytes{};
  const auto shows = [&](wire::FrameKind kind, std::uint8_t flags, std::size_t size) {
    wire::FrameHeader& header = wire::header_at(bytes.data());
    header.kind = static_cast<std::uint8_t>(kind);
    header.flags = flags;
    const ConstBytes piece = ConstBytes(bytes).first(size);
    wire::encode_frame(header, {&piece, 1});
    link::OutFrame out;
    out.add(piece);
    return shows_address(out);
  };
  using wire::FrameKind;
  EXPECT_TRUE(shows(FrameKind::flow, wire::frame_flag::kOpening, 100));
  EXPECT_TRUE(shows(FrameKind::path_challenge, 0, 32));
  EXPECT_FALSE(shows(FrameKind::flow, 0, 100)) << "the ring of the receiver shows the address";
  EXPECT_FALSE(shows(FrameKind::keep_alive, 0, 32));
  EXPECT_FALSE(shows(FrameKind::flow, wire::frame_flag::kOpening, 505));
}

}  // namespace
}  // namespace cluster::os
