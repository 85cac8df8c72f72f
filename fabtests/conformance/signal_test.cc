// A signal ends no wait. Debuggers, profilers and job control send signals, and applications treat a wait that ends
// early as a failure. An application ends a wait by a timeout or by fi_cq_signal. fi_cq(3), fi_eq(3), fi_cntr(3)
#include <pthread.h>
#include <signal.h>

#include <atomic>
#include <chrono>
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

constexpr int kTimeoutMs = 60;

/// True if `wait` lasts as long as its timeout says, whatever signals come.
template <typename Wait>
bool lasts(Wait&& wait) {
  const auto begin = std::chrono::steady_clock::now();
  disturbed(wait);
  return std::chrono::steady_clock::now() - begin >= std::chrono::milliseconds(kTimeoutMs);
}

SINGLE_TEST(Signal, EndsNoBlockedReadOfAQueue) {
  for (const fi_wait_obj wait : {FI_WAIT_UNSPEC, FI_WAIT_FD}) {
    Endpoint e(options_with_wait(wait));
    fi_cq_tagged_entry entry;
    fi_addr_t source;
    EXPECT_TRUE(lasts([&] { return fi_cq_sread(e.rx(), &entry, 1, nullptr, kTimeoutMs); }));
    EXPECT_TRUE(lasts([&] { return fi_cq_sreadfrom(e.rx(), &entry, 1, &source, nullptr, kTimeoutMs); }));
  }
}

SINGLE_TEST(Signal, EndsNoWaitForACounter) {
  Domain domain;
  fi_cntr_attr attr{};
  attr.wait_obj = FI_WAIT_UNSPEC;
  fid_cntr* raw = nullptr;
  ASSERT_EQ(fi_cntr_open(domain.domain(), &attr, &raw, nullptr), 0);
  const Owned<fid_cntr> counter(raw);
  EXPECT_TRUE(lasts([&] { return fi_cntr_wait(raw, 1, kTimeoutMs); }));
}

SINGLE_TEST(Signal, EndsNoBlockedReadOfEvents) {
  Domain domain;
  fi_eq_attr attr{};
  attr.wait_obj = FI_WAIT_UNSPEC;
  fid_eq* raw = nullptr;
  ASSERT_EQ(fi_eq_open(domain.fabric(), &attr, &raw, nullptr), 0);
  const Owned<fid_eq> eq(raw);
  std::uint32_t event = 0;
  fi_eq_entry entry{};
  EXPECT_TRUE(lasts([&] { return fi_eq_sread(raw, &event, &entry, sizeof entry, kTimeoutMs, 0); }));
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
    EXPECT_EQ(disturbed([&] { return fi_cq_sread(e.rx(), &entry, 1, nullptr, -1); }), 1);
    EXPECT_EQ(entry.op_context, &value);
    sender.join();
  }
}

}  // namespace
}  // namespace conformance
