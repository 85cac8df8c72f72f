#include "os/wait_set.h"

#include <gtest/gtest.h>
#include <pthread.h>
#include <signal.h>

#include <array>
#include <atomic>
#include <chrono>
#include <thread>

#include "os/system_clock.h"

namespace cluster::os {
namespace {

using Wake = WaitSet::Wake;

class WaitSetTest : public ::testing::Test {
 protected:
  std::size_t ready() {
    std::array<WaitSet::Event, 4> events;
    const std::size_t count = set->collect(events);
    if (count > 0) owner = events[0].owner;
    return count;
  }

  std::unique_ptr<WaitSet> set = WaitSet::open();
  std::unique_ptr<Signal> signal = Signal::open();
  std::unique_ptr<Alarm> alarm = Alarm::open();
  SystemClock clock;
  void* owner = nullptr;
};

TEST_F(WaitSetTest, ASignalIsHeardUntilItIsLowered) {
  ASSERT_TRUE(set->add(signal->descriptor(), signal.get()));
  EXPECT_EQ(ready(), 0u);
  EXPECT_EQ(set->sleep(1ms), Wake::timeout);
  signal->raise();
  signal->raise();
  EXPECT_EQ(ready(), 1u);
  EXPECT_EQ(owner, signal.get());
  EXPECT_EQ(set->sleep(std::nullopt), Wake::event);
  signal->lower();
  EXPECT_EQ(ready(), 0u);
  signal->lower();
  signal->raise();
  EXPECT_EQ(ready(), 1u);
  set->remove(signal->descriptor());
  EXPECT_EQ(ready(), 0u);
}

TEST_F(WaitSetTest, AnAlarmGoesOffAtItsTimeAndNotBefore) {
  ASSERT_TRUE(set->add(alarm->descriptor(), alarm.get()));
  const Time when = clock.now() + 5ms;
  alarm->set(when);
  EXPECT_EQ(set->sleep(std::nullopt), Wake::event);
  EXPECT_GE(clock.now(), when);
  EXPECT_EQ(ready(), 1u) << "until it is set again";
  alarm->set(kNever);
  EXPECT_EQ(ready(), 0u);
  alarm->set(Time::min());
  EXPECT_EQ(set->sleep(std::nullopt), Wake::event);
}

TEST_F(WaitSetTest, ALazyAlarmIsNeverLate) {
  ASSERT_TRUE(set->add(alarm->descriptor(), alarm.get()));
  const Time begin = clock.now();
  alarm->set_lazily(begin + 1h, begin);
  alarm->set_lazily(begin + 5ms, begin);
  alarm->set_lazily(begin + 1h, begin);
  EXPECT_EQ(set->sleep(5s), Wake::event) << "a later one left it where it was";
  const Time fired = clock.now();
  EXPECT_GE(fired, begin + 5ms);
  alarm->set_lazily(begin + 1h, fired);
  EXPECT_EQ(ready(), 0u) << "one that has gone off is set";
  alarm->set_lazily(fired, fired);
  EXPECT_EQ(ready(), 1u);
}

TEST_F(WaitSetTest, ASetInASetWakesTheOuterOne) {
  const std::unique_ptr<WaitSet> outer = WaitSet::open();
  ASSERT_TRUE(set->add(signal->descriptor(), signal.get()));
  ASSERT_TRUE(outer->add(set->descriptor(), set.get()));
  EXPECT_EQ(outer->sleep(0ms), Wake::timeout);
  std::thread other([this] { signal->raise(); });
  EXPECT_EQ(outer->sleep(std::nullopt), Wake::event);
  other.join();
  signal->lower();
  EXPECT_EQ(outer->sleep(0ms), Wake::timeout);
}

/// If a sleeper took it for its timeout, it would tell the application that nothing came for that long.
TEST_F(WaitSetTest, ASignalToTheThreadIsNoTimeout) {
  struct sigaction action {};
  action.sa_handler = [](int) {};
  ASSERT_EQ(sigaction(SIGUSR1, &action, nullptr), 0);
  const pthread_t sleeper = pthread_self();
  std::atomic<bool> awake = false;
  std::thread other([&] {
    while (!awake) {  // again and again: the first may come before the sleep
      pthread_kill(sleeper, SIGUSR1);
      std::this_thread::sleep_for(1ms);
    }
  });
  const Wake wake = set->sleep(10s);
  awake = true;
  other.join();
  EXPECT_EQ(wake, Wake::event);
}

}  // namespace
}  // namespace cluster::os
