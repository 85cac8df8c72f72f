// FI_PEEK, FI_CLAIM and FI_DISCARD, as the probes of Open MPI and MPICH use them.
#include "unit/api/api_world.h"

namespace cluster::api::test {
namespace {

class PeekTest : public PairTest {
 protected:
  ssize_t peek(std::uint64_t flags, std::uint64_t tag, void* with, void* into = nullptr) {
    iovec part{into, into != nullptr ? sizeof buffer : 0};
    fi_msg_tagged message{&part, nullptr, into != nullptr ? 1u : 0u, FI_ADDR_UNSPEC, tag, 0, with, 0};
    return fi_trecvmsg(right.endpoint, &message, flags);
  }
  void send(const char* text, std::uint64_t tag) {
    ASSERT_EQ(fi_tinjectdata(left.endpoint, text, std::strlen(text) + 1, tag + 100, to_right, tag), 0);
    for (int turn = 0; turn < 100; ++turn) turn_both();
  }
  void expect_none(std::uint64_t flags, std::uint64_t tag) {
    ASSERT_EQ(peek(flags, tag, &context), 0);
    fi_cq_err_entry error{};
    ASSERT_EQ(await_error(right.receives, error), 1);
    EXPECT_EQ(error.err, FI_ENOMSG);
    EXPECT_EQ(error.op_context, &context);
    EXPECT_EQ(error.flags, FI_TAGGED | FI_RECV);
  }
  void expect_found(std::uint64_t flags, std::uint64_t tag, std::size_t size, void* for_context) {
    ASSERT_EQ(peek(flags, tag, for_context), 0);
    fi_addr_t source = 99;
    ASSERT_EQ(await(right.receives, entry, &source), 1);
    EXPECT_EQ(entry.op_context, for_context);
    EXPECT_EQ(entry.len, size);
    EXPECT_EQ(entry.tag, tag);
    EXPECT_EQ(entry.data, tag + 100);
    EXPECT_EQ(entry.flags, FI_TAGGED | FI_RECV | FI_REMOTE_CQ_DATA);
    EXPECT_EQ(source, to_left);
  }
  void receive(std::uint64_t tag, const char* expected) {
    ASSERT_EQ(fi_trecv(right.endpoint, buffer, sizeof buffer, nullptr, FI_ADDR_UNSPEC, tag, 0, &other), 0);
    ASSERT_EQ(await(right.receives, entry), 1);
    EXPECT_STREQ(buffer, expected);
  }

  fi_cq_tagged_entry entry{};
  int context = 0;
  int other = 0;
  char buffer[32] = {};
};

TEST_F(PeekTest, AMissIsAnErrorEntry) {
  start();
  expect_none(FI_PEEK, 1);
  expect_none(FI_PEEK | FI_COMPLETION, 1);
  expect_none(FI_PEEK | FI_CLAIM, 1);
  expect_none(FI_PEEK | FI_DISCARD, 1);
}

TEST_F(PeekTest, APeekLeavesTheMessageInPlace) {
  start();
  send("one", 1);
  expect_found(FI_PEEK, 1, 4, &context);
  expect_found(FI_PEEK, 1, 4, &context);
  expect_none(FI_PEEK, 2);
  receive(1, "one");
  expect_none(FI_PEEK, 1);
}

TEST_F(PeekTest, APeekIsReportedWithSelectiveCompletion) {
  start(0, FI_SELECTIVE_COMPLETION);
  send("one", 1);
  expect_found(FI_PEEK, 1, 4, &context);
}

TEST_F(PeekTest, AClaimedMessageIsReceivedByItsContext) {
  start();
  send("one", 1);
  send("two", 1);
  expect_found(FI_PEEK | FI_CLAIM, 1, 4, &context);
  receive(1, "two");
  ASSERT_EQ(peek(FI_CLAIM, 0, &context, buffer), 0);
  ASSERT_EQ(await(right.receives, entry), 1);
  EXPECT_EQ(entry.op_context, &context);
  EXPECT_EQ(entry.tag, 1u);
  EXPECT_STREQ(buffer, "one");
  EXPECT_EQ(peek(FI_CLAIM, 0, &context, buffer), -FI_ENOMSG) << "claimed once, received once";
}

TEST_F(PeekTest, DiscardedMessagesAreRemoved) {
  start();
  send("one", 1);
  send("two", 2);
  expect_found(FI_PEEK | FI_DISCARD, 1, 4, &context);
  expect_none(FI_PEEK, 1);
  expect_found(FI_PEEK | FI_CLAIM, 2, 4, &context);
  ASSERT_EQ(peek(FI_CLAIM | FI_DISCARD, 0, &context), 0);
  ASSERT_EQ(await(right.receives, entry), 1);
  EXPECT_EQ(entry.op_context, &context);
  expect_none(FI_PEEK, 2);
}

TEST_F(PeekTest, ClaimWithDiscardIsRefused) {
  start();
  EXPECT_EQ(peek(FI_PEEK | FI_CLAIM | FI_DISCARD, 1, &context), -FI_EINVAL);
  EXPECT_EQ(peek(FI_DISCARD, 1, &context), -FI_EINVAL);
}

TEST_F(PeekTest, AClaimedMessageCannotBeAMultiReceive) {
  start();
  iovec part{buffer, sizeof buffer};
  const fi_msg message{&part, nullptr, 1, FI_ADDR_UNSPEC, &context, 0};
  EXPECT_EQ(fi_recvmsg(right.endpoint, &message, FI_CLAIM | FI_MULTI_RECV), -FI_EINVAL);
  EXPECT_EQ(fi_recvmsg(right.endpoint, &message, FI_CLAIM | FI_DISCARD | FI_MULTI_RECV), -FI_EINVAL);
}

}  // namespace
}  // namespace cluster::api::test
