// Messages from end to end: the ops tables and engines that ship, a network in memory.
#include <functional>
#include <numeric>

#include "unit/api/api_world.h"

namespace cluster::api::test {
namespace {

class MessageTest : public PairTest {
 protected:
  /// The handle of a peer that does not exist. It takes seconds to be sure of that.
  fi_addr_t insert_unreachable() {
    const sockaddr_in nowhere = raw(host(200, 1));
    fi_addr_t handle = FI_ADDR_NOTAVAIL;
    platform.clock().step = 100us;
    EXPECT_EQ(fi_av_insert(left.av, &nowhere, 1, &handle, 0, nullptr), 1);
    return handle;
  }

  fi_cq_tagged_entry entry{};
  int context = 0;
  int other = 0;
  std::array<char, 32> buffer{};
};

TEST_F(MessageTest, EveryTaggedSendCallArrives) {
  start();
  const char hello[] = "hello";
  iovec parts[] = {{const_cast<char*>(hello), 2}, {const_cast<char*>(hello) + 2, 4}};
  fi_msg_tagged message{parts, nullptr, 2, to_right, 7, 0, &context, 0x1122334455667788};
  const std::function<ssize_t()> ways[] = {
      [&] { return fi_tsend(left.endpoint, hello, 6, nullptr, to_right, 7, &context); },
      [&] { return fi_tsendv(left.endpoint, parts, nullptr, 2, to_right, 7, &context); },
      [&] { return fi_tsendmsg(left.endpoint, &message, FI_REMOTE_CQ_DATA); },
      [&] { return fi_tsenddata(left.endpoint, hello, 6, nullptr, message.data, to_right, 7, &context); },
      [&] { return fi_tinject(left.endpoint, hello, 6, to_right, 7); },
      [&] { return fi_tinjectdata(left.endpoint, hello, 6, message.data, to_right, 7); },
  };
  const bool has_data[] = {false, false, true, true, false, true};
  const bool reports[] = {true, true, true, true, false, false};
  for (std::size_t i = 0; i < std::size(ways); ++i) {
    SCOPED_TRACE(i);
    buffer = {};
    ASSERT_EQ(fi_trecv(right.endpoint, buffer.data(), 32, nullptr, to_left, 7, 0, &other), 0);
    ASSERT_EQ(ways[i](), 0);
    fi_addr_t source = 99;
    ASSERT_EQ(await(right.receives, entry, &source), 1);
    EXPECT_EQ(entry.op_context, &other);
    EXPECT_EQ(entry.flags, FI_TAGGED | FI_RECV | (has_data[i] ? FI_REMOTE_CQ_DATA : 0));
    EXPECT_EQ(entry.len, 6u);
    EXPECT_EQ(entry.tag, 7u);
    EXPECT_EQ(entry.data, has_data[i] ? message.data : 0);
    EXPECT_EQ(source, to_left);
    EXPECT_STREQ(buffer.data(), "hello");
    if (reports[i]) {
      ASSERT_EQ(await(left.sends, entry), 1);
      EXPECT_EQ(entry.op_context, &context);
      EXPECT_EQ(entry.flags, FI_TAGGED | FI_SEND);
    } else {
      expect_nothing(left.sends);
    }
  }
}

TEST_F(MessageTest, EveryReceiveCallTakesUntaggedMessages) {
  start();
  const char hello[] = "hello";
  iovec parts[] = {{buffer.data(), 2}, {buffer.data() + 2, 30}};
  const fi_msg message{parts, nullptr, 2, to_left, &other, 0};
  const std::function<ssize_t()> ways[] = {
      [&] { return fi_recv(right.endpoint, buffer.data(), 32, nullptr, FI_ADDR_UNSPEC, &other); },
      [&] { return fi_recvv(right.endpoint, parts, nullptr, 2, to_left, &other); },
      [&] { return fi_recvmsg(right.endpoint, &message, 0); },
  };
  const fi_msg out{nullptr, nullptr, 0, to_right, &context, 0};
  for (const auto& way : ways) {
    buffer = {};
    ASSERT_EQ(fi_send(left.endpoint, hello, 6, nullptr, to_right, &context), 0);
    ASSERT_EQ(way(), 0);
    ASSERT_EQ(await(right.receives, entry), 1);
    EXPECT_EQ(entry.flags, FI_MSG | FI_RECV);
    EXPECT_STREQ(buffer.data(), "hello");
    ASSERT_EQ(await(left.sends, entry), 1);
    EXPECT_EQ(entry.flags, FI_MSG | FI_SEND);
  }
  ASSERT_EQ(fi_sendmsg(left.endpoint, &out, 0), 0);
  ASSERT_EQ(fi_recv(right.endpoint, nullptr, 0, nullptr, FI_ADDR_UNSPEC, &other), 0);
  ASSERT_EQ(await(right.receives, entry), 1);
  EXPECT_EQ(entry.len, 0u);
}

TEST_F(MessageTest, LargeMessagesArriveWhole) {
  start();
  std::vector<std::uint32_t> out(300'000);
  std::iota(out.begin(), out.end(), 1u);
  std::vector<std::uint32_t> in(out.size());
  const std::size_t size = out.size() * sizeof(out[0]);
  ASSERT_EQ(fi_trecv(right.endpoint, in.data(), size, nullptr, FI_ADDR_UNSPEC, 1, 0, &other), 0);
  ASSERT_EQ(fi_tsend(left.endpoint, out.data(), size, nullptr, to_right, 1, &context), 0);
  ASSERT_EQ(await(right.receives, entry), 1);
  EXPECT_EQ(entry.len, size);
  EXPECT_EQ(in, out);
  ASSERT_EQ(await(left.sends, entry), 1);
}

TEST_F(MessageTest, MessagesOfEverySizeArriveInBothDirections) {
  start();
  std::vector<char> out(1 << 17);
  std::iota(out.begin(), out.end(), '\0');
  for (std::size_t size = 1; size <= out.size(); size = size * 3 / 2 + 1) {
    SCOPED_TRACE(size);
    for (const bool back : {false, true}) {
      std::vector<char> in(size);
      const Node& from = back ? right : left;
      const Node& to = back ? left : right;
      ASSERT_EQ(fi_trecv(to.endpoint, in.data(), size, nullptr, FI_ADDR_UNSPEC, 1, 0, &other), 0);
      ASSERT_EQ(fi_tsend(from.endpoint, out.data(), size, nullptr, back ? to_left : to_right, 1, &context),
                0);
      ASSERT_EQ(await(to.receives, entry), 1);
      EXPECT_EQ(entry.len, size);
      EXPECT_TRUE(std::equal(in.begin(), in.end(), out.begin()));
      ASSERT_EQ(await(from.sends, entry), 1);
    }
  }
}

TEST_F(MessageTest, TaggedAndUntaggedMessagesMatchSeparately) {
  start();
  ASSERT_EQ(fi_trecv(right.endpoint, buffer.data(), 32, nullptr, FI_ADDR_UNSPEC, 0, ~0ull, &other), 0);
  ASSERT_EQ(fi_inject(left.endpoint, "u", 2, to_right), 0);
  expect_nothing(right.receives);
  ASSERT_EQ(fi_tinject(left.endpoint, "t", 2, to_right, 12), 0);
  ASSERT_EQ(await(right.receives, entry), 1);
  EXPECT_EQ(entry.tag, 12u);
  EXPECT_STREQ(buffer.data(), "t");
}

TEST_F(MessageTest, DirectedReceivesMatchTheirSource) {
  start();
  const fi_addr_t to_self = right.insert(right);
  ASSERT_EQ(fi_trecv(right.endpoint, buffer.data(), 32, nullptr, to_self, 1, 0, &context), 0);
  ASSERT_EQ(fi_tinject(left.endpoint, "left", 5, to_right, 1), 0);
  expect_nothing(right.receives);
  ASSERT_EQ(fi_tinject(right.endpoint, "self", 5, to_self, 1), 0);
  fi_addr_t source = 99;
  ASSERT_EQ(await(right.receives, entry, &source), 1);
  EXPECT_EQ(source, to_self);
  EXPECT_STREQ(buffer.data(), "self");
  EXPECT_EQ(fi_trecv(right.endpoint, buffer.data(), 32, nullptr, 4711, 1, 0, &context), -FI_EINVAL);
}

TEST_F(MessageTest, WithoutDirectedRecvTheSourceIsIgnored) {
  info.info.caps &= ~FI_DIRECTED_RECV;
  start();
  ASSERT_EQ(fi_trecv(right.endpoint, buffer.data(), 32, nullptr, 4711, 1, 0, &context), 0);
  ASSERT_EQ(fi_tinject(left.endpoint, "left", 5, to_right, 1), 0);
  EXPECT_EQ(await(right.receives, entry), 1);
}

TEST_F(MessageTest, BadArgumentsAreRefusedAtOnce) {
  start();
  std::vector<char> big(protocol::kInjectMax + 1);
  std::array<iovec, protocol::kIovMax + 1> parts{};
  fi_msg message{parts.data(), nullptr, parts.size(), to_right, nullptr, 0};
  EXPECT_EQ(fi_inject(left.endpoint, big.data(), big.size(), to_right), -FI_EINVAL);
  EXPECT_EQ(fi_inject(left.endpoint, big.data(), big.size() - 1, to_right), 0);
  EXPECT_EQ(fi_send(left.endpoint, big.data(), std::size_t{1} << 40, nullptr, to_right, nullptr),
            -FI_EMSGSIZE);
  EXPECT_EQ(fi_send(left.endpoint, big.data(), 1, nullptr, 4711, nullptr), -FI_EINVAL);
  EXPECT_EQ(fi_sendmsg(left.endpoint, &message, 0), -FI_EINVAL);
  EXPECT_EQ(fi_recvmsg(left.endpoint, &message, 0), -FI_EINVAL);
  message.iov_count = 1;
  EXPECT_EQ(fi_sendmsg(left.endpoint, &message, FI_TRIGGER), -FI_EBADFLAGS);
  EXPECT_EQ(fi_recvmsg(left.endpoint, &message, FI_TRIGGER), -FI_EBADFLAGS);
  EXPECT_EQ(fi_recvmsg(left.endpoint, &message, FI_DISCARD), -FI_EINVAL);
  message.msg_iov = nullptr;
  EXPECT_EQ(fi_sendmsg(left.endpoint, &message, 0), -FI_EINVAL);
}

TEST_F(MessageTest, SelectiveCompletionReportsOnlyWhatIsAskedFor) {
  start(FI_SELECTIVE_COMPLETION, FI_SELECTIVE_COMPLETION);
  iovec part{buffer.data(), 4};
  fi_msg_tagged message{&part, nullptr, 1, to_right, 1, 0, &context, 0};
  ASSERT_EQ(fi_tsend(left.endpoint, "abc", 4, nullptr, to_right, 1, &other), 0);
  ASSERT_EQ(fi_tsendmsg(left.endpoint, &message, 0), 0);
  ASSERT_EQ(fi_tsendmsg(left.endpoint, &message, FI_COMPLETION | FI_INJECT), 0);
  ASSERT_EQ(await(left.sends, entry), 1);
  EXPECT_EQ(entry.op_context, &context);
  expect_nothing(left.sends);
  ASSERT_EQ(fi_trecv(right.endpoint, buffer.data(), 32, nullptr, FI_ADDR_UNSPEC, 1, 0, &other), 0);
  message.addr = FI_ADDR_UNSPEC;
  ASSERT_EQ(fi_trecvmsg(right.endpoint, &message, FI_COMPLETION), 0);
  ASSERT_EQ(await(right.receives, entry), 1);
  EXPECT_EQ(entry.op_context, &context);
  expect_nothing(right.receives);
}

TEST_F(MessageTest, DefaultOpFlagsReportUnlessTheCallHasFlags) {
  info.tx.op_flags = FI_COMPLETION;
  info.rx.op_flags = FI_COMPLETION;
  start(FI_SELECTIVE_COMPLETION, FI_SELECTIVE_COMPLETION);
  const fi_msg message{nullptr, nullptr, 0, to_right, &context, 0};
  ASSERT_EQ(fi_send(left.endpoint, "abc", 4, nullptr, to_right, &other), 0);
  ASSERT_EQ(await(left.sends, entry), 1);
  ASSERT_EQ(fi_sendmsg(left.endpoint, &message, 0), 0);
  expect_nothing(left.sends);
  ASSERT_EQ(fi_recv(right.endpoint, buffer.data(), 32, nullptr, FI_ADDR_UNSPEC, &other), 0);
  ASSERT_EQ(await(right.receives, entry), 1);
}

TEST_F(MessageTest, InjectedBuffersAreFreeOnReturn) {
  start();
  iovec part{buffer.data(), 5};
  const fi_msg message{&part, nullptr, 1, to_right, &context, 0};
  std::memcpy(buffer.data(), "first", 5);
  ASSERT_EQ(fi_sendmsg(left.endpoint, &message, FI_INJECT), 0);
  std::memcpy(buffer.data(), "other", 5);
  ASSERT_EQ(await(left.sends, entry), 1) << "reported, unlike fi_inject";
  EXPECT_EQ(entry.op_context, &context);
  ASSERT_EQ(fi_recv(right.endpoint, buffer.data(), 32, nullptr, FI_ADDR_UNSPEC, &other), 0);
  ASSERT_EQ(await(right.receives, entry), 1);
  EXPECT_EQ(std::string(buffer.data(), 5), "first");
}

TEST_F(MessageTest, DeliveryCompleteIsReportedAfterDelivery) {
  start();
  const fi_msg message{nullptr, nullptr, 0, to_right, &context, 0};
  ASSERT_EQ(fi_sendmsg(left.endpoint, &message, FI_DELIVERY_COMPLETE), 0);
  for (int turn = 0; turn < 100; ++turn) {
    ASSERT_EQ(fi_cq_read(left.sends, &entry, 1), -FI_EAGAIN) << "the peer has made no progress yet";
  }
  EXPECT_EQ(await(left.sends, entry), 1);
  ASSERT_EQ(fi_sendmsg(left.endpoint, &message, FI_INJECT_COMPLETE), 0);
  EXPECT_EQ(fi_cq_read(left.sends, &entry, 1), 1) << "needs no peer";
}

TEST_F(MessageTest, TruncationIsTheReceiversError) {
  start();
  ASSERT_EQ(fi_trecv(right.endpoint, buffer.data(), 4, nullptr, FI_ADDR_UNSPEC, 1, 0, &other), 0);
  ASSERT_EQ(fi_tsenddata(left.endpoint, "too long", 9, nullptr, 3, to_right, 1, &context), 0);
  fi_cq_err_entry error{};
  ASSERT_EQ(await_error(right.receives, error), 1);
  EXPECT_EQ(error.err, FI_ETRUNC);
  EXPECT_EQ(error.len, 4u);
  EXPECT_EQ(error.olen, 5u);
  EXPECT_EQ(error.tag, 1u);
  EXPECT_EQ(error.data, 3u);
  EXPECT_EQ(error.op_context, &other);
  EXPECT_EQ(std::string(buffer.data(), 5), std::string("too \0", 5));
  EXPECT_EQ(await(left.sends, entry), 1);
}

TEST_F(MessageTest, CancelEndsAPostedReceive) {
  start();
  ASSERT_EQ(fi_recv(right.endpoint, buffer.data(), 4, nullptr, FI_ADDR_UNSPEC, &other), 0);
  EXPECT_EQ(fi_cancel(&right.endpoint->fid, &other), 0);
  EXPECT_EQ(fi_cancel(&right.endpoint->fid, &other), 0) << "not there any more: no error";
  fi_cq_err_entry error{};
  ASSERT_EQ(await_error(right.receives, error), 1);
  EXPECT_EQ(error.err, FI_ECANCELED);
  EXPECT_EQ(error.op_context, &other);
  EXPECT_EQ(error.flags, FI_MSG | FI_RECV);
  EXPECT_EQ(fi_cq_readerr(right.receives, &error, 0), -FI_EAGAIN);
}

TEST_F(MessageTest, AnUnreachablePeerIsNamedInTheError) {
  start();
  const fi_addr_t nowhere = insert_unreachable();
  ASSERT_EQ(fi_tsend(left.endpoint, "x", 1, nullptr, nowhere, 1, &context), 0);
  fi_cq_err_entry error{};
  ASSERT_EQ(await_error(left.sends, error), 1);
  EXPECT_EQ(error.err, FI_ECONNREFUSED);
  EXPECT_EQ(error.op_context, &context);
  EXPECT_NE(std::string(fi_cq_strerror(left.sends, error.prov_errno, error.err_data, nullptr, 0))
                .find("10.0.0.200:1"),
            std::string::npos);
}

TEST_F(MessageTest, InjectedMessagesToAnUnreachablePeerFail) {
  start();
  const fi_addr_t nowhere = insert_unreachable();
  ASSERT_EQ(fi_inject(left.endpoint, "u", 1, nowhere), 0);
  ASSERT_EQ(fi_tinject(left.endpoint, "t", 1, nowhere, 1), 0);
  ASSERT_EQ(fi_tinjectdata(left.endpoint, "d", 1, 3, nowhere, 1), 0);
  for (int i = 0; i < 3; ++i) {
    fi_cq_err_entry error{};
    ASSERT_EQ(await_error(left.sends, error), 1);
    EXPECT_EQ(error.err, FI_ECONNREFUSED);
    EXPECT_EQ(error.op_context, nullptr);
  }
}

TEST_F(MessageTest, SendsReturnEagainUntilProgress) {
  platform.settings.tx_requests_max = 8;
  start();
  int taken = 0;
  ssize_t result = 0;
  while ((result = fi_tsend(left.endpoint, "x", 1, nullptr, to_right, 1, &context)) == 0 && taken < 1000)
    ++taken;
  ASSERT_EQ(result, -FI_EAGAIN);
  EXPECT_GE(taken, 8);
  for (int i = 0; i < taken; ++i) ASSERT_EQ(await(left.sends, entry), 1);
  EXPECT_EQ(fi_tsend(left.endpoint, "x", 1, nullptr, to_right, 1, &context), 0);
}

TEST_F(MessageTest, ReadingAnyQueueMakesProgressOnTheEndpoint) {
  start();
  ASSERT_EQ(fi_recv(right.endpoint, buffer.data(), 32, nullptr, FI_ADDR_UNSPEC, &other), 0);
  ASSERT_EQ(fi_send(left.endpoint, "abc", 4, nullptr, to_right, &context), 0);
  for (int turn = 0; turn < 1000; ++turn) {
    fi_cq_read(left.receives, &entry, 1);
    fi_cq_read(right.sends, &entry, 1);
  }
  EXPECT_EQ(fi_cq_read(right.receives, &entry, 1), 1);
  EXPECT_EQ(fi_cq_read(left.sends, &entry, 1), 1);
}

TEST_F(MessageTest, AQueueThatIsNeverEmptyStillMakesProgress) {
  start();
  ASSERT_EQ(fi_recv(right.endpoint, buffer.data(), 32, nullptr, FI_ADDR_UNSPEC, &other), 0);
  ASSERT_EQ(fi_inject(left.endpoint, "first", 6, to_right), 0);
  ASSERT_EQ(await(right.receives, entry), 1);
  for (int i = 0; i < 64; ++i) {
    ASSERT_EQ(fi_recv(right.endpoint, buffer.data(), 32, nullptr, FI_ADDR_UNSPEC, &other), 0);
    ASSERT_EQ(fi_cancel(&right.endpoint->fid, &other), 0);  // errors pile up on the receive side
  }
  ASSERT_EQ(fi_recv(right.endpoint, buffer.data(), 32, nullptr, FI_ADDR_UNSPEC, &other), 0);
  ASSERT_EQ(fi_inject(left.endpoint, "abc", 4, to_right), 0);
  for (int i = 0; i < 32; ++i) EXPECT_EQ(fi_cq_read(right.receives, &entry, 1), -FI_EAVAIL);
  EXPECT_STREQ(buffer.data(), "abc");
}

}  // namespace
}  // namespace cluster::api::test
