// Triggered operations and deferred work, over a network in memory.
#include "api/deferred_work.h"

#include <rdma/fi_trigger.h>

#include <vector>

#include "unit/api/api_world.h"

namespace cluster::api::test {
namespace {

class DeferredWorkTest : public PairTest {
 protected:
  DeferredWorkTest() {
    info.info.caps |= FI_TRIGGER;
    counter = open_cntr();
    done = open_cntr();
  }
  ~DeferredWorkTest() override {
    if (left.endpoint != nullptr) {
      left.close();
      right.close();
      left.endpoint = nullptr;
    }
    EXPECT_EQ(fi_close(&done->fid), 0);
    EXPECT_EQ(fi_close(&counter->fid), 0);
  }

  fi_triggered_context at(std::size_t threshold) {
    fi_triggered_context result{};
    result.event_type = FI_TRIGGER_THRESHOLD;
    result.trigger.threshold = {counter, threshold};
    return result;
  }
  ssize_t send_at(fi_triggered_context& when, const char* text) {
    const iovec vector{const_cast<char*>(text), 1};
    const fi_msg message{&vector, nullptr, 1, to_right, &when, 0};
    return fi_sendmsg(left.endpoint, &message, FI_TRIGGER);
  }
  /// Queues work that adds 3 to `done` when `counter` reaches 1.
  int queue_addition() {
    fi_op_cntr op{done, 3};
    fi_deferred_work work{};
    work.threshold = 1;
    work.triggering_cntr = counter;
    work.op_type = FI_OP_CNTR_ADD;
    work.op.cntr = &op;
    return fi_control(&domain->fid, FI_QUEUE_WORK, &work);
  }
  /// Receives one message on the right, and returns its byte.
  char next_byte() {
    char byte = 0;
    EXPECT_EQ(fi_recv(right.endpoint, &byte, 1, nullptr, FI_ADDR_UNSPEC, nullptr), 0);
    EXPECT_EQ(await(right.receives, entry), 1);
    return byte;
  }

  fid_cntr* counter;
  fid_cntr* done;
  fi_cq_tagged_entry entry{};
};

TEST_F(DeferredWorkTest, OperationsBeginByThresholdAndThenByTheOrderOfTheirCalls) {
  start();
  fi_triggered_context contexts[] = {at(2), at(1), at(2), at(1)};
  const char* const texts[] = {"c", "a", "d", "b"};
  for (int i = 0; i < 4; ++i) ASSERT_EQ(send_at(contexts[i], texts[i]), 0);
  expect_nothing(left.sends);
  ASSERT_EQ(fi_cntr_set(counter, 2), 0);
  for (const char expected : {'a', 'b', 'c', 'd'}) EXPECT_EQ(next_byte(), expected);
  for (const int i : {1, 3, 0, 2}) {
    ASSERT_EQ(await(left.sends, entry), 1);
    EXPECT_EQ(entry.op_context, &contexts[i]);
  }
  fi_triggered_context late = at(1);
  ASSERT_EQ(send_at(late, "e"), 0);
  EXPECT_EQ(next_byte(), 'e') << "the condition was met already";
}

TEST_F(DeferredWorkTest, ArraysOfTheCallMayChangeWhenItReturns) {
  start();
  fi_triggered_context when = at(1);
  char text[] = "x";
  iovec vector{text, 1};
  fi_msg message{&vector, nullptr, 1, to_right, &when, 0};
  ASSERT_EQ(fi_sendmsg(left.endpoint, &message, FI_TRIGGER), 0);
  vector = {nullptr, 1000};
  message = {};
  text[0] = 'y';
  ASSERT_EQ(fi_cntr_add(counter, 1), 0);
  EXPECT_EQ(next_byte(), 'y') << "the buffer is read when the operation begins";
}

TEST_F(DeferredWorkTest, ErrorsOfTheCounterStartWorkButNoTriggeredOperation) {
  start();
  fi_triggered_context when = at(1);
  ASSERT_EQ(send_at(when, "t"), 0);
  ASSERT_EQ(queue_addition(), 0);
  ASSERT_EQ(fi_cntr_adderr(counter, 1), 0);
  EXPECT_EQ(fi_cntr_read(done), 3u);
  expect_nothing(left.sends);
  ASSERT_EQ(fi_cntr_add(counter, 1), 0);
  EXPECT_EQ(next_byte(), 't');
}

TEST_F(DeferredWorkTest, AnOperationThatMustWaitStopsOnlyItsEndpoint) {
  start();
  std::vector<char> bytes(1 << 20);  // nobody receives it, so it stays under way
  ssize_t result = 0;
  while (result == 0) result = fi_send(left.endpoint, bytes.data(), bytes.size(), nullptr, to_right, nullptr);
  ASSERT_EQ(result, -FI_EAGAIN);
  fi_triggered_context when = at(1);
  ASSERT_EQ(send_at(when, "x"), 0);
  ASSERT_EQ(queue_addition(), 0);
  ASSERT_EQ(fi_cntr_add(counter, 1), 0);
  EXPECT_EQ(fi_cntr_read(done), 3u);
}

TEST_F(DeferredWorkTest, WorkNeedsObjectsOfItsDomainAndAnEndpointWithTheCapability) {
  start();
  info.info.caps &= ~FI_TRIGGER;
  fid_ep* const plain = open_endpoint();
  char byte = 0;
  const iovec vector{&byte, 1};
  fi_op_msg op{plain, {&vector, nullptr, 1, 0, nullptr, 0}, 0};
  fi_deferred_work work{};
  work.triggering_cntr = counter;
  work.op_type = FI_OP_SEND;
  work.op.msg = &op;
  const auto queue = [&] { return fi_control(&domain->fid, FI_QUEUE_WORK, &work); };
  EXPECT_EQ(queue(), -FI_ENOSYS);
  op.ep = nullptr;
  EXPECT_EQ(queue(), -FI_EINVAL);
  op.ep = left.endpoint;
  op.msg.iov_count = 100;
  EXPECT_EQ(queue(), -FI_EINVAL);
  op.msg.iov_count = 1;
  work.op_type = FI_OP_READ;
  fi_op_rma access{left.endpoint, {}, 0};
  work.op.rma = &access;
  EXPECT_EQ(queue(), -FI_ENOSYS) << "the endpoint has no FI_RMA";
  work.op_type = static_cast<fi_op_type>(99);
  EXPECT_EQ(queue(), -FI_ENOSYS);
  work.op_type = FI_OP_SEND;
  work.op.msg = &op;
  work.triggering_cntr = nullptr;
  EXPECT_EQ(queue(), -FI_EINVAL);
  EXPECT_EQ(fi_control(&domain->fid, FI_ALIAS, nullptr), -FI_ENOSYS);
  EXPECT_EQ(fi_close(&plain->fid), 0);
}

TEST_F(DeferredWorkTest, AClosedEndpointBeginsNothing) {
  start();
  fi_triggered_context when = at(1);
  ASSERT_EQ(send_at(when, "n"), 0);
  left.close();
  EXPECT_EQ(fi_cntr_add(counter, 1), 0);
  right.close();
  left.endpoint = nullptr;
}

struct CountingWatch final : protocol::CounterWatch {
  void counter_changed() noexcept override { ++changes; }
  int changes = 0;
};
struct CountingWaker final : Waker {
  void wake() override { ++wakes; }
  void clear() override {}
  int wakes = 0;
};

TEST(CounterWatch, LearnsOfEachChangeWhileAWakerLearnsOfTheNext) {
  protocol::Counter counter;
  CountingWatch watch;
  CountingWaker waker;
  counter.wake_at_next(waker);
  counter.add(1);
  counter.add(1);
  EXPECT_EQ(waker.wakes, 1);
  counter.watch(watch);
  counter.set(7);
  counter.add_errors(1);
  counter.wake_at_next(waker);
  counter.count(Status::ok);
  counter.set_errors(0);
  EXPECT_EQ(watch.changes, 4);
  EXPECT_EQ(waker.wakes, 2);
}

}  // namespace
}  // namespace cluster::api::test
