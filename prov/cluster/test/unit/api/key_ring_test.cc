// The keys of an address vector: their handles and realms, and how long they stay.
#include "api/key_ring.h"

#include <gtest/gtest.h>
#include <rdma/fi_errno.h>

#include <algorithm>
#include <string>

namespace cluster::api {
namespace {

class KeyRingTest : public ::testing::Test {
 protected:
  fi_addr_t insert(const std::string& key) {
    fi_addr_t handle = FI_ADDR_NOTAVAIL;
    EXPECT_EQ(ring.insert(key.data(), key.size(), handle), 0) << key;
    return handle;
  }
  std::string text_of(std::uint8_t realm) const {
    std::string text(64, '.');
    std::size_t size = text.size();
    if (!ring.copy(realm, text.data(), size)) return {};
    return text.substr(0, size);
  }

  KeyRing ring;
};

TEST_F(KeyRingTest, EachKeyHasAHandleAndARealm) {
  const fi_addr_t one = insert("the first key of these");
  const fi_addr_t two = insert("the second key of these");
  EXPECT_NE(one, two);
  EXPECT_EQ(ring.realm_of(one), 1);
  EXPECT_EQ(ring.realm_of(two), 2);
  EXPECT_EQ(text_of(1), "the first key of these");
  EXPECT_EQ(text_of(2), "the second key of these");
  EXPECT_EQ(text_of(3), "");
  for (const fi_addr_t no_key : {fi_addr_t{0}, fi_addr_t{1}, one - 1, two + 1, FI_ADDR_NOTAVAIL}) EXPECT_EQ(ring.realm_of(no_key), 0);
}

TEST_F(KeyRingTest, TheSameKeyIsThereOnceAndCounted) {
  const fi_addr_t handle = insert("0123456789abcdef");
  EXPECT_EQ(insert("0123456789abcdef"), handle);
  EXPECT_EQ(ring.remove(handle), 0);
  EXPECT_EQ(ring.realm_of(handle), 1);
  EXPECT_EQ(ring.remove(handle), 0);
  EXPECT_EQ(ring.realm_of(handle), 0);
  EXPECT_EQ(ring.remove(handle), -FI_EINVAL);
}

TEST_F(KeyRingTest, OtherSizesAndMoreThanTheLimitAreRefused) {
  fi_addr_t handle = FI_ADDR_NOTAVAIL;
  const std::string long_one(65, 'k');
  for (const std::size_t size : {0u, 1u, 15u, 65u}) EXPECT_EQ(ring.insert(long_one.data(), size, handle), -FI_EINVAL) << size;
  EXPECT_EQ(ring.insert(nullptr, 16, handle), -FI_EINVAL);
  for (std::size_t i = 0; i < KeyRing::kKeysMax; ++i) insert("one of many keys " + std::to_string(i));
  EXPECT_EQ(ring.insert(long_one.data(), 64, handle), -FI_ENOSPC);
  EXPECT_EQ(insert("one of many keys 3"), KeyRing::handle_of(4)) << "one that is there takes no place";
}

TEST_F(KeyRingTest, WhatIsInUseStays) {
  const fi_addr_t one = insert("the first key of these");
  const fi_addr_t two = insert("the second key of these");
  EXPECT_EQ(ring.hold(3), nullptr);
  EXPECT_EQ(ring.add_peer(one), 1);
  EXPECT_EQ(ring.add_peer(two + 1), 0);
  EXPECT_EQ(ring.add_peer(one - 1), 0);
  EXPECT_EQ(ring.remove(one), -FI_EBUSY);
  ring.drop_peer(1);
  {
    const auto all = ring.hold();
    const auto second = ring.hold(2);
    EXPECT_EQ(all->realms(), 0b110u);
    EXPECT_EQ(second->realms(), 0b100u);
    EXPECT_EQ(ring.remove(one), -FI_EBUSY);
  }
  const auto second = ring.hold(2);
  EXPECT_EQ(ring.remove(two), -FI_EBUSY);
  EXPECT_EQ(ring.remove(one), 0);
  insert("a key that came afterwards");
  EXPECT_EQ(second->realms(), 0b100u) << "those that were there";
  ASSERT_EQ(second->keys().size(), 1u);
  EXPECT_EQ(second->keys()[0].realm, 2);
}

}  // namespace
}  // namespace cluster::api
