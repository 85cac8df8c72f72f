// FI_TRIGGER: operations that begin when a counter reaches a threshold, and deferred work queues.
// fi_trigger(3)
#include <rdma/fi_atomic.h>
#include <rdma/fi_rma.h>
#include <rdma/fi_trigger.h>

#include <numeric>

#include "fabric.h"

namespace conformance {
namespace {

constexpr std::uint64_t kKey = 77;
constexpr std::size_t kSizes[] = {8, 100000};

Options trigger_options() {
  Options options;
  options.caps = FI_MSG | FI_TAGGED | FI_RMA | FI_ATOMIC | FI_TRIGGER | FI_DIRECTED_RECV | FI_SOURCE;
  options.counted = FI_SEND | FI_RECV | FI_READ | FI_WRITE;
  return options;
}

Owned<fid_cntr> open_counter(Endpoint& e) {
  fi_cntr_attr attributes{};
  attributes.wait_obj = FI_WAIT_UNSPEC;
  fid_cntr* counter = nullptr;
  EXPECT_EQ(fi_cntr_open(e.domain().domain(), &attributes, &counter, nullptr), 0);
  return Owned<fid_cntr>(counter);
}

fi_triggered_context condition(fid_cntr* counter, std::size_t threshold) {
  fi_triggered_context context{};
  context.event_type = FI_TRIGGER_THRESHOLD;
  context.trigger.threshold = {counter, threshold};
  return context;
}

void trigger_send(Team& team, const std::vector<unsigned char>& data, std::uint64_t tag,
                  fi_triggered_context& context) {
  const iovec vector{const_cast<unsigned char*>(data.data()), data.size()};
  const fi_msg_tagged message{&vector, nullptr, 1, team.peer(), tag, 0, &context, 0};
  Endpoint& e = team.endpoint;
  e.must([&] { return fi_tsendmsg(e.ep(), &message, FI_TRIGGER | FI_COMPLETION); });
}

PAIR_TEST(Trigger, SendsBeginInTheOrderOfTheirThresholds) {
  Team team(side, trigger_options());
  Endpoint& e = team.endpoint;
  for (const std::size_t size : kSizes) {
    SCOPED_TRACE(size);
    if (side.first()) {
      const Owned<fid_cntr> counter = open_counter(e);
      std::vector<fi_triggered_context> contexts;
      for (const std::size_t threshold : {3, 1, 2, 1})
        contexts.push_back(condition(counter.get(), threshold));
      std::vector<std::vector<unsigned char>> data;
      for (std::size_t i = 0; i < contexts.size(); ++i) {
        data.push_back(pattern(size, i));
        trigger_send(team, data[i], i, contexts[i]);
      }
      team.meet();
      EXPECT_TRUE(e.silent(std::chrono::milliseconds(20)));
      team.meet();
      EXPECT_EQ(fi_cntr_add(counter.get(), 1), 0);
      e.finish(&contexts[1]);
      e.finish(&contexts[3]);
      EXPECT_TRUE(e.silent(std::chrono::milliseconds(20)));
      EXPECT_EQ(fi_cntr_set(counter.get(), 10), 0);
      e.finish(&contexts[2]);
      e.finish(&contexts[0]);
    } else {
      std::vector<std::vector<unsigned char>> buffers(4, std::vector<unsigned char>(size));
      for (auto& buffer : buffers) {
        e.must(
            [&] { return fi_trecv(e.ep(), buffer.data(), size, nullptr, team.peer(), 0, ~0ull, &buffer); });
      }
      team.meet();
      EXPECT_TRUE(e.silent(std::chrono::milliseconds(20)));
      team.meet();
      for (std::size_t i = 0; i < 4; ++i) {
        constexpr std::uint64_t kOrder[] = {1, 3, 2, 0};
        EXPECT_EQ(e.finish(&buffers[i]).entry.tag, kOrder[i]);
        EXPECT_TRUE(has_pattern(buffers[i], kOrder[i]));
      }
    }
    team.meet();
  }
}

PAIR_TEST(Trigger, AReceiveStartsTheAnswerWithoutTheApplication) {
  Team team(side, trigger_options());
  Endpoint& e = team.endpoint;
  for (const std::size_t size : kSizes) {
    std::vector<unsigned char> buffer(size);
    const auto data = pattern(size, 5);
    int received = 0;
    e.must([&] { return fi_trecv(e.ep(), buffer.data(), size, nullptr, team.peer(), 1, 0, &received); });
    if (side.first()) {
      team.meet();
      int sent = 0;
      e.must([&] { return fi_tsend(e.ep(), data.data(), size, nullptr, team.peer(), 1, &sent); });
      e.finish(&sent);
      e.finish(&received);
      EXPECT_TRUE(has_pattern(buffer, 5));
    } else {
      fi_triggered_context context = condition(e.counter(FI_RECV), fi_cntr_read(e.counter(FI_RECV)) + 1);
      trigger_send(team, data, 1, context);
      team.meet();
      e.finish(&context);
      e.finish(&received);
    }
    team.meet();
  }
}

PAIR_TEST(Trigger, TheOperationFlagOfAnAliasTriggersEachOfItsCalls) {
  Team team(side, trigger_options());
  Endpoint& e = team.endpoint;
  std::vector<std::uint64_t> memory(4);
  fid_mr* region = nullptr;
  ASSERT_EQ(fi_mr_reg(e.domain().domain(), memory.data(), sizeof(std::uint64_t) * memory.size(),
                      FI_REMOTE_READ | FI_REMOTE_WRITE, 0, kKey, 0, &region, nullptr),
            0);
  team.meet();
  if (side.first()) {
    const Owned<fid_cntr> counter = open_counter(e);
    fid_ep* alias = nullptr;
    ASSERT_EQ(fi_ep_alias(e.ep(), &alias, FI_TRANSMIT | FI_TRIGGER), 0);
    std::uint64_t values[] = {11, 22, 5};
    std::uint64_t before = 99;
    fi_triggered_context contexts[3];
    for (std::size_t i = 0; i < 3; ++i) contexts[i] = condition(counter.get(), i + 1);
    EXPECT_EQ(fi_write(alias, &values[0], 8, nullptr, team.peer(), 0, kKey, &contexts[0]), 0);
    EXPECT_EQ(fi_write(alias, &values[1], 8, nullptr, team.peer(), 8, kKey, &contexts[1]), 0);
    EXPECT_EQ(fi_fetch_atomic(alias, &values[2], 1, nullptr, &before, nullptr, team.peer(), 8, kKey,
                              FI_UINT64, FI_SUM, &contexts[2]),
              0);
    EXPECT_EQ(fi_inject_write(alias, &values[0], 8, team.peer(), 0, kKey), -FI_ENOSYS) << "it has no context";
    EXPECT_TRUE(e.silent(std::chrono::milliseconds(20)));
    EXPECT_EQ(fi_cntr_add(counter.get(), 2), 0);
    e.finish(&contexts[0]);
    e.finish(&contexts[1]);
    EXPECT_EQ(fi_close(&alias->fid), 0) << "the operations belong to the endpoint";
    EXPECT_EQ(fi_cntr_add(counter.get(), 1), 0);
    e.finish(&contexts[2]);
    EXPECT_EQ(before, 22u);
    team.meet();
  } else {
    team.meet();
    // The progress thread may have executed the last access. ThreadSanitizer does not see that the initiator
    // met this side afterwards. It sees the endpoint's lock.
    fi_cq_read(e.tx(), nullptr, 0);
    EXPECT_EQ(memory, (std::vector<std::uint64_t>{11, 27, 0, 0}));
  }
  team.meet();
  EXPECT_EQ(fi_close(&region->fid), 0);
}

PAIR_TEST(Trigger, WaitingOperationsCanBeCancelledAndFailOnlyWhenTheyBegin) {
  Team team(side, trigger_options());
  Endpoint& e = team.endpoint;
  const Owned<fid_cntr> counter = open_counter(e);
  fi_triggered_context contexts[3];
  for (fi_triggered_context& context : contexts) context = condition(counter.get(), 1);
  const std::vector<unsigned char> data(8);
  trigger_send(team, data, 1, contexts[0]);
  std::vector<unsigned char> buffer(8);
  const iovec vector{buffer.data(), buffer.size()};
  const fi_msg_tagged receive{&vector, nullptr, 1, team.peer(), 2, 0, &contexts[1], 0};
  e.must([&] { return fi_trecvmsg(e.ep(), &receive, FI_TRIGGER | FI_COMPLETION); });
  const fi_msg_tagged wrong{&vector, nullptr, 1, 1000, 2, 0, &contexts[2], 0};
  e.must([&] { return fi_tsendmsg(e.ep(), &wrong, FI_TRIGGER | FI_COMPLETION); });
  for (int i = 0; i < 2; ++i) {
    ASSERT_EQ(fi_cancel(&e.ep()->fid, &contexts[i]), 0);
    e.fail(&contexts[i], FI_ECANCELED);
  }
  EXPECT_EQ(fi_cntr_readerr(e.counter(FI_SEND)), 1u);
  EXPECT_EQ(fi_cntr_add(counter.get(), 1), 0);
  e.fail(&contexts[2], FI_EINVAL);
  EXPECT_EQ(fi_cntr_readerr(e.counter(FI_SEND)), 2u);
  EXPECT_TRUE(e.silent(std::chrono::milliseconds(20)));
}

SINGLE_TEST(Trigger, BadConditionsAreRefused) {
  Endpoint e(trigger_options());
  const Owned<fid_cntr> counter = open_counter(e);
  unsigned char byte = 0;
  const iovec vector{&byte, 1};
  fi_triggered_context context = condition(nullptr, 1);
  fi_msg message{&vector, nullptr, 1, 0, &context, 0};
  EXPECT_EQ(fi_sendmsg(e.ep(), &message, FI_TRIGGER), -FI_EINVAL);
  context = condition(counter.get(), 1);
  EXPECT_EQ(fi_sendmsg(e.ep(), &message, FI_TRIGGER | FI_INJECT), -FI_EINVAL);
  context.event_type = FI_TRIGGER_XPU;
  EXPECT_EQ(fi_sendmsg(e.ep(), &message, FI_TRIGGER), -FI_ENOSYS);
  message.context = nullptr;
  EXPECT_EQ(fi_sendmsg(e.ep(), &message, FI_TRIGGER), -FI_EINVAL);
  Options without = trigger_options();
  without.caps &= ~FI_TRIGGER;
  Endpoint plain(without);
  EXPECT_EQ(fi_sendmsg(plain.ep(), &message, FI_TRIGGER), -FI_EBADFLAGS);
}

/// One operation of a deferred work queue, with its condition and the counter for its outcome.
struct Work {
  fi_deferred_work work{};
  fi_op_msg msg{};
  fi_op_tagged tagged{};
  fi_op_rma rma{};
  fi_op_atomic atomic{};
  fi_op_fetch_atomic fetch{};
  fi_op_compare_atomic compare{};
  fi_op_cntr cntr{};
  iovec vector{};
  fi_rma_iov range{};
  fi_ioc operand{};
  fi_rma_ioc remote{};
  fi_ioc result{};
  fi_ioc comparand{};

  Work(fid_cntr* trigger, std::uint64_t threshold, fid_cntr* done) {
    work.triggering_cntr = trigger;
    work.threshold = threshold;
    work.completion_cntr = done;
  }
  void tag(Endpoint& e, fi_op_type type, std::vector<unsigned char>& buffer, fi_addr_t peer,
           std::uint64_t flags) {
    vector = {buffer.data(), buffer.size()};
    tagged = {e.ep(), {&vector, nullptr, 1, peer, 3, 0, &work.context, 0}, flags};
    work.op_type = type;
    work.op.tagged = &tagged;
  }
  void message(Endpoint& e, fi_op_type type, std::vector<unsigned char>& buffer, fi_addr_t peer) {
    vector = {buffer.data(), buffer.size()};
    msg = {e.ep(), {&vector, nullptr, 1, peer, &work.context, 0}, 0};
    work.op_type = type;
    work.op.msg = &msg;
  }
  void access(Endpoint& e, fi_op_type type, std::vector<unsigned char>& buffer, fi_addr_t peer,
              std::uint64_t address) {
    vector = {buffer.data(), buffer.size()};
    range = {address, buffer.size(), kKey};
    rma = {e.ep(), {&vector, nullptr, 1, peer, &range, 1, &work.context, 0}, 0};
    work.op_type = type;
    work.op.rma = &rma;
  }
  fi_msg_atomic atomic_message(std::uint64_t& value, fi_addr_t peer, fi_op op) {
    operand = {&value, 1};
    remote = {0, 1, kKey};
    return {&operand, nullptr, 1, peer, &remote, 1, FI_UINT64, op, &work.context, 0};
  }
  int queue(Endpoint& e) { return fi_control(&e.domain().domain()->fid, FI_QUEUE_WORK, &work); }
};

PAIR_TEST(DeferredWork, MessagesCountOnlyInTheirCompletionCounter) {
  Team team(side, trigger_options());
  Endpoint& e = team.endpoint;
  for (const std::size_t size : kSizes) {
    SCOPED_TRACE(size);
    const Owned<fid_cntr> trigger = open_counter(e);
    const Owned<fid_cntr> done = open_counter(e);
    const std::uint64_t sends = fi_cntr_read(e.counter(FI_SEND));
    const std::uint64_t receives = fi_cntr_read(e.counter(FI_RECV));
    std::vector<unsigned char> in[2] = {std::vector<unsigned char>(size), std::vector<unsigned char>(size)};
    auto out = pattern(size, 9);
    Work receive(trigger.get(), 1, done.get());
    receive.message(e, FI_OP_RECV, in[0], team.peer());
    Work tagged_receive(trigger.get(), 1, done.get());
    tagged_receive.tag(e, FI_OP_TRECV, in[1], team.peer(), FI_COMPLETION);
    Work send(trigger.get(), 2, done.get());
    send.message(e, FI_OP_SEND, out, team.peer());
    Work tagged_send(trigger.get(), 2, done.get());
    tagged_send.tag(e, FI_OP_TSEND, out, team.peer(), 0);
    for (Work* each : {&send, &receive, &tagged_receive, &tagged_send}) ASSERT_EQ(each->queue(e), 0);
    EXPECT_TRUE(e.silent(std::chrono::milliseconds(10)));
    EXPECT_EQ(fi_cntr_add(trigger.get(), 1), 0);
    EXPECT_EQ(fi_cntr_read(done.get()), 0u);
    team.meet();
    EXPECT_EQ(fi_cntr_adderr(trigger.get(), 1), 0) << "errors count, too";
    EXPECT_EQ(fi_cntr_wait(done.get(), 4, 20000), 0);
    EXPECT_EQ(e.finish(&tagged_receive.work.context).entry.len, size);
    EXPECT_TRUE(e.silent(std::chrono::milliseconds(10)));
    for (const auto& buffer : in) EXPECT_TRUE(has_pattern(buffer, 9));
    EXPECT_EQ(fi_cntr_read(e.counter(FI_SEND)), sends);
    EXPECT_EQ(fi_cntr_read(e.counter(FI_RECV)), receives);
    team.meet();
  }
}

PAIR_TEST(DeferredWork, AccessesAndAtomicsFollowEachOther) {
  Team team(side, trigger_options());
  Endpoint& e = team.endpoint;
  for (const std::size_t size : {std::size_t{16}, std::size_t{200000}}) {
    SCOPED_TRACE(size);
    std::vector<unsigned char> memory(size);
    fid_mr* region = nullptr;
    ASSERT_EQ(fi_mr_reg(e.domain().domain(), memory.data(), size, FI_REMOTE_READ | FI_REMOTE_WRITE, 0, kKey,
                        0, &region, nullptr),
              0);
    team.meet();
    if (side.first()) {
      const Owned<fid_cntr> step = open_counter(e);
      const std::uint64_t writes = fi_cntr_read(e.counter(FI_WRITE));
      const std::uint64_t reads = fi_cntr_read(e.counter(FI_READ));
      std::vector<unsigned char> out(size);
      std::vector<unsigned char> in(size);
      out[0] = 5;
      std::uint64_t three = 3;
      std::uint64_t eight = 8;
      std::uint64_t ten = 10;
      std::uint64_t fetched = 0;
      std::uint64_t compared = 0;
      Work write(step.get(), 1, step.get());
      write.access(e, FI_OP_WRITE, out, team.peer(), 0);
      Work atomic(step.get(), 2, step.get());
      atomic.atomic = {e.ep(), atomic.atomic_message(three, team.peer(), FI_SUM), 0};
      atomic.work.op_type = FI_OP_ATOMIC;
      atomic.work.op.atomic = &atomic.atomic;
      Work fetch(step.get(), 3, step.get());
      fetch.result = {&fetched, 1};
      fetch.fetch = {
          e.ep(), fetch.atomic_message(three, team.peer(), FI_ATOMIC_READ), {&fetch.result, nullptr, 1}, 0};
      fetch.work.op_type = FI_OP_FETCH_ATOMIC;
      fetch.work.op.fetch_atomic = &fetch.fetch;
      Work compare(step.get(), 4, step.get());
      compare.result = {&compared, 1};
      compare.comparand = {&eight, 1};
      compare.compare = {e.ep(),
                         compare.atomic_message(ten, team.peer(), FI_CSWAP),
                         {&compare.result, nullptr, 1},
                         {&compare.comparand, nullptr, 1},
                         0};
      compare.work.op_type = FI_OP_COMPARE_ATOMIC;
      compare.work.op.compare_atomic = &compare.compare;
      Work read(step.get(), 5, step.get());
      read.access(e, FI_OP_READ, in, team.peer(), 0);
      for (Work* each : {&read, &compare, &fetch, &atomic, &write}) ASSERT_EQ(each->queue(e), 0);
      EXPECT_TRUE(e.silent(std::chrono::milliseconds(10)));
      EXPECT_EQ(fi_cntr_add(step.get(), 1), 0);
      EXPECT_EQ(fi_cntr_wait(step.get(), 6, 20000), 0);
      EXPECT_EQ(fetched, 8u);
      EXPECT_EQ(compared, 8u);
      EXPECT_EQ(in[0], 10);
      EXPECT_TRUE(e.silent(std::chrono::milliseconds(10)));
      EXPECT_EQ(fi_cntr_read(e.counter(FI_WRITE)), writes);
      EXPECT_EQ(fi_cntr_read(e.counter(FI_READ)), reads);
    }
    team.meet();
    if (!side.first()) {
      EXPECT_EQ(memory[0], 10);
    }
    EXPECT_EQ(fi_close(&region->fid), 0);
    team.meet();
  }
}

SINGLE_TEST(DeferredWork, ChangesCountersAndCanBeCancelledAndFlushed) {
  Endpoint e(trigger_options());
  fid* const domain = &e.domain().domain()->fid;
  const Owned<fid_cntr> trigger = open_counter(e);
  const Owned<fid_cntr> other = open_counter(e);
  const Owned<fid_cntr> target = open_counter(e);
  Work set(trigger.get(), 1, nullptr);
  set.cntr = {target.get(), 5};
  set.work.op_type = FI_OP_CNTR_SET;
  set.work.op.cntr = &set.cntr;
  Work add = set;
  add.work.op_type = FI_OP_CNTR_ADD;
  add.work.op.cntr = &set.cntr;
  ASSERT_EQ(set.queue(e), 0);
  ASSERT_EQ(add.queue(e), 0);
  EXPECT_EQ(fi_cntr_add(trigger.get(), 1), 0);
  EXPECT_EQ(fi_cntr_wait(target.get(), 10, 20000), 0);
  EXPECT_EQ(fi_control(domain, FI_CANCEL_WORK, &add.work), -FI_ENOENT) << "it has begun";
  ASSERT_EQ(add.queue(e), 0);
  EXPECT_EQ(fi_cntr_read(target.get()), 15u) << "the condition was met when it was queued";

  add.work.threshold = 100;
  Work late = add;
  late.work.triggering_cntr = other.get();
  late.work.threshold = 1;
  ASSERT_EQ(add.queue(e), 0);
  EXPECT_EQ(fi_control(domain, FI_CANCEL_WORK, &add.work), 0);
  ASSERT_EQ(add.queue(e), 0);
  ASSERT_EQ(late.queue(e), 0);
  EXPECT_EQ(fi_control(domain, FI_FLUSH_WORK, &trigger->fid), 0) << "only the work of this counter";
  EXPECT_EQ(fi_cntr_set(trigger.get(), 100), 0);
  EXPECT_EQ(fi_cntr_add(other.get(), 1), 0);
  EXPECT_EQ(fi_cntr_read(target.get()), 20u);
  late.work.threshold = 2;
  ASSERT_EQ(late.queue(e), 0);
  EXPECT_EQ(fi_control(domain, FI_FLUSH_WORK, nullptr), 0);
  EXPECT_EQ(fi_cntr_add(other.get(), 1), 0);
  EXPECT_EQ(fi_cntr_read(target.get()), 20u);

  add.work.completion_cntr = other.get();
  EXPECT_EQ(add.queue(e), -FI_EINVAL) << "work on counters has no completion counter";
  EXPECT_EQ(fi_control(domain, FI_QUEUE_WORK, nullptr), -FI_EINVAL);
}

PAIR_TEST(DeferredWork, FailuresAreCountedAsErrorsAndReported) {
  Team team(side, trigger_options());
  Endpoint& e = team.endpoint;
  const Owned<fid_cntr> trigger = open_counter(e);
  const Owned<fid_cntr> done = open_counter(e);
  std::vector<unsigned char> data(8);
  Work unknown(trigger.get(), 1, done.get());
  unknown.tag(e, FI_OP_TSEND, data, 1000, 0);
  Work refused(trigger.get(), 1, done.get());
  refused.access(e, FI_OP_WRITE, data, team.peer(), 0);  // the peer has no such region
  ASSERT_EQ(unknown.queue(e), 0);
  ASSERT_EQ(refused.queue(e), 0);
  EXPECT_EQ(fi_cntr_add(trigger.get(), 1), 0);
  e.fail(&unknown.work.context, FI_EINVAL);
  e.fail(&refused.work.context, FI_EACCES);
  EXPECT_EQ(fi_cntr_readerr(done.get()), 2u);
  EXPECT_EQ(fi_cntr_read(done.get()), 0u);
  Work whole(trigger.get(), 1, done.get());
  whole.tag(e, FI_OP_TRECV, data, team.peer(), FI_MULTI_RECV);
  EXPECT_EQ(whole.queue(e), -FI_ENOSYS);
  team.meet();
}

PAIR_TEST(DeferredWork, EndsWithItsEndpoint) {
  Team team(side, trigger_options());
  Endpoint& e = team.endpoint;
  const Owned<fid_cntr> trigger = open_counter(e);
  const Owned<fid_cntr> done = open_counter(e);
  std::vector<unsigned char> buffer(8);
  {
    Endpoint second(e.domain());
    Work begun(trigger.get(), 1, done.get());
    begun.tag(second, FI_OP_TRECV, buffer, team.peer(), 0);
    Work waiting(trigger.get(), 2, done.get());
    waiting.tag(second, FI_OP_TSEND, buffer, team.peer(), 0);
    ASSERT_EQ(begun.queue(second), 0);
    ASSERT_EQ(waiting.queue(second), 0);
    EXPECT_EQ(fi_cntr_add(trigger.get(), 1), 0);
    EXPECT_EQ(fi_close(&done->fid), -FI_EBUSY);
  }
  EXPECT_EQ(fi_cntr_add(trigger.get(), 1), 0);
  EXPECT_EQ(fi_cntr_read(done.get()) + fi_cntr_readerr(done.get()), 0u);
  team.meet();
}

}  // namespace
}  // namespace conformance
