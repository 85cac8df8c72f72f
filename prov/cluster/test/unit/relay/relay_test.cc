// A relay alone, between endpoints that the test plays: who becomes a member, and what is forwarded.
#include "relay/relay.h"

#include <gtest/gtest.h>

#include <cstring>

#include "support/fake_network.h"
#include "support/seal_keys.h"

namespace cluster::relay {
namespace {

using wire::FrameKind;

constexpr std::string_view kSecret = "0123456789abcdef";

SocketAddress host(int last, std::uint16_t port = 9228) {
  const std::byte ip[] = {std::byte{10}, std::byte{0}, std::byte{0}, static_cast<std::byte>(last)};
  return SocketAddress::v4(ip, port);
}

const SocketAddress kFirst = host(1), kSecond = host(2), kRelayAt = host(9), kStranger = host(66);

class RelayTest : public ::testing::Test {
 protected:
  using Bytes = std::vector<std::byte>;

  RelayTest() { restart(); }
  void restart() {
    relay = std::make_unique<Relay>(std::vector<JobRelayKeys>{{key}, {key_of_another_job}}, link,
                                    world.environment(), limits);
  }
  void send(const SocketAddress& from, ConstBytes bytes, const SocketAddress& to = kRelayAt) {
    test::FakeLink source(network, from);
    link::send_frame(source, bytes, {to});
    pass();
  }
  void pass(Duration time = 1ms) {
    clock().advance(time);
    while (relay->poll() != 0) clock().advance(100us);
    clock().advance(1ms);
  }
  /// Everything that has arrived at this address.
  std::vector<Bytes> received(const SocketAddress& at) {
    std::vector<Bytes> all;
    test::FakeNetwork::Packet packet;
    while (network.arrived(at, packet)) all.push_back(packet.bytes);
    return all;
  }
  wire::RelayMessage message(FrameKind kind, const SocketAddress& name) {
    wire::RelayMessage made;
    made.kind = kind;
    made.name = name;
    made.number = ++number_;
    return made;
  }
  /// The only answer that has arrived at this address.
  wire::RelayMessage answer(const SocketAddress& at) {
    const std::vector<Bytes> all = received(at);
    EXPECT_EQ(all.size(), 1u);
    const auto decoded = all.empty() ? std::nullopt : wire::decode_relay(all.front());
    EXPECT_TRUE(decoded && key->verify(all.front()));
    return decoded.value_or(wire::RelayMessage{});
  }
  wire::RelayMessage offer_to(const SocketAddress& name, const SocketAddress& source) {
    const wire::RelayMessage request = message(FrameKind::relay_request, name);
    send(source, key->seal(request));
    const wire::RelayMessage offer = answer(source);
    EXPECT_EQ(offer.kind, FrameKind::relay_offer);
    EXPECT_EQ(offer.number, request.number);
    EXPECT_NE(offer.cookie, 0u);
    return offer;
  }
  wire::RelayFrame join_for(wire::RelayMessage offer) const {
    offer.kind = FrameKind::relay_join;
    return key->seal(offer);
  }
  /// Returns the number of the member.
  std::uint32_t join(const SocketAddress& name, const SocketAddress& source) {
    send(source, join_for(offer_to(name, source)));
    const wire::RelayMessage joined = answer(source);
    EXPECT_EQ(joined.kind, FrameKind::relay_joined);
    EXPECT_EQ(joined.name, name);
    EXPECT_NE(joined.member, 0u);
    return joined.member;
  }
  static Bytes tagged(std::uint32_t member, const SocketAddress& peer, std::uint8_t hops = wire::kRelayHops,
                      std::size_t payload = 100) {
    wire::FrameHeader header{};
    header.magic = wire::kMagic;
    header.version = wire::kVersion;
    header.kind = static_cast<std::uint8_t>(FrameKind::flow);
    header.flags = wire::frame_flag::kSealed;
    header.length = static_cast<std::uint16_t>(sizeof header + payload + sizeof(wire::SealTrailer));
    wire::RelayTag tag{};
    tag.magic = wire::kRelayMagic;
    tag.hops = hops;
    tag.member = member;
    tag.peer = wire::rail_block(peer);
    Bytes bytes(header.length + sizeof tag, std::byte{7});
    std::memcpy(bytes.data(), &header, sizeof header);
    std::memcpy(bytes.data() + header.length, &tag, sizeof tag);
    return bytes;
  }
  void expect_forwarded(const Bytes& sent, const Bytes& arrived, std::uint32_t to, const SocketAddress& by) {
    wire::RelayTag tag;
    ASSERT_EQ(arrived.size(), sent.size());
    const std::size_t length = wire::tagged_frame(arrived, tag);
    ASSERT_NE(length, 0u);
    EXPECT_TRUE(
        std::equal(sent.begin(), sent.begin() + static_cast<std::ptrdiff_t>(length), arrived.begin()));
    EXPECT_EQ(tag.hops, 0);
    EXPECT_EQ(std::uint32_t{tag.member}, to);
    EXPECT_EQ(wire::address_of(tag.peer, 0), by);
  }
  test::FakeClock& clock() { return world.clock; }

  test::FakeEnvironment world;
  test::FakeNetwork network{world.clock, 1};
  test::FakeLink link{network, kRelayAt};
  std::shared_ptr<const RelayKey> key = relay_keys(test::credentials({kSecret}).keys).front();
  Limits limits{.members = 4};
  std::shared_ptr<const RelayKey> key_of_another_job =
      relay_keys(test::credentials({"another key that"}).keys).front();
  std::unique_ptr<Relay> relay;

 private:
  std::uint64_t number_ = 100;
};

TEST_F(RelayTest, ForwardsBetweenMembers) {
  const std::uint32_t a = join(kFirst, host(50)), b = join(kSecond, kSecond);
  EXPECT_EQ(relay->members(), 2u);
  const Bytes there = tagged(a, kSecond), back = tagged(b, kFirst, wire::kRelayHops, 1300);
  send(host(50), there);
  const std::vector<Bytes> at_b = received(kSecond);
  ASSERT_EQ(at_b.size(), 1u);
  expect_forwarded(there, at_b.front(), b, kFirst);
  send(kSecond, back);
  const std::vector<Bytes> at_a = received(host(50));
  ASSERT_EQ(at_a.size(), 1u);
  expect_forwarded(back, at_a.front(), a, kSecond);
  EXPECT_EQ(relay->totals().frames, 2u);
  EXPECT_EQ(relay->totals().refused, 0u);
}

TEST_F(RelayTest, WhatTheKernelHasJoinedIsForwardedFrameByFrame) {
  const std::uint32_t a = join(kFirst, kFirst);
  join(kSecond, kSecond);
  for (const bool segments : {true, false}) {
    network.conditions.joined = true;
    network.conditions.segments = segments;
    test::FakeLink from(network, kFirst);
    for (int i = 0; i < 5; ++i) link::send_frame(from, tagged(a, kSecond), {kRelayAt});
    pass();
    EXPECT_EQ(received(kSecond).size(), 5u);
  }
}

TEST_F(RelayTest, AStrangerGetsNothing) {
  const std::uint32_t a = join(kFirst, kFirst);
  join(kSecond, kSecond);
  const auto other = relay_keys(test::credentials({"a third key, not"}).keys).front();
  send(kStranger, other->seal(message(FrameKind::relay_request, kStranger)));
  wire::RelayFrame forged = key->seal(message(FrameKind::relay_request, kStranger));
  forged[40] ^= std::byte{1};
  send(kStranger, forged);
  send(kStranger, tagged(a, kSecond));      // the number of a member, but another source
  send(kStranger, tagged(a + 1, kSecond));  // no member
  send(kStranger, ConstBytes(forged).first(20));
  EXPECT_TRUE(received(kStranger).empty());
  EXPECT_TRUE(received(kSecond).empty());
  EXPECT_EQ(relay->members(), 2u);
  EXPECT_EQ(relay->totals().refused, 5u);
}

TEST_F(RelayTest, AReplayedRequestCostsOneAnswerAndAReplayedJoinNothing) {
  const wire::RelayFrame request = key->seal(message(FrameKind::relay_request, kFirst));
  send(kStranger, request);
  const std::vector<Bytes> answers = received(kStranger);
  ASSERT_EQ(answers.size(), 1u);
  EXPECT_LE(answers.front().size(), request.size());
  EXPECT_EQ(relay->members(), 0u);
  const wire::RelayFrame genuine = join_for(offer_to(kFirst, kFirst));
  send(kStranger, genuine);  // before the genuine one arrives
  EXPECT_TRUE(received(kStranger).empty());
  EXPECT_EQ(relay->members(), 0u);
  send(kFirst, genuine);
  EXPECT_EQ(answer(kFirst).kind, FrameKind::relay_joined);
  send(kStranger, genuine);
  EXPECT_TRUE(received(kStranger).empty());
  const std::uint32_t b = join(kSecond, kSecond);
  send(kSecond, tagged(b, kFirst));
  EXPECT_EQ(received(kFirst).size(), 1u) << "the member has kept its source";
}

TEST_F(RelayTest, JoiningTwiceChangesNothing) {
  const wire::RelayFrame frame = join_for(offer_to(kFirst, kFirst));
  send(kFirst, frame);
  const std::uint32_t first = answer(kFirst).member;
  send(kFirst, frame);
  EXPECT_EQ(answer(kFirst).member, first);
  EXPECT_EQ(join(kFirst, kFirst), first);
  EXPECT_EQ(relay->members(), 1u);
}

TEST_F(RelayTest, ACookieIsValidForAWhile) {
  const wire::RelayFrame frame = join_for(offer_to(kFirst, kFirst));
  pass(Relay::kCookieInterval);
  send(kFirst, frame);
  EXPECT_EQ(answer(kFirst).kind, FrameKind::relay_joined);
  pass(2 * Relay::kCookieInterval);
  send(kFirst, frame);
  EXPECT_TRUE(received(kFirst).empty());
}

TEST_F(RelayTest, AMemberWhoseSourceHasChangedJoinsAgain) {
  const std::uint32_t a = join(kFirst, host(50, 1000)), b = join(kSecond, kSecond);
  EXPECT_EQ(join(kFirst, host(50, 1001)), a);
  send(kSecond, tagged(b, kFirst));
  EXPECT_TRUE(received(host(50, 1000)).empty());
  EXPECT_EQ(received(host(50, 1001)).size(), 1u);
  send(host(50, 1000), tagged(a, kSecond));
  EXPECT_TRUE(received(kSecond).empty()) << "the former source is no source of a member";
}

TEST_F(RelayTest, AFrameHasOneHop) {
  const std::uint32_t a = join(kFirst, kFirst), b = join(kSecond, kSecond);
  send(kFirst, tagged(a, kSecond));
  Bytes forwarded = received(kSecond).at(0);
  wire::RelayTag tag;
  ASSERT_NE(wire::tagged_frame(forwarded, tag), 0u);
  tag.peer = wire::rail_block(kFirst);  // as if b were another relay
  std::memcpy(forwarded.data() + forwarded.size() - sizeof tag, &tag, sizeof tag);
  send(kSecond, forwarded);
  EXPECT_EQ(std::uint32_t{tag.member}, b);
  EXPECT_TRUE(received(kFirst).empty());
  EXPECT_EQ(relay->totals().refused, 1u);
}

TEST_F(RelayTest, MembersOfDifferentJobsDoNotReachEachOther) {
  const std::uint32_t a = join(kFirst, kFirst);
  std::swap(key, key_of_another_job);
  join(kSecond, kSecond);
  std::swap(key, key_of_another_job);
  send(kFirst, tagged(a, kSecond));
  EXPECT_TRUE(received(kSecond).empty());
  join(kSecond, kSecond);
  send(kFirst, tagged(a, kSecond));
  EXPECT_EQ(received(kSecond).size(), 1u);
}

class RelaySharesTest : public RelayTest {
 protected:
  static constexpr std::size_t kFrame = 1000;
  /// How many frames the relay forwards in four seconds, if they are its whole bandwidth.
  static constexpr std::size_t kWhole = 4 * 1'000'000 / (kFrame + 84);

  RelaySharesTest() {
    limits.bytes_per_second = 1'000'000;
    restart();
  }
  /// Sends `count` frames at once.
  void flood(const SocketAddress& from, std::uint32_t member, const SocketAddress& to, int count) {
    test::FakeLink source(network, from);
    for (int i = 0; i < count; ++i)
      link::send_frame(source, tagged(member, to, wire::kRelayHops, kFrame), {kRelayAt});
  }
  /// Calls `round` all the time, for two seconds and then for another four. Counts in the latter what arrives
  /// at these addresses.
  template <typename Round>
  std::vector<std::size_t> arrivals(std::initializer_list<SocketAddress> at, Round round) {
    const Time begin = clock().now() + 2s;
    std::vector<std::size_t> counts(at.size());
    while (clock().now() < begin + 4s) {
      round();
      pass();
      std::size_t i = 0;
      for (const SocketAddress& each : at) {
        const std::size_t count = received(each).size();
        counts[i++] += clock().now() < begin ? 0 : count;
      }
    }
    return counts;
  }
};

TEST_F(RelaySharesTest, NoMemberTakesTheShareOfOthers) {
  const std::uint32_t a = join(kFirst, kFirst), b = join(kSecond, kSecond);
  join(host(3), host(3));
  join(host(4), host(4));
  const auto counts = arrivals({host(3), host(4)}, [&] {
    flood(kFirst, a, host(3), 20);
    flood(kSecond, b, host(4), 2);
  });
  EXPECT_GT(counts[0], kWhole * 4 / 10);
  EXPECT_GT(counts[1], kWhole * 4 / 10);
  EXPECT_LT(counts[0] + counts[1], kWhole * 11 / 10);
}

/// Members that send little, such as keep-alives, lose nothing, and leave the rest to others.
TEST_F(RelaySharesTest, WhoSendsLittleTakesNoShare) {
  const std::uint32_t a = join(kFirst, kFirst), b = join(kSecond, kSecond), c = join(host(3), host(3));
  join(host(4), host(4));
  std::size_t rounds = 0;
  const auto counts = arrivals({host(4), kFirst}, [&] {
    flood(kFirst, a, host(4), 20);
    if (++rounds % 10 != 0) return;
    flood(kSecond, b, kFirst, 1);
    flood(host(3), c, kFirst, 1);
  });
  EXPECT_GT(counts[0], kWhole * 9 / 10);
  EXPECT_GT(counts[1], 2 * (rounds / 10) * 6 / 10);
}

TEST_F(RelaySharesTest, NoJobTakesTheShareOfAnother) {
  const std::uint32_t a = join(kFirst, kFirst), b = join(kSecond, kSecond), c = join(host(3), host(3));
  std::swap(key, key_of_another_job);
  const std::uint32_t other = join(host(5), host(5));
  join(host(6), host(6));
  std::swap(key, key_of_another_job);
  const auto counts = arrivals({kFirst, host(3), host(6)}, [&] {
    flood(kFirst, a, host(3), 10);
    flood(kSecond, b, host(3), 10);
    flood(host(3), c, kFirst, 10);
    flood(host(5), other, host(6), 10);
  });
  EXPECT_GT(counts[0] + counts[1], kWhole * 4 / 10);
  EXPECT_GT(counts[2], kWhole * 4 / 10);
}

TEST_F(RelayTest, AFullJobKeepsNoOtherJobOut) {
  for (int i = 1; i <= 4; ++i) join(host(i), host(i));
  std::swap(key, key_of_another_job);
  join(host(5), host(5));
  EXPECT_EQ(relay->members(), 5u);
}

/// A host has recorded a request, and sends it as often as it can.
TEST_F(RelayTest, AFloodOfRecordedRequestsKeepsNobodyOut) {
  const wire::RelayFrame recorded = key->seal(message(FrameKind::relay_request, kFirst));
  const wire::RelayFrame genuine = join_for(offer_to(kFirst, kFirst));
  const wire::RelayFrame of_another_job =
      key_of_another_job->seal(message(FrameKind::relay_request, kSecond));
  test::FakeLink stranger(network, kStranger), first(network, kFirst), second(network, kSecond);
  for (int i = 0; i < 10'000; ++i) link::send_frame(stranger, recorded, {kRelayAt});
  link::send_frame(first, genuine, {kRelayAt});
  link::send_frame(second, of_another_job, {kRelayAt});
  pass();
  EXPECT_LT(received(kStranger).size(), 5000u);
  EXPECT_EQ(received(kFirst).size(), 1u);
  EXPECT_EQ(received(kSecond).size(), 1u);
}

TEST_F(RelayTest, TheNumberOfMembersIsLimited) {
  for (int i = 1; i <= 4; ++i) join(host(i), host(i));
  send(host(5), join_for(offer_to(host(5), host(5))));
  EXPECT_TRUE(received(host(5)).empty());
  EXPECT_EQ(relay->members(), 4u);
  pass(Relay::kSilentMin);
  const std::uint32_t two = join(host(2), host(2));
  join(host(5), host(5));
  EXPECT_EQ(relay->members(), 4u);
  send(host(2), tagged(two, host(5)));
  EXPECT_EQ(received(host(5)).size(), 1u);
}

TEST_F(RelayTest, ForgetsSilentMembers) {
  join(kFirst, kFirst);
  pass(Relay::kSilentMax / 2);
  join(kSecond, kSecond);
  pass(Relay::kSilentMax / 2);
  send(kStranger, tagged(1, kSecond));
  EXPECT_EQ(relay->members(), 1u);
}

}  // namespace
}  // namespace cluster::relay
