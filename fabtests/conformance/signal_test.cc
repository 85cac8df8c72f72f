// A thread that waits and gets a signal comes back and says that there was nothing: programs that want to
// look around then (has the process been asked to end?) would else sleep on. fi_cq(3), fi_eq(3)
#include <pthread.h>
#include <signal.h>

#include <atomic>
#include <thread>

#include "wait_options.h"

namespace conformance {
namespace {

/// Sends this thread signals, again and again since one may come before it sleeps, while `wait` runs.
template <typename Wait>
auto disturbed(Wait&& wait) {
  struct sigaction action {};
  action.sa_handler = [](int) {};
  action.sa_flags = SA_RESTART;
  EXPECT_EQ(sigaction(SIGUSR1, &action, nullptr), 0);
  const pthread_t sleeper = pthread_self();
  std::atomic<bool> back{false};
  std::thread disturber([&] {
    while (!back) {
      std::this_thread::sleep_for(std::chrono::milliseconds(5));
      if (!back) pthread_kill(sleeper, SIGUSR1);
    }
  });
  const auto result = wait();
  back = true;
  disturber.join();
  return result;
}

SINGLE_TEST(Signal, EndsABlockedReadOfAQueue) {
  for (const fi_wait_obj wait : {FI_WAIT_UNSPEC, FI_WAIT_FD}) {
    Endpoint e(options_with_wait(wait));
    fi_cq_tagged_entry entry;
    EXPECT_EQ(disturbed([&] { return fi_cq_sread(e.rx(), &entry, 1, nullptr, kWaitTimeoutMs); }), -FI_EAGAIN);
    fi_addr_t source;
    EXPECT_EQ(disturbed([&] { return fi_cq_sreadfrom(e.rx(), &entry, 1, &source, nullptr, -1); }),
              -FI_EAGAIN);
  }
}

SINGLE_TEST(Signal, EndsABlockedReadOfEvents) {
  Domain domain;
  fi_eq_attr attr{};
  attr.wait_obj = FI_WAIT_UNSPEC;
  fid_eq* raw = nullptr;
  ASSERT_EQ(fi_eq_open(domain.fabric(), &attr, &raw, nullptr), 0);
  const Owned<fid_eq> eq(raw);
  std::uint32_t event = 0;
  fi_eq_entry entry{};
  EXPECT_EQ(disturbed([&] { return fi_eq_sread(raw, &event, &entry, sizeof entry, -1, 0); }), -FI_EAGAIN);
}

SINGLE_TEST(Signal, LosesNoMessage) {
  Endpoint e(options_with_wait(FI_WAIT_UNSPEC));
  const fi_addr_t self = e.insert(e.name());
  char value = 0;
  for (int round = 0; round < 20; ++round) {
    e.must([&] { return fi_recv(e.ep(), &value, 1, nullptr, self, &value); });
    std::thread sender([&] {
      std::this_thread::sleep_for(std::chrono::milliseconds(2 * (round % 5)));
      while (fi_inject(e.ep(), "!", 1, self) == -FI_EAGAIN) yield_processor();
    });
    fi_cq_tagged_entry entry{};
    const Deadline deadline(std::chrono::seconds(20));
    ssize_t got = -FI_EAGAIN;
    while (got == -FI_EAGAIN && !deadline.passed()) {
      got = disturbed([&] { return fi_cq_sread(e.rx(), &entry, 1, nullptr, kWaitTimeoutMs); });
    }
    EXPECT_EQ(got, 1);
    EXPECT_EQ(entry.op_context, &value);
    sender.join();
  }
}

}  // namespace
}  // namespace conformance
