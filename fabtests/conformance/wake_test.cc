// What else wakes a waiting thread: signals, the death of a peer, thresholds, counters and events; and what
// one cannot wait on. fi_cq(3), fi_cntr(3), fi_eq(3)
#include <poll.h>
#include <unistd.h>

#include <thread>

#include "wait_options.h"

namespace conformance {
namespace {

using std::chrono::milliseconds;

SINGLE_TEST(Wait, ASignalEndsABlockedRead) {
  Endpoint e(options_with_wait(FI_WAIT_UNSPEC));
  fi_cq_tagged_entry entry{};
  ASSERT_EQ(fi_cq_signal(e.rx()), 0);  // one that comes first is remembered
  EXPECT_EQ(fi_cq_sread(e.rx(), &entry, 1, nullptr, kWaitTimeoutMs), -FI_EAGAIN);
  EXPECT_EQ(fi_cq_sread(e.rx(), &entry, 1, nullptr, 5), -FI_EAGAIN) << "and used up";
  for (int round = 0; round < 20; ++round) {
    std::thread other([&] {
      if (round % 2 == 0) std::this_thread::sleep_for(milliseconds(5));
      EXPECT_EQ(fi_cq_signal(e.rx()), 0);
    });
    const auto begin = std::chrono::steady_clock::now();
    EXPECT_EQ(fi_cq_sread(e.rx(), &entry, 1, nullptr, kWaitTimeoutMs), -FI_EAGAIN);
    EXPECT_LT(std::chrono::steady_clock::now() - begin, milliseconds(kWaitTimeoutMs / 2));
    other.join();
  }
}

SINGLE_TEST(Wait, ASignalIsReportedOnceToAThreadThatSleepsOnTheDescriptor) {
  Endpoint e(options_with_wait(FI_WAIT_FD));
  fid* object = &e.rx()->fid;
  const auto may_sleep = [&] { return fi_trywait(e.domain().fabric(), &object, 1); };
  const auto comes_to_rest = [&] {
    const auto until = std::chrono::steady_clock::now() + milliseconds(kWaitTimeoutMs);
    while (may_sleep() != 0) {
      if (std::chrono::steady_clock::now() > until) return false;
    }
    return true;
  };
  ASSERT_TRUE(comes_to_rest());
  pollfd watch{wait_descriptor(object), POLLIN, 0};
  ASSERT_EQ(fi_cq_signal(e.rx()), 0);
  EXPECT_EQ(poll(&watch, 1, kWaitTimeoutMs), 1);
  EXPECT_EQ(may_sleep(), -FI_EAGAIN);
  EXPECT_TRUE(comes_to_rest()) << "it has been read";
}

PAIR_TEST(Wait, TheDeathOfAPeerWakesASleeper) {
  Endpoint e(options_with_wait(FI_WAIT_UNSPEC));
  const std::vector<Blob> names = side.exchange(e.name());
  const fi_addr_t peer = e.insert(names[static_cast<std::size_t>(1 - side.index())]);
  char value = 0;
  int context = 0;
  e.must([&] { return fi_recv(e.ep(), &value, 1, nullptr, peer, &context); });
  e.must([&] { return fi_inject(e.ep(), &value, 1, peer); });
  e.finish(&context);
  if (!side.first()) {
    side.receive_blob(0, [&] { e.progress(); });
    _exit(0);  // without a word
  }
  e.must([&] { return fi_recv(e.ep(), &value, 1, nullptr, peer, &context); });
  side.send_blob(1, {1});
  fi_cq_tagged_entry entry{};
  EXPECT_EQ(fi_cq_sread(e.rx(), &entry, 1, nullptr, kWaitTimeoutMs), -FI_EAVAIL);
  fi_cq_err_entry failure{};
  EXPECT_EQ(fi_cq_readerr(e.rx(), &failure, 0), 1);
  EXPECT_EQ(failure.op_context, &context);
}

PAIR_TEST(Wait, AThresholdIsWaitedFor) {
  Options options = options_with_wait(FI_WAIT_UNSPEC);
  options.wait_cond = FI_CQ_COND_THRESHOLD;
  Team team(side, options);
  Endpoint& e = team.endpoint;
  char value = 0;
  constexpr std::size_t kThreshold = 5;
  if (side.first()) {
    for (std::size_t i = 0; i < kThreshold; ++i) {
      e.must([&] { return fi_inject(e.ep(), &value, 1, team.peer()); });
      e.progress();
      std::this_thread::sleep_for(milliseconds(5));
    }
    return;
  }
  for (std::size_t i = 0; i < kThreshold; ++i) {
    e.must([&] { return fi_recv(e.ep(), &value, 1, nullptr, team.peer(), nullptr); });
  }
  fi_cq_tagged_entry entries[kThreshold];
  std::size_t got = 0;
  while (got < kThreshold) {  // a condition is a hint: it may be signalled with fewer entries
    const ssize_t count = fi_cq_sread(e.rx(), entries, kThreshold, &kThreshold, kWaitTimeoutMs);
    ASSERT_GT(count, 0);
    got += static_cast<std::size_t>(count);
  }
}

SINGLE_TEST(Wait, TheUnknownAndTheImpossibleAreRefused) {
  Domain domain;
  for (const fi_wait_obj wait : {FI_WAIT_MUTEX_COND, FI_WAIT_POLLFD}) {
    fi_cq_attr attr{};
    attr.wait_obj = wait;
    fid_cq* cq = nullptr;
    EXPECT_EQ(fi_cq_open(domain.domain(), &attr, &cq, nullptr), -FI_ENOSYS);
  }
  Endpoint none(domain);
  int descriptor = -1;
  EXPECT_LT(fi_control(&none.rx()->fid, FI_GETWAIT, &descriptor), 0);
  fid* object = &none.rx()->fid;
  EXPECT_EQ(fi_trywait(domain.fabric(), &object, 1), -FI_EINVAL);
  object = &none.ep()->fid;
  EXPECT_EQ(fi_trywait(domain.fabric(), &object, 1), -FI_EINVAL);
  Endpoint some(domain, options_with_wait(FI_WAIT_UNSPEC));
  fi_wait_obj kind = FI_WAIT_NONE;
  EXPECT_EQ(fi_control(&some.rx()->fid, FI_GETWAITOBJ, &kind), 0);
  EXPECT_EQ(kind, FI_WAIT_FD);
}

class CounterWait {
 public:
  explicit CounterWait(Domain& domain) {
    fi_cntr_attr attr{};
    attr.wait_obj = FI_WAIT_UNSPEC;
    fid_cntr* raw = nullptr;
    EXPECT_EQ(fi_cntr_open(domain.domain(), &attr, &raw, nullptr), 0);
    counter_.reset(raw);
  }
  fid_cntr* get() const { return counter_.get(); }

 private:
  Owned<fid_cntr> counter_;
};

SINGLE_TEST(Wait, CountersWakeEverySleeper) {
  Domain domain;
  CounterWait counter(domain);
  std::vector<std::thread> sleepers;
  for (std::uint64_t i = 1; i <= 3; ++i) {
    sleepers.emplace_back([&, i] { EXPECT_EQ(fi_cntr_wait(counter.get(), i, kWaitTimeoutMs), 0); });
  }
  for (int i = 0; i < 3; ++i) {
    std::this_thread::sleep_for(milliseconds(20));
    EXPECT_EQ(fi_cntr_add(counter.get(), 1), 0);
  }
  for (std::thread& sleeper : sleepers) sleeper.join();
  std::thread failing([&] { EXPECT_EQ(fi_cntr_wait(counter.get(), 100, kWaitTimeoutMs), -FI_EAVAIL); });
  std::this_thread::sleep_for(milliseconds(20));
  EXPECT_EQ(fi_cntr_adderr(counter.get(), 1), 0);
  failing.join();
  const auto begin = std::chrono::steady_clock::now();
  EXPECT_EQ(fi_cntr_wait(counter.get(), 100, 100), -FI_ETIMEDOUT);
  EXPECT_GE(std::chrono::steady_clock::now() - begin, milliseconds(100));
}

SINGLE_TEST(Wait, EventQueuesWakeSleepers) {
  Domain domain;
  fi_eq_attr attr{};
  attr.flags = FI_WRITE;
  attr.wait_obj = FI_WAIT_FD;
  fid_eq* raw = nullptr;
  ASSERT_EQ(fi_eq_open(domain.fabric(), &attr, &raw, nullptr), 0);
  const Owned<fid_eq> eq(raw);
  const int descriptor = wait_descriptor(&raw->fid);
  fid* object = &raw->fid;
  pollfd watch{descriptor, POLLIN, 0};
  EXPECT_EQ(fi_trywait(domain.fabric(), &object, 1), 0);
  EXPECT_EQ(poll(&watch, 1, 0), 0);
  fi_eq_entry entry{};
  std::uint32_t event = 0;
  for (int round = 0; round < 20; ++round) {
    std::thread writer([&] {
      std::this_thread::sleep_for(milliseconds(2));
      fi_eq_entry written{};
      EXPECT_EQ(fi_eq_write(raw, FI_NOTIFY, &written, sizeof written, 0),
                static_cast<ssize_t>(sizeof written));
    });
    if (round % 2 == 0) {
      EXPECT_EQ(poll(&watch, 1, kWaitTimeoutMs), 1);
      EXPECT_EQ(fi_eq_read(raw, &event, &entry, sizeof entry, FI_PEEK), static_cast<ssize_t>(sizeof entry));
      EXPECT_EQ(poll(&watch, 1, 0), 1) << "a peek takes nothing";
      EXPECT_EQ(fi_trywait(domain.fabric(), &object, 1), -FI_EAGAIN);
    }
    EXPECT_EQ(fi_eq_sread(raw, &event, &entry, sizeof entry, kWaitTimeoutMs, 0),
              static_cast<ssize_t>(sizeof entry));
    EXPECT_EQ(poll(&watch, 1, 0), 0);
    writer.join();
  }
}

}  // namespace
}  // namespace conformance
