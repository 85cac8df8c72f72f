// A forked child cannot use the objects of its parent, and does them no harm.
#include <rdma/fi_rma.h>
#include <sys/wait.h>
#include <unistd.h>

#include "api/fid_object.h"
#include "base/process_generation.h"
#include "unit/api/api_world.h"

namespace cluster::api::test {
namespace {

class InheritedFidsTest : public PairTest {
 protected:
  /// True if `check` is true in a child that os/descriptor.h makes.
  template <typename Check>
  static bool in_child(Check&& check) {
    lock_fids_to_inherit();
    const pid_t child = fork();
    if (child == 0) {
      process_generation.fetch_add(1);
      disable_inherited_fids();
      _exit(check() ? 0 : 1);
    }
    unlock_fids_to_inherit();
    int status = -1;
    EXPECT_EQ(waitpid(child, &status, 0), child);
    return status == 0;
  }
};

TEST_F(InheritedFidsTest, TheirOperationsFail) {
  start();
  char bytes[8] = {};
  fi_cq_tagged_entry entry{};
  EXPECT_TRUE(
      in_child([&] { return fi_send(left.endpoint, bytes, 8, nullptr, 0, nullptr) == -FI_EOPBADSTATE; }));
  EXPECT_TRUE(in_child(
      [&] { return fi_trecv(left.endpoint, bytes, 8, nullptr, 0, 0, 0, nullptr) == -FI_EOPBADSTATE; }));
  EXPECT_TRUE(in_child(
      [&] { return fi_write(left.endpoint, bytes, 8, nullptr, 0, 0, 0, nullptr) == -FI_EOPBADSTATE; }));
  EXPECT_TRUE(in_child([&] { return fi_cq_read(left.sends, &entry, 1) == -FI_EOPBADSTATE; }));
  fi_poll_attr polling{};
  fid_poll* set = nullptr;
  ASSERT_EQ(fi_poll_open(domain, &polling, &set), 0);
  EXPECT_TRUE(in_child([&] { return fi_poll(set, nullptr, 0) == -FI_EOPBADSTATE; }));
  EXPECT_EQ(fi_close(&set->fid), 0);
  EXPECT_TRUE(in_child([&] {
    fid_ep* made = nullptr;
    return fi_endpoint(domain, &info.info, &made, nullptr) == -FI_EOPBADSTATE;
  }));
  EXPECT_TRUE(in_child([&] {
    fid_domain* made = nullptr;
    return fi_domain(fabric, &info.info, &made, nullptr) == -FI_EOPBADSTATE;
  }));
}

TEST_F(InheritedFidsTest, ToCloseThemSaysNothingToPeers) {
  start();
  const auto under_way = [this] {
    std::size_t count = 0;
    for (const auto& [name, mailbox] : platform.network.mailboxes) count += mailbox.size();
    return count;
  };
  char bytes[8] = {};
  ASSERT_EQ(fi_send(left.endpoint, bytes, 8, nullptr, to_right, nullptr), 0);
  EXPECT_TRUE(in_child([&] {
    const std::size_t before = under_way();
    return fi_close(&left.endpoint->fid) + fi_close(&left.sends->fid) + fi_close(&domain->fid) == 0 &&
           under_way() == before;
  }));
}

}  // namespace
}  // namespace cluster::api::test
