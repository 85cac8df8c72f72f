// What endpoints of a process share: keys that are found by an endpoint's name.
#include "provider/machine.h"

#include <gtest/gtest.h>

#include <new>

#include "support/failing_memory.h"
#include "support/seal_keys.h"

namespace cluster::provider {
namespace {

const std::byte kIp[] = {std::byte{10}, std::byte{0}, std::byte{0}, std::byte{1}};
const SocketAddress kName = SocketAddress::v4(kIp, 9228);

seal::JobKeys one_key() { return test::credentials({"0123456789abcdef"}).keys; }

TEST(EndpointKeysTest, AnEndpointHasItsKeysUntilItEnds) {
  EndpointKeys keys;
  std::shared_ptr<void> endpoint = keys.add(kName, one_key());
  EXPECT_EQ(keys.of(kName).size(), 1u);
  endpoint.reset();
  EXPECT_TRUE(keys.of(kName).empty());
}

TEST(EndpointKeysTest, WithoutMemoryNothingIsLeftAndTheNextOneIsTaken) {
  EndpointKeys keys;
  for (std::size_t allowed = 0;; ++allowed) {
    const seal::JobKeys wanted = one_key();
    const test::FailingMemory failing(allowed);
    try {
      const std::shared_ptr<void> endpoint = keys.add(kName, wanted);
      ASSERT_GT(allowed, 0u);  // some allocation has failed before
      EXPECT_EQ(keys.of(kName).size(), 1u);
      return;
    } catch (const std::bad_alloc&) {
      EXPECT_TRUE(keys.of(kName).empty());
    }
  }
}

}  // namespace
}  // namespace cluster::provider
