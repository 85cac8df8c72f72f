// Waiting for messages, by blocked reads and by descriptors: every waiting thread is woken, and waiting uses
// no processor time. fi_cq(3), fi_trywait in fi_poll(3)
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <poll.h>
#include <sched.h>
#include <sys/epoll.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cerrno>
#include <cstddef>
#include <fstream>
#include <thread>

#include "wait_options.h"

namespace conformance {
namespace {

using std::chrono::milliseconds;

std::chrono::nanoseconds processor_time(clockid_t clock = CLOCK_THREAD_CPUTIME_ID) {
  timespec spent{};
  clock_gettime(clock, &spent);
  return std::chrono::seconds(spent.tv_sec) + std::chrono::nanoseconds(spent.tv_nsec);
}

/// Does nothing for a while that differs from call to call, so that the other side is met at every stage
/// of falling asleep.
void dawdle(unsigned& seed) {
  seed = seed * 1664525u + 1013904223u;
  const auto end = std::chrono::steady_clock::now() + std::chrono::nanoseconds((seed >> 8) % 60000);
  while (std::chrono::steady_clock::now() < end) {
  }
}

/// Reads one entry the way of an event loop: trywait, sleep on the descriptor, read.
ssize_t read_by_descriptor(Endpoint& e, fid_cq* cq, int descriptor, fi_cq_tagged_entry& entry) {
  const Deadline deadline{milliseconds(kWaitTimeoutMs)};
  fid* object = &cq->fid;
  while (!deadline.passed()) {
    const ssize_t got = fi_cq_read(cq, &entry, 1);
    if (got != -FI_EAGAIN) return got;
    if (fi_trywait(e.domain().fabric(), &object, 1) != 0) continue;
    pollfd watch{descriptor, POLLIN, 0};
    EXPECT_GE(poll(&watch, 1, kWaitTimeoutMs), 0);
  }
  return -FI_ETIMEDOUT;
}

/// Rounds of ping and pong in which both sides wait by `wait(entry)`.
template <typename Wait>
void play(Team& team, int rounds, Wait&& wait) {
  Endpoint& e = team.endpoint;
  char ball = 0;
  int context = 0;
  unsigned seed = static_cast<unsigned>(team.side.index()) + 1;
  for (int round = 0; round < rounds && !testing::Test::HasFailure(); ++round) {
    e.must([&] { return fi_trecv(e.ep(), &ball, 1, nullptr, team.peer(), 1, 0, &context); });
    if (team.side.first()) {
      dawdle(seed);
      e.must([&] { return fi_tinject(e.ep(), &ball, 1, team.peer(), 1); });
    }
    fi_cq_tagged_entry entry{};
    EXPECT_EQ(wait(entry), 1) << "round " << round;
    EXPECT_EQ(entry.op_context, &context);
    if (!team.side.first()) {
      dawdle(seed);
      e.must([&] { return fi_tinject(e.ep(), &ball, 1, team.peer(), 1); });
    }
  }
}

int rounds() { return std::stoi(setting("CONFORMANCE_ROUNDS", "3000")); }

PAIR_TEST(Wait, BlockedReadsMissNoMessage) {
  Team team(side, options_with_wait(FI_WAIT_UNSPEC));
  play(team, rounds(), [&](fi_cq_tagged_entry& entry) {
    return fi_cq_sread(team.endpoint.rx(), &entry, 1, nullptr, kWaitTimeoutMs);
  });
}

PAIR_TEST(Wait, DescriptorsMissNoMessage) {
  Team team(side, options_with_wait(FI_WAIT_FD));
  Endpoint& e = team.endpoint;
  const int descriptor = wait_descriptor(&e.rx()->fid);
  play(team, rounds(),
       [&](fi_cq_tagged_entry& entry) { return read_by_descriptor(e, e.rx(), descriptor, entry); });
}

PAIR_TEST(Wait, YieldingReadsWork) {
  Team team(side, options_with_wait(FI_WAIT_YIELD));
  play(team, 200, [&](fi_cq_tagged_entry& entry) {
    return fi_cq_sread(team.endpoint.rx(), &entry, 1, nullptr, kWaitTimeoutMs);
  });
}

PAIR_TEST(Wait, ASleeperSleeps) {
  Team team(side, options_with_wait(FI_WAIT_UNSPEC));
  Endpoint& e = team.endpoint;
  char value = 0;
  int context = 0;
  if (side.first()) {
    e.must([&] { return fi_recv(e.ep(), &value, 1, nullptr, team.peer(), &context); });
    fi_cq_tagged_entry entry{};
    for (const int limit : {400, kWaitTimeoutMs}) {
      const auto begin = std::chrono::steady_clock::now();
      const auto spent = processor_time();
      EXPECT_EQ(fi_cq_sread(e.rx(), &entry, 1, nullptr, limit), limit == kWaitTimeoutMs ? 1 : -FI_EAGAIN);
      const auto slept = std::chrono::steady_clock::now() - begin;
      EXPECT_GE(slept, milliseconds(limit == kWaitTimeoutMs ? 0 : limit));
      if (limit != kWaitTimeoutMs) {
        EXPECT_LT(processor_time() - spent, slept / 4);
        side.send_blob(1, {1});
      }
    }
    EXPECT_EQ(entry.op_context, &context);
  } else {
    side.receive_blob(0);
    std::this_thread::sleep_for(milliseconds(300));  // the other side's sleep is what is tested
    e.must([&] { return fi_inject(e.ep(), &value, 1, team.peer()); });
  }
}

/// From here on this process can start no thread, as at the limit of `ulimit -u`. A filter cannot see the flags of clone3;
/// where that is missing, the C library calls clone.
void forbid_threads() {
  sock_filter program[] = {
      BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(seccomp_data, nr)),
      BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_clone3, 4, 0),
      BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_clone, 0, 2),
      BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(seccomp_data, args)),
      BPF_JUMP(BPF_JMP | BPF_JSET | BPF_K, CLONE_THREAD, 2, 0),
      BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
      BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | ENOSYS),
      BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | EAGAIN),
  };
  sock_fprog filter{static_cast<unsigned short>(std::size(program)), program};
  ASSERT_EQ(prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0), 0);
  ASSERT_EQ(prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &filter), 0);
}

bool is_asleep(pid_t process) {
  std::ifstream file("/proc/" + std::to_string(process) + "/stat");
  std::string number, name, state;
  return static_cast<bool>(file >> number >> name >> state) && state == "S";
}

/// The provider's progress thread looks in every 10 ms and would find the message for the sleeper, and so hide that nothing
/// woke it. Without that thread only timers of the sleeper are left, and the first of them is due after 200 ms.
PAIR_TEST(Wait, AnArrivalAloneWakesASleeper) {
  using Nanoseconds = std::chrono::nanoseconds;
  forbid_threads();
  Options options = options_with_wait(FI_WAIT_UNSPEC);
  options.progress = FI_PROGRESS_MANUAL;
  Team team(side, options);
  Endpoint& e = team.endpoint;
  const auto now = [] { return std::chrono::steady_clock::now().time_since_epoch().count(); };
  pid_t sleeper = getpid();
  Blob mine(sizeof sleeper);
  std::memcpy(mine.data(), &sleeper, sizeof sleeper);
  std::memcpy(&sleeper, side.exchange(mine).front().data(), sizeof sleeper);
  std::array<Nanoseconds, 9> delays{};
  for (Nanoseconds& delay : delays) {
    Nanoseconds::rep sent = 0;
    if (side.first()) {
      e.must([&] { return fi_recv(e.ep(), &sent, sizeof sent, nullptr, team.peer(), nullptr); });
      side.send_blob(1, {1});
      fi_cq_tagged_entry entry{};
      ASSERT_EQ(fi_cq_sread(e.rx(), &entry, 1, nullptr, kWaitTimeoutMs), 1);
      delay = Nanoseconds(now() - sent);
    } else {
      side.receive_blob(0, [&] { e.progress(); });
      const Deadline deadline{milliseconds(kWaitTimeoutMs)};
      while (!is_asleep(sleeper) && !deadline.passed()) yield_processor();
      sent = now();
      e.must([&] { return fi_inject(e.ep(), &sent, sizeof sent, team.peer()); });
    }
  }
  std::sort(delays.begin(), delays.end());
  EXPECT_LT(delays[delays.size() / 2], milliseconds(50)) << "the median of the delays";
  team.meet();
}

PAIR_TEST(Wait, AnIdleDescriptorIsQuietAndWakesAnEpoll) {
  Team team(side, options_with_wait(FI_WAIT_FD));
  Endpoint& e = team.endpoint;
  char value = 0;
  int context = 0;
  if (!side.first()) {
    side.receive_blob(0, [&] { e.progress(); });
    e.must([&] { return fi_inject(e.ep(), &value, 1, team.peer()); });
    return;
  }
  e.must([&] { return fi_recv(e.ep(), &value, 1, nullptr, FI_ADDR_UNSPEC, &context); });
  const int set = epoll_create1(0);
  epoll_event interest{};
  interest.events = EPOLLIN;
  ASSERT_EQ(epoll_ctl(set, EPOLL_CTL_ADD, wait_descriptor(&e.rx()->fid), &interest), 0);
  fid* object = &e.rx()->fid;
  fi_cq_tagged_entry entry{};
  int wakes = 0;
  bool sent = false;
  ssize_t got = -FI_EAGAIN;
  for (const Deadline deadline{milliseconds(kWaitTimeoutMs)}; got == -FI_EAGAIN && !deadline.passed();) {
    if (fi_trywait(e.domain().fabric(), &object, 1) == 0) {
      epoll_event event{};
      const int ready = epoll_wait(set, &event, 1, sent ? kWaitTimeoutMs : 300);
      ASSERT_GE(ready, 0);
      wakes += ready;
      if (ready == 0 && !sent) {
        side.send_blob(1, {1});
        sent = true;
      }
    }
    got = fi_cq_read(e.rx(), &entry, 1);
  }
  EXPECT_EQ(got, 1);
  EXPECT_TRUE(sent) << "the descriptor never was quiet";
  EXPECT_LT(wakes, 100);
  close(set);
}

PAIR_TEST(Wait, ALargeMessageMovesBetweenSleepers) {
  Team team(side, options_with_wait(FI_WAIT_UNSPEC));
  Endpoint& e = team.endpoint;
  constexpr std::size_t kSize = 4 << 20;
  std::vector<unsigned char> bytes = side.first() ? pattern(kSize, 1) : std::vector<unsigned char>(kSize);
  int context = 0;
  fi_cq_tagged_entry entry{};
  for (int round = 0; round < 3; ++round) {
    if (side.first()) {
      e.must([&] { return fi_send(e.ep(), bytes.data(), kSize, nullptr, team.peer(), &context); });
    } else {
      std::this_thread::sleep_for(milliseconds(20));  // the sender is to be asleep by now
      e.must([&] { return fi_recv(e.ep(), bytes.data(), kSize, nullptr, team.peer(), &context); });
    }
    ASSERT_EQ(fi_cq_sread(side.first() ? e.tx() : e.rx(), &entry, 1, nullptr, kWaitTimeoutMs), 1);
    EXPECT_EQ(entry.op_context, &context);
    EXPECT_TRUE(has_pattern(bytes, 1));
  }
}

PAIR_TEST(Wait, ASenderThatLacksSpaceIsWokenWhenThereIsSome) {
  Team team(side, options_with_wait(FI_WAIT_UNSPEC));
  Endpoint& e = team.endpoint;
  constexpr int kCount = 2000;
  constexpr std::size_t kSize = 8000;  // far more than a ring or a window holds
  const std::vector<unsigned char> sent = pattern(kSize, 3);
  std::vector<unsigned char> received(kSize);
  fi_cq_tagged_entry entry{};
  int done = 0;
  for (int i = 0; i < kCount; ++i) {
    if (side.first()) {
      while (fi_send(e.ep(), sent.data(), kSize, nullptr, team.peer(), nullptr) == -FI_EAGAIN) {
        ASSERT_EQ(fi_cq_sread(e.tx(), &entry, 1, nullptr, kWaitTimeoutMs), 1);
        ++done;
      }
    } else {
      if (i % 500 == 0) std::this_thread::sleep_for(milliseconds(10));
      e.must([&] { return fi_recv(e.ep(), received.data(), kSize, nullptr, team.peer(), nullptr); });
      ASSERT_EQ(fi_cq_sread(e.rx(), &entry, 1, nullptr, kWaitTimeoutMs), 1);
      ASSERT_TRUE(has_pattern(received, 3));
    }
  }
  for (; side.first() && done < kCount; ++done) {
    ASSERT_EQ(fi_cq_sread(e.tx(), &entry, 1, nullptr, kWaitTimeoutMs), 1);
  }
}

PAIR_TEST(Wait, EverySleeperOfOneQueueIsServed) {
  Team team(side, options_with_wait(FI_WAIT_UNSPEC));
  Endpoint& e = team.endpoint;
  constexpr int kThreads = 4;
  constexpr int kEach = 200;
  char value = 0;
  if (side.first()) {
    for (int i = 0; i < kThreads * kEach; ++i) {
      side.receive_blob(1, [&] { e.progress(); });
      e.must([&] { return fi_inject(e.ep(), &value, 1, team.peer()); });
    }
    return;
  }
  std::atomic<int> got{0};
  for (int i = 0; i < kThreads; ++i) {
    e.must([&] { return fi_recv(e.ep(), &value, 1, nullptr, team.peer(), nullptr); });
  }
  std::vector<std::thread> sleepers;
  for (int i = 0; i < kThreads; ++i) {
    sleepers.emplace_back([&] {
      for (int j = 0; j < kEach; ++j) {
        fi_cq_tagged_entry entry{};
        const ssize_t result = fi_cq_sread(e.rx(), &entry, 1, nullptr, kWaitTimeoutMs);
        EXPECT_EQ(result, 1);
        if (result != 1) return;
        ++got;
        EXPECT_EQ(fi_recv(e.ep(), &value, 1, nullptr, team.peer(), nullptr), 0);
      }
    });
  }
  const Deadline deadline{milliseconds(kWaitTimeoutMs)};
  for (int i = 0; i < kThreads * kEach; ++i) {
    side.send_blob(0, {1});
    while (got.load() <= i && !deadline.passed()) yield_processor();
  }
  for (std::thread& sleeper : sleepers) sleeper.join();
  EXPECT_EQ(got.load(), kThreads * kEach);
}

PAIR_TEST(Wait, AQueueWakesWhenAnotherThreadMakesTheProgress) {
  Team team(side, options_with_wait(FI_WAIT_UNSPEC));
  Endpoint& e = team.endpoint;
  std::atomic<bool> over{false};
  std::thread busy([&] {
    while (!over.load()) fi_cq_read(e.tx(), nullptr, 0);
  });
  play(team, 300,
       [&](fi_cq_tagged_entry& entry) { return fi_cq_sread(e.rx(), &entry, 1, nullptr, kWaitTimeoutMs); });
  over = true;
  busy.join();
}

/// The process as a whole, its background threads included: less than this part of the time; a sanitizer takes its own.
void sleep_cheaply(Endpoint& e, milliseconds sleep = milliseconds(2000), int part = 400) {
#ifdef CLUSTER_SANITIZED
  part = 100;
#endif
  const auto process_time = [] { return processor_time(CLOCK_PROCESS_CPUTIME_ID); };
  fi_cq_tagged_entry entry{};
  EXPECT_EQ(fi_cq_sread(e.rx(), &entry, 1, nullptr, 100), -FI_EAGAIN) << "whatever is done once is done";
  std::chrono::nanoseconds least = sleep;
  for (int attempt = 0; attempt < 5 && least >= sleep / part;
       ++attempt) {  // a machine that does much else makes it more
    const auto before = process_time();
    EXPECT_EQ(fi_cq_sread(e.rx(), &entry, 1, nullptr, static_cast<int>(sleep.count())), -FI_EAGAIN);
    least = std::min<std::chrono::nanoseconds>(least, process_time() - before);
  }
  EXPECT_LT(least, sleep / part);
}

SINGLE_TEST(Wait, ASleeperUsesNextToNoProcessorTime) {
  Endpoint e(options_with_wait(FI_WAIT_UNSPEC));
  sleep_cheaply(e);
}

/// Both sides sleep, and each receive may be served by the other side at any moment. One that only the peer can serve is asked for
/// after 400 ms, so that the peer's death is noticed within a second.
PAIR_TEST(Wait, ASleeperThatKnowsItsPeerUsesNextToNoProcessorTime) {
  Team team(side, options_with_wait(FI_WAIT_UNSPEC));
  Endpoint& e = team.endpoint;
  char value = 0;
  int met = 0, directed = 0, any = 0;
  e.must([&] { return fi_recv(e.ep(), &value, 1, nullptr, team.peer(), &met); });
  e.must([&] { return fi_inject(e.ep(), &value, 1, team.peer()); });
  e.finish(&met);
  e.must([&] { return fi_recv(e.ep(), &value, 1, nullptr, FI_ADDR_UNSPEC, &any); });
  sleep_cheaply(e, milliseconds(1000), 200);
  e.must([&] { return fi_recv(e.ep(), &value, 1, nullptr, team.peer(), &directed); });
  sleep_cheaply(e, milliseconds(1000), 200);
}

SINGLE_TEST(Wait, AMessageToOneselfWakesASleeper) {
  Endpoint e(options_with_wait(FI_WAIT_UNSPEC));
  const fi_addr_t self = e.insert(e.name());
  char sent = 7;
  char received = 0;
  ASSERT_EQ(fi_recv(e.ep(), &received, 1, nullptr, FI_ADDR_UNSPEC, nullptr), 0);
  std::thread sender([&] {
    std::this_thread::sleep_for(milliseconds(50));
    EXPECT_EQ(fi_inject(e.ep(), &sent, 1, self), 0);
  });
  fi_cq_tagged_entry entry{};
  EXPECT_EQ(fi_cq_sread(e.rx(), &entry, 1, nullptr, kWaitTimeoutMs), 1);
  sender.join();
  EXPECT_EQ(received, 7);
}

PAIR_TEST(Wait, CountersMissNoMessage) {
  Options options = options_with_wait(FI_WAIT_UNSPEC);
  options.counted = FI_SEND | FI_RECV;
  Team team(side, options);
  Endpoint& e = team.endpoint;
  std::uint64_t expected = 0;
  play(team, 1000, [&](fi_cq_tagged_entry& entry) -> ssize_t {
    if (fi_cntr_wait(e.counter(FI_RECV), ++expected, kWaitTimeoutMs) != 0) return -1;
    return fi_cq_read(e.rx(), &entry, 1);
  });
}

}  // namespace
}  // namespace conformance
