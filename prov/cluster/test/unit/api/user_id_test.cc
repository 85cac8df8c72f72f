// FI_AV_USER_ID: completions name the sender by a number that the application has chosen.
#include "unit/api/api_world.h"

namespace cluster::api::test {
namespace {

/// What libfabric 1.20 appended to fi_ops_av.
struct NewerAvOps {
  fi_ops_av first;
  int (*insert_auth_key)(fid_av*, const void*, std::size_t, fi_addr_t*, std::uint64_t);
  int (*lookup_auth_key)(fid_av*, fi_addr_t, void*, std::size_t*);
  int (*set_user_id)(fid_av*, fi_addr_t, fi_addr_t, std::uint64_t);
};

int set_user_id(fid_av* av, fi_addr_t handle, fi_addr_t id, std::uint64_t flags = 0) {
  EXPECT_EQ(av->ops->size, sizeof(NewerAvOps));
  return reinterpret_cast<NewerAvOps*>(av->ops)->set_user_id(av, handle, id, flags);
}

class UserIdTest : public PairTest {
 protected:
  /// Sends one message to the right, and returns the source that its receive reports.
  fi_addr_t source_of_message() {
    char byte = 0;
    EXPECT_EQ(fi_recv(right.endpoint, &byte, 1, nullptr, FI_ADDR_UNSPEC, nullptr), 0);
    EXPECT_EQ(fi_inject(left.endpoint, "x", 1, to_right), 0);
    fi_cq_tagged_entry entry{};
    fi_addr_t source = 0;
    EXPECT_EQ(await(right.receives, entry, &source), 1);
    return source;
  }
};

TEST_F(UserIdTest, AnInsertionMayGiveItsAddressAnIdentifier) {
  start();
  EXPECT_EQ(source_of_message(), to_left);
  const sockaddr_in address = left.name();
  fi_addr_t handle = 4711;
  ASSERT_EQ(fi_av_insert(right.av, &address, 1, &handle, FI_AV_USER_ID, nullptr), 1);
  EXPECT_EQ(handle, to_left);
  EXPECT_EQ(source_of_message(), 4711u);
  char byte = 0;
  EXPECT_EQ(fi_recv(right.endpoint, &byte, 1, nullptr, 4711, nullptr), -FI_EINVAL)
      << "operations take handles";
  EXPECT_EQ(set_user_id(right.av, to_left, 1), -FI_EINVAL)
      << "the address vector was opened without the flag";
}

TEST_F(UserIdTest, AnAddressVectorWithIdentifiersReportsNothingElse) {
  info.info.caps |= FI_SOURCE_ERR;
  start();
  fi_av_attr attributes{};
  attributes.flags = FI_AV_USER_ID;
  fid_av* av = nullptr;
  ASSERT_EQ(fi_av_open(domain, &attributes, &av, nullptr), 0);
  Node third{open_endpoint(), av, open_cq(), open_cq()};
  ASSERT_EQ(fi_ep_bind(third.endpoint, &av->fid, 0), 0);
  ASSERT_EQ(fi_ep_bind(third.endpoint, &third.sends->fid, FI_TRANSMIT), 0);
  ASSERT_EQ(fi_ep_bind(third.endpoint, &third.receives->fid, FI_RECV), 0);
  ASSERT_EQ(fi_enable(third.endpoint), 0);
  const fi_addr_t to_third = left.insert(third);
  const fi_addr_t from_left = third.insert(left);
  const sockaddr_in address = left.name();
  fi_addr_t handle = 1;
  EXPECT_EQ(fi_av_insert(av, &address, 1, &handle, FI_AV_USER_ID, nullptr), -FI_EINVAL);
  for (const fi_addr_t expected : {FI_ADDR_NOTAVAIL, fi_addr_t{99}}) {
    if (expected != FI_ADDR_NOTAVAIL) {
      ASSERT_EQ(set_user_id(av, from_left, expected), 0);
    }
    char byte = 0;
    ASSERT_EQ(fi_recv(third.endpoint, &byte, 1, nullptr, from_left, nullptr), 0);
    ASSERT_EQ(fi_inject(left.endpoint, "x", 1, to_third), 0);
    fi_cq_tagged_entry entry{};
    fi_addr_t source = 0;
    ssize_t result = -FI_EAGAIN;
    for (int turn = 0; turn < 100000 && result == -FI_EAGAIN; ++turn) {
      turn_both();
      result = fi_cq_readfrom(third.receives, &entry, 1, &source);
    }
    EXPECT_EQ(result, 1) << "a sender without identifier is no unknown sender";
    EXPECT_EQ(source, expected);
  }
  EXPECT_EQ(set_user_id(av, from_left, 1, FI_MORE), -FI_EBADFLAGS);
  EXPECT_EQ(set_user_id(av, 1234, 1), -FI_EINVAL);
  third.close();
}

}  // namespace
}  // namespace cluster::api::test
