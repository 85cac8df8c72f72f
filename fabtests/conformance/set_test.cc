// Poll sets and wait sets, which libfabric 2.0 has deprecated: fi_poll(3)
#include <poll.h>

#include <thread>

#include "wait_options.h"

namespace conformance {
namespace {

using std::chrono::milliseconds;

Owned<fid_poll> open_poll_set(Domain& domain) {
  fi_poll_attr attr{};
  fid_poll* set = nullptr;
  EXPECT_EQ(fi_poll_open(domain.domain(), &attr, &set), 0);
  return Owned<fid_poll>(set);
}

Owned<fid_wait> open_wait_set(Domain& domain, fi_wait_obj object = FI_WAIT_UNSPEC) {
  fi_wait_attr attr{};
  attr.wait_obj = object;
  fid_wait* set = nullptr;
  EXPECT_EQ(fi_wait_open(domain.fabric(), &attr, &set), 0);
  return Owned<fid_wait>(set);
}

/// The contexts of the members that have events, as soon as there are `count`.
std::vector<void*> poll_for(fid_poll* set, std::size_t count) {
  std::vector<void*> contexts(8);
  for (const Deadline deadline(std::chrono::seconds(20)); !deadline.passed();) {
    const int found = fi_poll(set, contexts.data(), static_cast<int>(contexts.size()));
    EXPECT_GE(found, 0);
    if (found < 0 || static_cast<std::size_t>(found) >= count) {
      contexts.resize(static_cast<std::size_t>(std::max(found, 0)));
      return contexts;
    }
  }
  ADD_FAILURE() << "fewer than " << count << " members have events";
  return {};
}

PAIR_TEST(PollSet, NamesTheMembersThatHaveEvents) {
  Options options;
  options.counted = FI_RECV;
  Team team(side, options);
  Endpoint& e = team.endpoint;
  const Owned<fid_poll> set = open_poll_set(e.domain());
  fid_cntr* const counter = e.counter(FI_RECV);
  for (fid* const member : {&e.rx()->fid, &e.tx()->fid, &counter->fid}) {
    member->context = member;
    ASSERT_EQ(fi_poll_add(set.get(), member, 0), 0);
  }
  void* contexts[8] = {};
  EXPECT_EQ(fi_poll(set.get(), contexts, 8), 0);
  char value = 0;
  int context = 0;
  e.must([&] { return fi_recv(e.ep(), &value, 1, nullptr, team.peer(), &context); });
  team.meet();
  e.must([&] { return fi_inject(e.ep(), &value, 1, team.peer()); });
  // The call itself makes progress: nothing else does here.
  const std::vector<void*> found = poll_for(set.get(), 2);
  EXPECT_EQ(found, (std::vector<void*>{e.rx(), counter}));
  EXPECT_EQ(fi_poll(set.get(), contexts, 1), 1) << "no more than there is room for";
  EXPECT_EQ(contexts[0], e.rx());
  EXPECT_EQ(fi_cntr_read(counter), 1u);
  EXPECT_EQ(fi_poll(set.get(), contexts, 8), 1) << "the counter has been read";
  e.finish(&context);
  EXPECT_EQ(fi_poll(set.get(), contexts, 8), 0);
}

SINGLE_TEST(PollSet, EventQueuesAreMembersToo) {
  Domain domain;
  const Owned<fid_poll> set = open_poll_set(domain);
  fi_eq_attr attr{};
  attr.flags = FI_WRITE;
  fid_eq* raw = nullptr;
  ASSERT_EQ(fi_eq_open(domain.fabric(), &attr, &raw, &domain), 0);
  const Owned<fid_eq> eq(raw);
  ASSERT_EQ(fi_poll_add(set.get(), &raw->fid, 0), 0);
  void* context = nullptr;
  EXPECT_EQ(fi_poll(set.get(), &context, 1), 0);
  fi_eq_entry entry{};
  ASSERT_GT(fi_eq_write(raw, FI_NOTIFY, &entry, sizeof entry, 0), 0);
  EXPECT_EQ(fi_poll(set.get(), &context, 1), 1);
  EXPECT_EQ(context, &domain);
  EXPECT_EQ(fi_poll_del(set.get(), &raw->fid, 0), 0);
  EXPECT_EQ(fi_poll(set.get(), &context, 1), 0) << "it is no member any more";
}

SINGLE_TEST(PollSet, MembersAreKeptOpenAndTheImpossibleIsRefused) {
  Endpoint e;
  Owned<fid_poll> set = open_poll_set(e.domain());
  fi_cntr_attr attr{};
  fid_cntr* counter = nullptr;
  ASSERT_EQ(fi_cntr_open(e.domain().domain(), &attr, &counter, nullptr), 0);
  ASSERT_EQ(fi_poll_add(set.get(), &counter->fid, 0), 0);
  EXPECT_EQ(fi_poll_add(set.get(), &counter->fid, 0), -FI_EALREADY);
  EXPECT_EQ(fi_close(&counter->fid), -FI_EBUSY);
  set.reset();
  EXPECT_EQ(fi_close(&counter->fid), 0) << "a set that is closed keeps nothing";
  set = open_poll_set(e.domain());
  EXPECT_EQ(fi_poll_add(set.get(), &e.ep()->fid, 0), -FI_EINVAL);
  EXPECT_EQ(fi_poll_del(set.get(), &e.rx()->fid, 0), -FI_EINVAL);
  EXPECT_EQ(fi_poll_add(set.get(), &e.rx()->fid, 1), -FI_EINVAL);
  EXPECT_EQ(fi_poll(set.get(), nullptr, 1), -FI_EINVAL);
}

SINGLE_TEST(PollSet, ACounterThatWasSetCountsAgain) {
  Domain domain;
  const Owned<fid_poll> set = open_poll_set(domain);
  fi_cntr_attr attr{};
  fid_cntr* raw = nullptr;
  ASSERT_EQ(fi_cntr_open(domain.domain(), &attr, &raw, nullptr), 0);
  const Owned<fid_cntr> counter(raw);
  ASSERT_EQ(fi_poll_add(set.get(), &raw->fid, 0), 0);
  EXPECT_EQ(fi_cntr_add(raw, 1), 0);
  EXPECT_EQ(fi_cntr_read(raw), 1u);
  EXPECT_EQ(fi_cntr_set(raw, 0), 0);
  void* context = nullptr;
  EXPECT_EQ(fi_poll(set.get(), &context, 1), 0) << "the application itself has set it";
  EXPECT_EQ(fi_cntr_add(raw, 1), 0);
  EXPECT_EQ(fi_poll(set.get(), &context, 1), 1)
      << "the value is that of the last read, but it has changed since";
  EXPECT_EQ(fi_poll_del(set.get(), &raw->fid, 0), 0);
}

SINGLE_TEST(WaitSet, AListenerDoesNotKeepItAwake) {
  Domain domain;
  const Owned<fid_wait> set = open_wait_set(domain, FI_WAIT_FD);
  fi_eq_attr attr{};
  attr.wait_obj = FI_WAIT_SET;
  attr.wait_set = set.get();
  fid_eq* raw = nullptr;
  ASSERT_EQ(fi_eq_open(domain.fabric(), &attr, &raw, nullptr), 0);
  const Owned<fid_eq> eq(raw);
  const Info info(fi_dupinfo(domain.info()));
  info->ep_attr->type = FI_EP_MSG;
  fid_pep* passive = nullptr;
  ASSERT_EQ(fi_passive_ep(domain.fabric(), info.get(), &passive, nullptr), 0);
  const Owned<fid_pep> listener(passive);
  ASSERT_EQ(fi_pep_bind(passive, &raw->fid, 0), 0);
  ASSERT_EQ(fi_listen(passive), 0);
  fid* object = &set->fid;
  for (const Deadline deadline(std::chrono::seconds(20)); fi_trywait(domain.fabric(), &object, 1) != 0;) {
    ASSERT_FALSE(deadline.passed());
  }
  pollfd watch{wait_descriptor(object), POLLIN, 0};
  EXPECT_EQ(poll(&watch, 1, 20), 0) << "nothing has happened";
}

PAIR_TEST(WaitSet, SleepsUntilAMemberHasAnEvent) {
  Options options;
  Domain domain(options);
  const Owned<fid_wait> set = open_wait_set(domain);
  options.wait = FI_WAIT_SET;
  options.wait_set = set.get();
  Endpoint e(domain, options);
  const std::vector<Blob> names = side.exchange(e.name());
  const fi_addr_t peer = e.insert(names[static_cast<std::size_t>(1 - side.index())]);
  EXPECT_EQ(fi_wait(set.get(), 0), -FI_ETIMEDOUT);
  constexpr int kRounds = 20;
  char value = 0;
  for (int round = 0; round < kRounds; ++round) {
    if (side.first() == (round % 2 == 0)) {
      std::this_thread::sleep_for(milliseconds(5));
      e.must([&] { return fi_inject(e.ep(), &value, 1, peer); });
      continue;
    }
    fi_cq_tagged_entry entry{};
    e.must([&] { return fi_recv(e.ep(), &value, 1, nullptr, peer, nullptr); });
    ssize_t count = -FI_EAGAIN;
    while (count == -FI_EAGAIN) {
      ASSERT_EQ(fi_wait(set.get(), kWaitTimeoutMs), 0);
      count = fi_cq_read(e.rx(), &entry, 1);
    }
    ASSERT_EQ(count, 1);
  }
  side.meet([&] { e.progress(); });
}

SINGLE_TEST(WaitSet, CountersAndEventQueuesWakeIt) {
  Options options;
  Domain domain(options);
  Owned<fid_wait> set = open_wait_set(domain, FI_WAIT_FD);
  fi_cntr_attr counting{};
  counting.wait_obj = FI_WAIT_SET;
  counting.wait_set = set.get();
  fid_cntr* counter = nullptr;
  ASSERT_EQ(fi_cntr_open(domain.domain(), &counting, &counter, nullptr), 0);
  fi_eq_attr attr{};
  attr.flags = FI_WRITE;
  attr.wait_obj = FI_WAIT_SET;
  attr.wait_set = set.get();
  fid_eq* eq = nullptr;
  ASSERT_EQ(fi_eq_open(domain.fabric(), &attr, &eq, nullptr), 0);
  const auto begin = std::chrono::steady_clock::now();
  EXPECT_EQ(fi_wait(set.get(), 50), -FI_ETIMEDOUT);
  EXPECT_GE(std::chrono::steady_clock::now() - begin, milliseconds(50));
  for (int round = 0; round < 10; ++round) {
    std::thread counts([&] {
      std::this_thread::sleep_for(milliseconds(2));
      EXPECT_EQ(fi_cntr_add(counter, 1), 0);
    });
    EXPECT_EQ(fi_wait(set.get(), kWaitTimeoutMs), 0);
    EXPECT_EQ(fi_cntr_read(counter), static_cast<std::uint64_t>(round) + 1);
    counts.join();
    fid* object = &set->fid;
    while (fi_trywait(domain.fabric(), &object, 1) != 0) {
    }
    std::thread writes([&] {
      std::this_thread::sleep_for(milliseconds(2));
      fi_eq_entry entry{};
      EXPECT_GT(fi_eq_write(eq, FI_NOTIFY, &entry, sizeof entry, 0), 0);
    });
    pollfd watch{wait_descriptor(object), POLLIN, 0};
    EXPECT_EQ(poll(&watch, 1, kWaitTimeoutMs), 1);
    writes.join();
    EXPECT_EQ(fi_wait(set.get(), kWaitTimeoutMs), 0);
    fi_eq_entry entry{};
    std::uint32_t event = 0;
    EXPECT_GT(fi_eq_read(eq, &event, &entry, sizeof entry, 0), 0);
  }
  EXPECT_EQ(fi_close(&set->fid), -FI_EBUSY);
  EXPECT_EQ(fi_close(&counter->fid), 0);
  EXPECT_EQ(fi_close(&eq->fid), 0);
}

SINGLE_TEST(WaitSet, TheImpossibleIsRefused) {
  Domain domain;
  fi_wait_attr wait_attr{};
  fid_wait* none = nullptr;
  for (const fi_wait_obj object : {FI_WAIT_SET, FI_WAIT_MUTEX_COND, FI_WAIT_NONE}) {
    wait_attr.wait_obj = object;
    EXPECT_EQ(fi_wait_open(domain.fabric(), &wait_attr, &none), -FI_ENOSYS);
  }
  fi_cq_attr attr{};
  attr.wait_obj = FI_WAIT_SET;
  fid_cq* cq = nullptr;
  EXPECT_EQ(fi_cq_open(domain.domain(), &attr, &cq, nullptr), -FI_EINVAL) << "no set is named";
  const Owned<fid_wait> set = open_wait_set(domain);
  attr.wait_set = set.get();
  ASSERT_EQ(fi_cq_open(domain.domain(), &attr, &cq, nullptr), 0);
  const Owned<fid_cq> owned(cq);
  int descriptor = -1;
  EXPECT_EQ(fi_control(&cq->fid, FI_GETWAIT, &descriptor), -FI_ENODATA) << "only the set has one";
}

}  // namespace
}  // namespace conformance
