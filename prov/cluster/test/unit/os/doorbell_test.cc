#include <gtest/gtest.h>
#include <poll.h>
#include <sys/resource.h>
#include <unistd.h>

#include <vector>

#include "os/local_socket.h"

namespace cluster::os {
namespace {

std::string fresh_name() {
  static int count = 0;
  return "cluster-doorbell-test/" + std::to_string(::getpid()) + "/" + std::to_string(count++);
}

bool rings(const Doorbell& doorbell) {
  pollfd watch{doorbell.descriptor(), POLLIN, 0};
  return ::poll(&watch, 1, 0) == 1;
}

class DoorbellTest : public testing::Test {
 protected:
  std::string reason;
  LocalName own_name{fresh_name()}, peer_name{fresh_name()};
  std::shared_ptr<Doorbell> own = Doorbell::open(own_name, reason);
  std::shared_ptr<Doorbell> peer = Doorbell::open(peer_name, reason);
};

TEST_F(DoorbellTest, RingsUntilItIsCleared) {
  ASSERT_TRUE(own && peer) << reason;
  EXPECT_FALSE(rings(*peer));
  own->ring(peer_name);
  own->ring(peer_name);
  EXPECT_TRUE(rings(*peer));
  EXPECT_FALSE(rings(*own));
  peer->clear();
  EXPECT_FALSE(rings(*peer));
}

TEST_F(DoorbellTest, ANameBelongsToOneAtATime) {
  EXPECT_EQ(Doorbell::open(peer_name, reason), nullptr);
  EXPECT_NE(reason.find("in use"), std::string::npos) << reason;
  EXPECT_TRUE(own->exists(peer_name));
  peer.reset();
  EXPECT_FALSE(own->exists(peer_name));
  own->ring(peer_name);  // does no harm
  EXPECT_NE(Doorbell::open(peer_name, reason), nullptr);
}

TEST_F(DoorbellTest, IsMissedAlsoWithoutAFreeDescriptor) {
#ifdef __clang__
#if __has_feature(undefined_behavior_sanitizer)
  GTEST_SKIP()
      << "UndefinedBehaviorSanitizer looks at types through a pipe, for which there is no descriptor";
#endif
#endif
  rlimit limit{};
  ASSERT_EQ(::getrlimit(RLIMIT_NOFILE, &limit), 0);
  const rlimit none{0, limit.rlim_max};
  ASSERT_EQ(::setrlimit(RLIMIT_NOFILE, &none), 0);
  EXPECT_TRUE(own->exists(peer_name));
  peer.reset();
  EXPECT_FALSE(own->exists(peer_name));
  EXPECT_EQ(::setrlimit(RLIMIT_NOFILE, &limit), 0);
}

/// Peers that are stopped receive nothing, and what one socket may have under way is limited.
TEST_F(DoorbellTest, ManyDeafPeersKeepNoneFromHearing) {
  std::vector<std::shared_ptr<Doorbell>> deaf;
  for (int i = 0; i < 400; ++i) {
    const LocalName name(fresh_name());
    deaf.push_back(Doorbell::open(name, reason));
    ASSERT_NE(deaf.back(), nullptr) << reason;
    for (int ring = 0; ring < 20; ++ring) own->ring(name);
    EXPECT_TRUE(rings(*deaf.back())) << i;
  }
  own->ring(peer_name);
  EXPECT_TRUE(rings(*peer));
}

}  // namespace
}  // namespace cluster::os
