// The extension: what an endpoint has counted, and which way its peers are reached.
#include <rdma/fi_ext_cluster.h>

#include <cstddef>
#include <cstring>
#include <span>
#include <string>
#include <vector>

#include "api/profile.h"
#include "unit/api/api_world.h"

namespace cluster::api::test {
namespace {

class EndpointStatsOpsTest : public PairTest {
 protected:
  fi_cluster_ops_stats* insight() {
    void* ops = nullptr;
    EXPECT_EQ(fi_open_ops(&left.endpoint->fid, FI_CLUSTER_STATS, 0, &ops, nullptr), 0);
    return static_cast<fi_cluster_ops_stats*>(ops);
  }
  std::uint64_t counter(const std::string& name) {
    std::vector<fi_cluster_counter> all(100);
    const ssize_t count = insight()->counters(left.endpoint, all.data(), all.size());
    for (ssize_t i = 0; i < count; ++i) {
      const fi_cluster_counter& one = all[static_cast<std::size_t>(i)];
      EXPECT_GT(std::strlen(one.help), 0u);
      if (one.name == name) return one.value;
    }
    ADD_FAILURE() << "no counter " << name;
    return 0;
  }
};

TEST_F(EndpointStatsOpsTest, CountersShowWhichWayTheBytesWent) {
  start();
  const char* path = nullptr;
  EXPECT_EQ(insight()->path(left.endpoint, to_right, &path), 0);
  EXPECT_STREQ(path, "none");
  const std::uint64_t before = counter("bytes_sent");
  char bytes[100] = {};
  ASSERT_EQ(fi_send(left.endpoint, bytes, sizeof bytes, nullptr, to_right, nullptr), 0);
  EXPECT_EQ(counter("bytes_sent") - before, sizeof bytes);
  EXPECT_GT(counter("frames_sent"), 0u);
  EXPECT_EQ(insight()->path(left.endpoint, to_right, &path), 0);
  EXPECT_STREQ(path, "mail");
  fi_cq_tagged_entry entry{};
  ASSERT_EQ(fi_recv(right.endpoint, bytes, sizeof bytes, nullptr, FI_ADDR_UNSPEC, nullptr), 0);
  EXPECT_EQ(await(left.sends, entry), 1);
}

TEST_F(EndpointStatsOpsTest, SaysHowManyThereAreAndWritesNoMoreThanThereIsRoomFor) {
  start();
  const ssize_t count = insight()->counters(left.endpoint, nullptr, 0);
  EXPECT_GT(count, 10);
  fi_cluster_counter two[3] = {{}, {}, {"untouched", "", 1}};
  EXPECT_EQ(insight()->counters(left.endpoint, two, 2), count);
  EXPECT_STREQ(two[2].name, "untouched");
  EXPECT_EQ(insight()->counters(left.endpoint, nullptr, 1), -FI_EINVAL);
}

TEST_F(EndpointStatsOpsTest, OtherExtensionsAndStrangeAddressesAreRefused) {
  start();
  void* ops = nullptr;
  EXPECT_EQ(fi_open_ops(&left.endpoint->fid, "somebody else's", 0, &ops, nullptr), -FI_ENOSYS);
  EXPECT_EQ(fi_open_ops(&left.endpoint->fid, FI_CLUSTER_STATS, 1, &ops, nullptr), -FI_ENOSYS);
  const char* path = nullptr;
  EXPECT_EQ(insight()->path(left.endpoint, 4711, &path), -FI_EINVAL);
  EXPECT_EQ(insight()->path(left.endpoint, to_right, nullptr), -FI_EINVAL);
}

TEST_F(EndpointStatsOpsTest, AnEndpointThatIsNotEnabledHasNoneYet) {
  fid_ep* endpoint = open_endpoint();
  void* ops = nullptr;
  ASSERT_EQ(fi_open_ops(&endpoint->fid, FI_CLUSTER_STATS, 0, &ops, nullptr), 0);
  const auto* table = static_cast<fi_cluster_ops_stats*>(ops);
  EXPECT_EQ(table->size, sizeof *table);
  EXPECT_EQ(table->counters(endpoint, nullptr, 0), -FI_EOPBADSTATE);
  EXPECT_EQ(fi_close(&endpoint->fid), 0);
}

/// fi_profile_open, which the headers of 1.17 do not have.
class ProfileTest : public PairTest {
 protected:
  ProfileTest() {
    start();
    void* ops = nullptr;
    EXPECT_EQ(fi_open_ops(&left.endpoint->fid, profile::kExtension, 0, &ops, this), 0);
    // The table's place in the handle is what libfabric's inline code goes back from.
    handle = reinterpret_cast<profile::Handle*>(static_cast<char*>(ops) - offsetof(profile::Handle, ops));
  }
  void close_profile() { EXPECT_EQ(handle->fid.ops->close(&handle->fid), 0); }
  std::uint64_t value(const std::string& name) {
    std::vector<profile::Description> all(100);
    std::size_t count = all.size();
    const ssize_t written = handle->ops->query_variables(handle, all.data(), &count);
    EXPECT_EQ(written, static_cast<ssize_t>(count));
    for (const profile::Description& one : std::span(all).first(count)) {
      if (one.name != name) continue;
      std::uint64_t read = 0;
      std::size_t size = sizeof read;
      EXPECT_EQ(one.type.primitive, FI_UINT64);
      EXPECT_EQ(handle->ops->read(handle, one.id, &read, &size), static_cast<ssize_t>(sizeof read));
      return read;
    }
    ADD_FAILURE() << "no variable " << name;
    return 0;
  }

  profile::Handle* handle;
};

TEST_F(ProfileTest, VariablesFollowTheEndpointUnlessASnapshotIsRead) {
  EXPECT_EQ(handle->fid.context, this);
  EXPECT_EQ(value("FI_VAR_UNEXP_MSG_CNT"), 0u);
  char bytes[100] = {};
  ASSERT_EQ(fi_send(right.endpoint, bytes, sizeof bytes, nullptr, to_left, nullptr), 0);
  fi_cq_tagged_entry entry{};
  ASSERT_EQ(await(right.sends, entry), 1);
  EXPECT_EQ(value("FI_VAR_UNEXP_MSG_CNT"), 1u);
  EXPECT_EQ(value("unexpected"), 1u);
  handle->ops->start_reads(handle, 0);
  ASSERT_EQ(fi_recv(left.endpoint, bytes, sizeof bytes, nullptr, FI_ADDR_UNSPEC, nullptr), 0);
  EXPECT_EQ(value("FI_VAR_UNEXP_MSG_CNT"), 1u);
  handle->ops->end_reads(handle, 0);
  EXPECT_EQ(value("FI_VAR_UNEXP_MSG_CNT"), 0u);
  close_profile();
}

TEST_F(ProfileTest, TheEndpointStaysWhileItIsLookedAt) {
  EXPECT_EQ(fi_close(&left.endpoint->fid), -FI_EBUSY);
  close_profile();
}

TEST_F(ProfileTest, NothingUnknownIsReadAndThereAreNoEvents) {
  std::uint64_t read = 0;
  std::size_t size = sizeof read;
  EXPECT_EQ(handle->ops->read(handle, 4711, &read, &size), -FI_EINVAL);
  size = 4;
  EXPECT_EQ(handle->ops->read(handle, profile::kUnexpectedMessageCount, &read, &size), -FI_ETOOSMALL);
  EXPECT_EQ(size, sizeof read);
  std::size_t count = 7;
  EXPECT_EQ(handle->ops->query_variables(handle, nullptr, &count), 0);
  EXPECT_GT(count, 10u);
  EXPECT_EQ(handle->ops->query_events(handle, nullptr, &count), 0);
  EXPECT_EQ(count, 0u);
  EXPECT_EQ(handle->ops->register_callback(handle, 0, nullptr, nullptr), -FI_EINVAL);
  close_profile();
}

}  // namespace
}  // namespace cluster::api::test
