// The opening block: there and back for both families, and everything that makes no sense refused.
#include "wire/opening.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <functional>
#include <memory>
#include <vector>

#include "support/queue_pair_address.h"
#include "wire/frame.h"

namespace cluster::wire {
namespace {

using test::queue_pair;

Opening sample(bool v6) {
  std::array<std::byte, 16> ip{};
  for (std::size_t i = 0; i < ip.size(); ++i) ip[i] = std::byte(i + 1);
  Opening opening;
  opening.session = 0xA1A2A3A4;
  opening.epoch = 0x31B2B3B4B5B6B7B8;
  opening.name = v6 ? SocketAddress::v6(ip.data(), 9228, 7) : SocketAddress::v4(ip.data(), 9228);
  opening.features = 0xC344;
  opening.incarnation = 0xC1C2;
  opening.frame_max = 8972;
  opening.window = 512;
  opening.token = 0xD1D2D3D4D5D6D7D8;
  opening.echo = 0xE1E2E3E4E5E6E7E8;
  return opening;
}

std::vector<std::byte> encoded(const Opening& opening) {
  OpeningBlock block;
  encode(opening, block);
  std::vector<std::byte> bytes(sizeof block);
  std::memcpy(bytes.data(), &block, sizeof block);
  return bytes;
}

std::size_t decode(ConstBytes in, Opening& out) {
  ConstBytes rails;
  return wire::decode(in, out, rails);
}

void expect_equal(const Opening& a, const Opening& b) {
  EXPECT_EQ(a.session, b.session);
  EXPECT_EQ(a.epoch, b.epoch);
  EXPECT_EQ(a.name, b.name);
  EXPECT_EQ(a.features, b.features);
  EXPECT_EQ(a.incarnation, b.incarnation);
  EXPECT_EQ(a.frame_max, b.frame_max);
  EXPECT_EQ(a.window, b.window);
  EXPECT_EQ(a.token, b.token);
  EXPECT_EQ(a.echo, b.echo);
}

TEST(Opening, RoundTrips) {
  for (const bool v6 : {false, true}) {
    const auto bytes = encoded(sample(v6));
    Opening out;
    EXPECT_EQ(decode(bytes, out), bytes.size());
    expect_equal(out, sample(v6));
  }
}

TEST(Opening, CarriesFurtherAddresses) {
  const std::byte ip[] = {std::byte{10}, std::byte{0}, std::byte{1}, std::byte{2}};
  const std::byte ip6[16] = {std::byte{0xfd}, std::byte{1}};
  const std::vector<SocketAddress> further{SocketAddress::v4(ip, 7), SocketAddress::v6(ip6, 8)};
  Opening opening = sample(false);
  opening.rails = 2;
  auto bytes = encoded(opening);
  for (const SocketAddress& address : further) {
    const RailBlock block = rail_block(address);
    const ConstBytes added = as_bytes(static_cast<const void*>(&block), sizeof block);
    bytes.insert(bytes.end(), added.begin(), added.end());
  }
  Opening out;
  ConstBytes rails;
  ASSERT_EQ(wire::decode(bytes, out, rails), bytes.size());
  EXPECT_EQ(out.rails, 2);
  EXPECT_EQ(read_rails(rails), further);
  EXPECT_EQ(wire::decode(ConstBytes(bytes).first(bytes.size() - 1), out, rails), 0u);
  bytes[sizeof(OpeningBlock)] = std::byte{5};  // of no known family
  EXPECT_EQ(wire::decode(bytes, out, rails), 0u);
}

TEST(Opening, NamesASiblingBehindFurtherAddresses) {
  const std::byte ip[] = {std::byte{10}, std::byte{0}, std::byte{1}, std::byte{2}};
  const SocketAddress further = SocketAddress::v4(ip, 7);
  const SocketAddress sibling = SocketAddress::v4(ip, 8);
  Opening opening = sample(false);
  opening.rails = 1;
  opening.features |= feature::kSibling;
  auto bytes = encoded(opening);
  for (const SocketAddress& address : {further, sibling}) {
    const RailBlock block = rail_block(address);
    const ConstBytes added = as_bytes(static_cast<const void*>(&block), sizeof block);
    bytes.insert(bytes.end(), added.begin(), added.end());
  }
  Opening out;
  ConstBytes rails;
  ASSERT_EQ(wire::decode(bytes, out, rails), bytes.size());
  EXPECT_EQ(read_rails(rails), std::vector{further});
  EXPECT_EQ(read_sibling(out, rails), sibling);
  EXPECT_EQ(wire::decode(ConstBytes(bytes).first(bytes.size() - 1), out, rails), 0u);
  bytes[bytes.size() - sizeof(RailBlock)] = std::byte{5};  // of no known family
  EXPECT_EQ(wire::decode(bytes, out, rails), 0u);
  EXPECT_TRUE(read_sibling(sample(false), {}).empty());
}

void append(std::vector<std::byte>& bytes, const VerbsBlock& block) {
  const ConstBytes added = as_bytes(static_cast<const void*>(&block), sizeof block);
  bytes.insert(bytes.end(), added.begin(), added.end());
}

/// An opening with a further address, a sibling and these queue pairs.
std::vector<std::byte> with_queue_pairs(const std::vector<VerbsAddress>& named) {
  const std::byte ip[] = {std::byte{10}, std::byte{0}, std::byte{1}, std::byte{2}};
  Opening opening = sample(false);
  opening.features = feature::kSibling | feature::kVerbs;
  opening.rails = 1;
  opening.verbs = static_cast<std::uint8_t>(named.size());
  std::vector<std::byte> bytes = encoded(opening);
  for (const std::uint16_t port : {std::uint16_t{7}, std::uint16_t{8}}) {
    const RailBlock block = rail_block(SocketAddress::v4(ip, port));
    const ConstBytes added = as_bytes(static_cast<const void*>(&block), sizeof block);
    bytes.insert(bytes.end(), added.begin(), added.end());
  }
  for (std::size_t i = 0; i < named.size(); ++i) append(bytes, verbs_block(named[i], named.size() - i - 1));
  return bytes;
}

TEST(Opening, CarriesQueuePairs) {
  const std::vector<VerbsAddress> named{{queue_pair(1, 17), 1024}, {queue_pair(2, 0xfffffe), 4096}};
  const std::vector<std::byte> bytes = with_queue_pairs(named);
  Opening out;
  ConstBytes rails;
  ASSERT_EQ(wire::decode(bytes, out, rails), bytes.size());
  EXPECT_EQ(read_verbs(out, rails), named);
  EXPECT_EQ(read_rails(rails).size(), 1u) << "queue pairs are no further addresses";
  EXPECT_EQ(read_sibling(out, rails).port(), 8);
  for (std::size_t cut = 1; cut <= 2 * sizeof(VerbsBlock); ++cut) {
    std::vector<std::byte> shorter(bytes.begin(), bytes.end() - static_cast<std::ptrdiff_t>(cut));
    shorter[0] = static_cast<std::byte>(shorter.size());
    EXPECT_EQ(wire::decode(shorter, out, rails), 0u) << cut;
  }
  EXPECT_TRUE(read_verbs(sample(false), {}).empty());
}

TEST(Opening, RefusesQueuePairsThatCannotBe) {
  const std::vector<std::byte> good = with_queue_pairs({{queue_pair(1, 17), 1024}});
  const std::size_t at = good.size() - sizeof(VerbsBlock);
  Opening out;
  ConstBytes rails;
  const auto spoiled = [&](std::size_t offset, std::initializer_list<int> values) {
    std::vector<std::byte> bytes = good;
    for (const int value : values) bytes[at + offset++] = static_cast<std::byte>(value);
    return wire::decode(bytes, out, rails) == 0;
  };
  EXPECT_FALSE(spoiled(0, {}));
  EXPECT_TRUE(spoiled(offsetof(VerbsBlock, mtu), {0}));
  EXPECT_TRUE(spoiled(offsetof(VerbsBlock, mtu), {6}));
  EXPECT_TRUE(spoiled(offsetof(VerbsBlock, more), {1}));
  EXPECT_TRUE(spoiled(offsetof(VerbsBlock, queue_pair), {0, 0, 0, 0}));
  EXPECT_TRUE(spoiled(offsetof(VerbsBlock, queue_pair), {0, 0, 0, 1}));
  EXPECT_TRUE(spoiled(offsetof(VerbsBlock, gid), {0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0}));
}

/// A kind of a later version may mean anything by the other bytes.
TEST(Opening, SkipsQueuePairsOfOtherKinds) {
  const VerbsAddress known{queue_pair(2, 18), 2048};
  std::vector<std::byte> bytes = with_queue_pairs({{queue_pair(1, 17), 1024}, known});
  const std::size_t first = bytes.size() - 2 * sizeof(VerbsBlock);
  bytes[first + offsetof(VerbsBlock, kind)] = std::byte{9};
  bytes[first + offsetof(VerbsBlock, mtu)] = std::byte{77};
  Opening out;
  ConstBytes rails;
  ASSERT_EQ(wire::decode(bytes, out, rails), bytes.size());
  EXPECT_EQ(read_verbs(out, rails), std::vector{known});
}

TEST(Opening, QueuePairsBeyondTheMostAreIgnored) {
  std::vector<VerbsAddress> named;
  for (int i = 0; i < 7; ++i) named.push_back({queue_pair(i + 1, 17), 1024});
  const std::vector<std::byte> bytes = with_queue_pairs(named);
  Opening out;
  ConstBytes rails;
  ASSERT_EQ(wire::decode(bytes, out, rails), bytes.size());
  named.resize(kVerbsMax);
  EXPECT_EQ(read_verbs(out, rails), named);
}

/// Together with the name there are never more than kRailsMax: arrays of paths have that size.
TEST(Opening, FurtherAddressesBeyondTheMostAreIgnored) {
  std::vector<SocketAddress> listed;
  std::vector<RailBlock> blocks;
  for (int host = 1; host <= 2 * static_cast<int>(kRailsMax); ++host) {
    const std::byte ip[] = {std::byte{10}, std::byte{0}, std::byte{1}, static_cast<std::byte>(host)};
    listed.push_back(SocketAddress::v4(ip, 7));
    blocks.push_back(rail_block(listed.back()));
  }
  for (std::size_t count = 0; count <= blocks.size(); ++count) {
    const std::size_t kept = std::min(count, kRailsMax - 1);
    EXPECT_EQ(read_rails(as_bytes(static_cast<const void*>(blocks.data()), count * sizeof(RailBlock))),
              std::vector(listed.begin(), listed.begin() + static_cast<std::ptrdiff_t>(kept)))
        << count;
  }
}

TEST(Opening, SkipsWhatANewerVersionAppended) {
  auto bytes = encoded(sample(false));
  bytes.resize(bytes.size() + 24, std::byte{0xEE});
  bytes[0] = std::byte(bytes.size() - 8);  // 16 bytes more than we know, 8 that are no part of it
  Opening out;
  EXPECT_EQ(decode(bytes, out), bytes.size() - 8);
  expect_equal(out, sample(false));
}

TEST(Opening, AcceptsAPeerThatAlsoSpeaksNewerVersions) {
  auto bytes = encoded(sample(false));
  bytes[offsetof(OpeningBlock, version_max)] = std::byte(kVersion + 3);
  Opening out;
  EXPECT_NE(decode(bytes, out), 0u);
}

TEST(Opening, RefusesEveryPrefix) {
  const auto bytes = encoded(sample(true));
  for (std::size_t size = 0; size < bytes.size(); ++size) {
    const std::unique_ptr<std::byte[]> cut(new std::byte[size]);
    std::copy_n(bytes.begin(), size, cut.get());
    Opening out;
    EXPECT_EQ(decode({cut.get(), size}, out), 0u) << size;
  }
}

TEST(Opening, RefusesWhatMakesNoSense) {
  const std::vector<std::pair<const char*, std::function<void(OpeningBlock&)>>> spoilers = {
      {"size too small", [](OpeningBlock& b) { b.size = sizeof(OpeningBlock) - 1; }},
      {"size zero", [](OpeningBlock& b) { b.size = 0; }},
      {"size beyond the bytes", [](OpeningBlock& b) { b.size = sizeof(OpeningBlock) + 1; }},
      {"only newer versions", [](OpeningBlock& b) { b.version_min = b.version_max = kVersion + 1; }},
      {"only older versions", [](OpeningBlock& b) { b.version_min = b.version_max = kVersion - 1; }},
      {"family 0", [](OpeningBlock& b) { b.family = 0; }},
      {"family 5", [](OpeningBlock& b) { b.family = 5; }},
      {"no session", [](OpeningBlock& b) { b.session = 0; }},
      {"no window", [](OpeningBlock& b) { b.window = 0; }},
      {"no port", [](OpeningBlock& b) { b.port = 0; }},
      {"an epoch beyond the last", [](OpeningBlock& b) { b.epoch = kEpochEnd; }},
      {"tiny frames", [](OpeningBlock& b) { b.frame_max = 511; }},
      {"no host", [](OpeningBlock& b) { std::memset(b.ip, 0, sizeof b.ip); }},
  };
  for (const auto& [name, spoil] : spoilers) {
    OpeningBlock block;
    encode(sample(true), block);
    spoil(block);
    Opening out;
    EXPECT_EQ(decode(as_bytes(static_cast<const void*>(&block), sizeof block), out), 0u) << name;
  }
}

TEST(Opening, WhateverIsAcceptedComesBackTheSame) {
  for (const bool v6 : {false, true}) {
    const auto original = encoded(sample(v6));
    for (std::size_t at = 0; at < original.size(); ++at) {
      for (unsigned value = 0; value < 256; ++value) {
        auto bytes = original;
        bytes[at] = std::byte(value);
        Opening first;
        const std::size_t size = decode(bytes, first);
        ASSERT_LE(size, bytes.size());
        if (size == 0) continue;
        EXPECT_NE(first.session, 0u);
        EXPECT_FALSE(first.name.empty());
        Opening second;
        ASSERT_NE(decode(encoded(first), second), 0u) << "byte " << at << " = " << value;
        expect_equal(first, second);
      }
    }
  }
}

}  // namespace
}  // namespace cluster::wire
