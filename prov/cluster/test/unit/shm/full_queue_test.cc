// A ring listener whose queue of connections another user of the node fills.
#include <gtest/gtest.h>

#include "shm/ring_listener.h"
#include "support/foreign_user.h"
#include "support/process_address.h"
#include "unit/shm/ring_memory.h"

namespace cluster::shm {
namespace {

class FullQueueTest : public ::testing::Test {
 protected:
  std::unique_ptr<LocalListener> open(const SocketAddress& name, std::uint64_t epoch) {
    std::string reason;
    std::unique_ptr<LocalListener> host =
        open_listener(name, epoch, ShmSettings{}, surroundings.environment(), reason);
    EXPECT_TRUE(host) << reason;
    return host;
  }
  Surroundings surroundings;
  SocketAddress bob_name = test::process_address(102);
  std::unique_ptr<LocalListener> alice = open(test::process_address(101), 11);
  std::unique_ptr<LocalListener> bob = open(bob_name, 22);
  std::vector<std::unique_ptr<Inbox>> inboxes;
};

TEST_F(FullQueueTest, AQueueThatAnotherUserFillsIsEmptiedAtOnceAndTheConnectionTriedAgain) {
  if (!test::connect_as_other_user(socket_name(bob_name), 1 << 16))
    GTEST_SKIP() << "needs root to become another user";
  const Connection refused = alice->connect(bob_name);
  EXPECT_FALSE(refused.outbox);
  EXPECT_TRUE(refused.later) << refused.reason;
  bob->accept(inboxes);
  EXPECT_FALSE(surroundings.said.empty());
  const Connection taken = alice->connect(bob_name);
  EXPECT_TRUE(taken.outbox) << taken.reason;
  bob->accept(inboxes);
  EXPECT_EQ(inboxes.size(), 1u) << "all those before it are gone";
  EXPECT_FALSE(alice->connect(test::process_address(103)).later) << "no process listens there";
}

}  // namespace
}  // namespace cluster::shm
