// Receives of newer capabilities: directed for tagged messages only, directed without wildcards, and buffers
// for many tagged messages.
#include "api/newer_capabilities.h"
#include "unit/api/api_world.h"

namespace cluster::api::test {
namespace {

class ReceiveKindsTest : public PairTest {
 protected:
  void start_with(std::uint64_t caps, std::uint64_t rx_op_flags = 0) {
    info.info.caps = FI_MSG | FI_TAGGED | FI_SEND | FI_RECV | FI_MULTI_RECV | FI_SOURCE | caps;
    info.rx.op_flags = rx_op_flags;
    start();
  }

  fi_cq_tagged_entry entry{};
  int context = 0;
  std::array<char, 64> buffer{};
};

constexpr fi_addr_t kNobody = 5;

TEST_F(ReceiveKindsTest, TaggedDirectedRecvLeavesUntaggedReceivesUndirected) {
  start_with(kTaggedDirectedRecv);
  ASSERT_EQ(fi_recv(right.endpoint, buffer.data(), 8, nullptr, kNobody, &context), 0);
  ASSERT_EQ(fi_trecv(right.endpoint, buffer.data(), 8, nullptr, kNobody, 1, 0, &context), -FI_EINVAL);
  ASSERT_EQ(fi_trecv(right.endpoint, buffer.data(), 8, nullptr, FI_ADDR_UNSPEC, 1, 0, &context), 0);
  ASSERT_EQ(fi_inject(left.endpoint, "x", 1, to_right), 0);
  ASSERT_EQ(await(right.receives, entry), 1);
  EXPECT_EQ(entry.flags, FI_MSG | FI_RECV);
}

TEST_F(ReceiveKindsTest, ExactDirectedRecvRefusesReceivesFromAnySource) {
  start_with(kExactDirectedRecv);
  const iovec vector{buffer.data(), 8};
  const fi_msg message{&vector, nullptr, 1, FI_ADDR_UNSPEC, &context, 0};
  const fi_msg_tagged tagged{&vector, nullptr, 1, FI_ADDR_UNSPEC, 1, 0, &context, 0};
  EXPECT_EQ(fi_recv(right.endpoint, buffer.data(), 8, nullptr, FI_ADDR_UNSPEC, &context), -FI_EINVAL);
  EXPECT_EQ(fi_recvv(right.endpoint, &vector, nullptr, 1, FI_ADDR_UNSPEC, &context), -FI_EINVAL);
  EXPECT_EQ(fi_recvmsg(right.endpoint, &message, 0), -FI_EINVAL);
  EXPECT_EQ(fi_trecv(right.endpoint, buffer.data(), 8, nullptr, FI_ADDR_UNSPEC, 1, 0, &context), -FI_EINVAL);
  EXPECT_EQ(fi_trecvv(right.endpoint, &vector, nullptr, 1, FI_ADDR_UNSPEC, 1, 0, &context), -FI_EINVAL);
  EXPECT_EQ(fi_trecvmsg(right.endpoint, &tagged, 0), -FI_EINVAL);
  ASSERT_EQ(fi_trecv(right.endpoint, buffer.data(), 8, nullptr, to_left, 1, 0, &context), 0);
  ASSERT_EQ(fi_tinject(left.endpoint, "x", 2, to_right, 1), 0);
  ASSERT_EQ(await(right.receives, entry), 1);
  EXPECT_EQ(entry.op_context, &context);
  EXPECT_STREQ(buffer.data(), "x");
}

TEST_F(ReceiveKindsTest, ExactConcernsOnlyTheReceivesThatAreDirected) {
  start_with(kExactDirectedRecv | kTaggedDirectedRecv);
  EXPECT_EQ(fi_recv(right.endpoint, buffer.data(), 8, nullptr, FI_ADDR_UNSPEC, &context), 0);
  EXPECT_EQ(fi_trecv(right.endpoint, buffer.data(), 8, nullptr, FI_ADDR_UNSPEC, 1, 0, &context), -FI_EINVAL);
}

TEST_F(ReceiveKindsTest, AClaimNeedsNoSourceEvenIfReceivesAreExact) {
  start_with(kExactDirectedRecv);
  ASSERT_EQ(fi_tinject(left.endpoint, "x", 2, to_right, 1), 0);
  fi_context claim{};
  const iovec vector{buffer.data(), 8};
  fi_msg_tagged tagged{&vector, nullptr, 1, to_left, 1, 0, &claim, 0};
  ssize_t result = -1;
  for (int turn = 0; turn < 1000 && result != 1; ++turn) {
    turn_both();
    ASSERT_EQ(fi_trecvmsg(right.endpoint, &tagged, FI_PEEK | FI_CLAIM), 0);
    result = await(right.receives, entry);
    fi_cq_err_entry error{};
    if (result == -FI_EAVAIL) fi_cq_readerr(right.receives, &error, 0);
  }
  ASSERT_EQ(result, 1);
  tagged.addr = FI_ADDR_UNSPEC;
  EXPECT_EQ(fi_trecvmsg(right.endpoint, &tagged, FI_CLAIM), 0);
  ASSERT_EQ(await(right.receives, entry), 1);
  EXPECT_STREQ(buffer.data(), "x");
}

TEST_F(ReceiveKindsTest, OneBufferTakesManyTaggedMessages) {
  start_with(kTaggedMultiRecv);
  const std::size_t least = 8;
  ASSERT_EQ(fi_setopt(&right.endpoint->fid, FI_OPT_ENDPOINT, FI_OPT_MIN_MULTI_RECV, &least, sizeof least), 0);
  const iovec vector{buffer.data(), 20};
  const fi_msg_tagged tagged{&vector, nullptr, 1, FI_ADDR_UNSPEC, 0x10, 0xf, &context, 0};
  ASSERT_EQ(fi_trecvmsg(right.endpoint, &tagged, FI_MULTI_RECV), 0);
  ASSERT_EQ(fi_tinject(left.endpoint, "other", 6, to_right, 0x20), 0);
  for (const std::uint64_t tag : {0x13, 0x11}) {
    ASSERT_EQ(fi_tinject(left.endpoint, "message", 8, to_right, tag), 0);
  }
  for (const std::uint64_t tag : {0x13, 0x11}) {
    ASSERT_EQ(await(right.receives, entry), 1);
    EXPECT_EQ(entry.tag, tag);
    EXPECT_EQ(entry.flags & ~FI_MULTI_RECV, FI_TAGGED | FI_RECV);
    EXPECT_EQ(entry.flags & FI_MULTI_RECV, tag == 0x11 ? FI_MULTI_RECV : 0);
    EXPECT_STREQ(static_cast<char*>(entry.buf), "message");
  }
  EXPECT_EQ(entry.buf, buffer.data() + 8);
}

TEST_F(ReceiveKindsTest, AsAnOperationFlagItConcernsBothKinds) {
  start_with(kTaggedMultiRecv, FI_MULTI_RECV);
  ASSERT_EQ(fi_trecv(right.endpoint, buffer.data(), 64, nullptr, FI_ADDR_UNSPEC, 1, 0, &context), 0);
  for (const char* text : {"a", "b"}) {
    ASSERT_EQ(fi_tinject(left.endpoint, text, 2, to_right, 1), 0);
    ASSERT_EQ(await(right.receives, entry), 1);
    EXPECT_EQ(entry.op_context, &context);
    if (entry.flags & FI_MULTI_RECV) break;
    ASSERT_EQ(await(right.receives, entry), 1) << "fewer than 64 bytes are left";
    EXPECT_EQ(entry.flags, FI_MULTI_RECV);
    ASSERT_EQ(fi_trecv(right.endpoint, buffer.data(), 64, nullptr, FI_ADDR_UNSPEC, 1, 0, &context), 0);
  }
}

TEST_F(ReceiveKindsTest, WithoutTheCapabilityTaggedBuffersAreRefused) {
  start_with(0);
  const iovec vector{buffer.data(), 20};
  const fi_msg_tagged tagged{&vector, nullptr, 1, FI_ADDR_UNSPEC, 0x10, 0xf, &context, 0};
  EXPECT_EQ(fi_trecvmsg(right.endpoint, &tagged, FI_MULTI_RECV), -FI_EBADFLAGS);
}

}  // namespace
}  // namespace cluster::api::test
