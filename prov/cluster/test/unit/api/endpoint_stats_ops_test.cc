// The extension FI_CLUSTER_STATS: an endpoint's counters and the path to each peer.
#include <rdma/fi_ext_cluster.h>

#include <cstring>
#include <string>
#include <vector>

#include "unit/api/api_world.h"

namespace cluster::api::test {
namespace {

class EndpointStatsOpsTest : public PairTest {
 protected:
  fi_cluster_ops_stats* stats() {
    void* ops = nullptr;
    EXPECT_EQ(fi_open_ops(&left.endpoint->fid, FI_CLUSTER_STATS, 0, &ops, nullptr), 0);
    return static_cast<fi_cluster_ops_stats*>(ops);
  }
  std::uint64_t counter(const std::string& name) {
    std::vector<fi_cluster_counter> all(100);
    const ssize_t count = stats()->counters(left.endpoint, all.data(), all.size());
    for (ssize_t i = 0; i < count; ++i) {
      const fi_cluster_counter& one = all[static_cast<std::size_t>(i)];
      EXPECT_GT(std::strlen(one.help), 0u);
      if (one.name == name) return one.value;
    }
    ADD_FAILURE() << "no counter " << name;
    return 0;
  }
};

TEST_F(EndpointStatsOpsTest, CountersAndPathFollowASend) {
  start();
  const char* path = nullptr;
  EXPECT_EQ(stats()->path(left.endpoint, to_right, &path), 0);
  EXPECT_STREQ(path, "none");
  const std::uint64_t before = counter("bytes_sent");
  char bytes[100] = {};
  ASSERT_EQ(fi_send(left.endpoint, bytes, sizeof bytes, nullptr, to_right, nullptr), 0);
  EXPECT_EQ(counter("bytes_sent") - before, sizeof bytes);
  EXPECT_GT(counter("frames_sent"), 0u);
  EXPECT_EQ(stats()->path(left.endpoint, to_right, &path), 0);
  EXPECT_STREQ(path, "mail");
  fi_cq_tagged_entry entry{};
  ASSERT_EQ(fi_recv(right.endpoint, bytes, sizeof bytes, nullptr, FI_ADDR_UNSPEC, nullptr), 0);
  EXPECT_EQ(await(left.sends, entry), 1);
}

TEST_F(EndpointStatsOpsTest, ReturnsTheTotalAndFillsAtMostCountEntries) {
  start();
  const ssize_t count = stats()->counters(left.endpoint, nullptr, 0);
  EXPECT_GT(count, 10);
  fi_cluster_counter two[3] = {{}, {}, {"untouched", "", 1}};
  EXPECT_EQ(stats()->counters(left.endpoint, two, 2), count);
  EXPECT_STREQ(two[2].name, "untouched");
  EXPECT_EQ(stats()->counters(left.endpoint, nullptr, 1), -FI_EINVAL);
}

TEST_F(EndpointStatsOpsTest, UnknownExtensionsAndAddressesAreRefused) {
  start();
  void* ops = nullptr;
  EXPECT_EQ(fi_open_ops(&left.endpoint->fid, "unknown", 0, &ops, nullptr), -FI_ENOSYS);
  EXPECT_EQ(fi_open_ops(&left.endpoint->fid, FI_CLUSTER_STATS, 1, &ops, nullptr), -FI_ENOSYS);
  const char* path = nullptr;
  EXPECT_EQ(stats()->path(left.endpoint, 4711, &path), -FI_EINVAL);
  EXPECT_EQ(stats()->path(left.endpoint, to_right, nullptr), -FI_EINVAL);
}

TEST_F(EndpointStatsOpsTest, CountersNeedAnEnabledEndpoint) {
  fid_ep* endpoint = open_endpoint();
  void* ops = nullptr;
  ASSERT_EQ(fi_open_ops(&endpoint->fid, FI_CLUSTER_STATS, 0, &ops, nullptr), 0);
  const auto* table = static_cast<fi_cluster_ops_stats*>(ops);
  EXPECT_EQ(table->size, sizeof *table);
  EXPECT_EQ(table->counters(endpoint, nullptr, 0), -FI_EOPBADSTATE);
  EXPECT_EQ(fi_close(&endpoint->fid), 0);
}

}  // namespace
}  // namespace cluster::api::test
