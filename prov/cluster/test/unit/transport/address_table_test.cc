// The address vector's table: lowest free index, duplicates, removal, and the generation by which
// engines notice that a handle means another peer.
#include "transport/address_table.h"

#include <gtest/gtest.h>

#include <array>
#include <thread>
#include <vector>

namespace cluster::transport {
namespace {

SocketAddress node(unsigned n) {
  const std::array<std::byte, 4> ip = {std::byte{10}, std::byte(n >> 16), std::byte(n >> 8), std::byte(n)};
  return SocketAddress::v4(ip.data(), 9228);
}

TEST(AddressTable, HandlesCountFromZero) {
  AddressTable book;
  for (unsigned i = 0; i < 1000; ++i) EXPECT_EQ(book.insert(node(i)), i);
  for (unsigned i = 0; i < 1000; ++i) {
    EXPECT_EQ(book.lookup(i), node(i));
    EXPECT_EQ(book.find(node(i)), i);
  }
}

TEST(AddressTable, ReusesTheLowestFreeHandle) {
  AddressTable book;
  for (unsigned i = 0; i < 10; ++i) book.insert(node(i));
  for (const unsigned gone : {7u, 2u, 9u, 4u}) EXPECT_TRUE(book.remove(gone));
  EXPECT_EQ(book.insert(node(100)), 2u);
  EXPECT_EQ(book.insert(node(101)), 4u);
  EXPECT_TRUE(book.remove(0));
  EXPECT_EQ(book.insert(node(102)), 0u);
  EXPECT_EQ(book.insert(node(103)), 7u);
  EXPECT_EQ(book.insert(node(104)), 9u);
  EXPECT_EQ(book.insert(node(105)), 10u);
  EXPECT_EQ(book.lookup(2), node(100));
}

TEST(AddressTable, ADuplicateGetsTheSameHandleAndCounts) {
  AddressTable book;
  const auto handle = book.insert(node(1));
  const auto before = book.generation();
  EXPECT_EQ(book.insert(node(1)), handle);
  EXPECT_EQ(book.generation(), before);
  EXPECT_TRUE(book.remove(handle));
  EXPECT_FALSE(book.lookup(handle).empty());
  EXPECT_EQ(book.find(node(1)), handle);
  EXPECT_TRUE(book.remove(handle));
  EXPECT_TRUE(book.lookup(handle).empty());
  EXPECT_FALSE(book.remove(handle));
}

TEST(AddressTable, ManyAddressesComeAndGo) {
  AddressTable book;
  constexpr unsigned kCount = 20'000;
  for (unsigned i = 0; i < kCount; ++i) ASSERT_EQ(book.insert(node(i)), i);
  for (unsigned i = 0; i < kCount; i += 3) ASSERT_TRUE(book.remove(i));
  for (unsigned i = 0; i < kCount; ++i) {
    const auto found = book.find(node(i));
    ASSERT_EQ(found.has_value(), i % 3 != 0) << i;
    ASSERT_EQ(found.value_or(i), i);
  }
  for (unsigned i = 0; i < kCount; i += 3)
    ASSERT_EQ(book.insert(node(kCount + i)), i) << "the lowest free one";
  for (unsigned i = 0; i < kCount; i += 3) ASSERT_EQ(book.find(node(kCount + i)), i);
}

TEST(AddressTable, UnknownHandlesAndAddressesAreNotFound) {
  AddressTable book;
  book.insert(node(1));
  for (const AddressTable::Handle handle : {AddressTable::Handle{1}, ~AddressTable::Handle{0}}) {
    EXPECT_TRUE(book.lookup(handle).empty());
    EXPECT_FALSE(book.remove(handle));
    EXPECT_TRUE(book.lookup(handle).empty());
  }
  EXPECT_FALSE(book.find(node(2)).has_value());
}

TEST(AddressTable, ARemovedAddressIsGone) {
  AddressTable book;
  const auto handle = book.insert(node(1));
  ASSERT_TRUE(book.remove(handle));
  EXPECT_TRUE(book.lookup(handle).empty());
  EXPECT_FALSE(book.find(node(1)).has_value());
}

TEST(AddressTable, GenerationMovesWithEveryChangeOfMeaning) {
  AddressTable book;
  auto last = book.generation();
  const auto moved = [&] {
    const bool differs = book.generation() != last;
    last = book.generation();
    return differs;
  };
  book.insert(node(1));
  EXPECT_TRUE(moved());
  book.lookup(0);
  book.find(node(1));
  EXPECT_FALSE(moved());
  book.remove(0);
  EXPECT_TRUE(moved());
  book.remove(0);
  EXPECT_FALSE(moved());
  book.insert(node(2));
  EXPECT_TRUE(moved());
}

TEST(AddressTable, SamePortOnAnotherHostAndOtherPortOnTheSameAreDifferent) {
  AddressTable book;
  EXPECT_NE(book.insert(node(1)), book.insert(node(1).with_port(1)));
  EXPECT_NE(book.insert(node(2)), *book.find(node(1)));
}

TEST(AddressTable, SurvivesThreads) {
  AddressTable book;
  std::vector<std::thread> threads;
  for (unsigned t = 0; t < 4; ++t) {
    threads.emplace_back([&book, t] {
      for (unsigned i = 0; i < 300; ++i) {
        const auto handle = book.insert(node(t * 1000 + i % 7));
        EXPECT_EQ(book.lookup(handle), node(t * 1000 + i % 7));
        EXPECT_TRUE(book.remove(handle));
      }
    });
  }
  for (auto& thread : threads) thread.join();
  EXPECT_EQ(book.insert(node(5)), 0u);
}

TEST(AddressTable, SendersHaveTheirHandleAsSourceOrTheirUserIdentifier) {
  constexpr std::uint64_t kNone = ~std::uint64_t{0};
  AddressTable book;
  const std::uint64_t handle = book.insert(node(3));
  EXPECT_EQ(book.find_sender(node(3), kNone).source, handle);
  const std::uint64_t before = book.generation();
  EXPECT_TRUE(book.set_user_id(handle, 77));
  EXPECT_NE(book.generation(), before);
  EXPECT_EQ(book.find_sender(node(3), kNone).source, 77u);
  EXPECT_EQ(book.find_sender(node(3), kNone).handle, handle);
  EXPECT_EQ(book.find_sender(node(4), kNone).handle, kNone);
  EXPECT_FALSE(book.set_user_id(handle + 1, 78));
  EXPECT_TRUE(book.remove(handle));
  EXPECT_FALSE(book.set_user_id(handle, 78));
  EXPECT_EQ(book.insert(node(5)), handle);
  EXPECT_EQ(book.find_sender(node(5), kNone).source, handle) << "the identifier of the former address";
  AddressTable strict;
  strict.require_user_ids();
  strict.insert(node(1));
  EXPECT_EQ(strict.find_sender(node(1), kNone).source, kNone);
  EXPECT_EQ(strict.find_sender(node(1), kNone).handle, 0u);
}

}  // namespace
}  // namespace cluster::transport
