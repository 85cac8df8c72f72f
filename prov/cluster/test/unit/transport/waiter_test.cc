// Every event of an engine makes the descriptor readable on which its threads sleep.
#include "transport/waiter.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <poll.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include "os/descriptor.h"
#include "os/system_clock.h"

namespace cluster::transport {
namespace {

os::Descriptor open_event(unsigned count) {
  return os::Descriptor(eventfd(count, EFD_CLOEXEC | EFD_NONBLOCK));
}

bool is_readable(int descriptor, int milliseconds) {
  pollfd one{descriptor, POLLIN, 0};
  return poll(&one, 1, milliseconds) == 1;
}

struct CountedSource final : WakeSource {
  void on_ready(bool trouble) override {
    ++events;
    troubles += trouble ? 1 : 0;
  }
  int events = 0;
  int troubles = 0;
};

class WaiterTest : public testing::Test {
 protected:
  WaiterTest() {
    EXPECT_TRUE(waiter.open());
    waiter.begin_arming();
    waiter.set_alarm(kNever);
  }
  bool wakes() const { return is_readable(waiter.descriptor(), 1000); }
  bool sleeps() const { return !is_readable(waiter.descriptor(), 0); }

  Waiter waiter;
  CountedSource source;
};

TEST_F(WaiterTest, SleepsWhileNothingHappens) {
  EXPECT_TRUE(waiter.complete());
  EXPECT_TRUE(waiter.can_sleep());
  EXPECT_TRUE(waiter.may_sleep());
  EXPECT_TRUE(sleeps());
}

TEST_F(WaiterTest, ASourceThatComesWakesThoseThatSleep) {
  const os::Descriptor quiet = open_event(0);
  waiter.watch(quiet.number(), source);
  EXPECT_TRUE(wakes()) << "it is not armed";
  EXPECT_FALSE(waiter.complete());
  waiter.dispatch();
  EXPECT_EQ(source.events, 0) << "only the alarm";
  waiter.begin_arming();
  waiter.set_alarm_by(kNever, os::SystemClock().now());
  EXPECT_TRUE(waiter.complete());
  EXPECT_TRUE(sleeps());
}

TEST_F(WaiterTest, AnEventGoesToItsSourceUntilThatIsGone) {
  const os::Descriptor ended = open_event(1);
  CountedSource other;
  const os::Descriptor quiet = open_event(0);
  waiter.watch(quiet.number(), other);
  waiter.watch(ended.number(), source);
  waiter.set_alarm(kNever);
  EXPECT_TRUE(wakes());
  waiter.dispatch();
  EXPECT_EQ(source.events, 1);
  EXPECT_EQ(source.troubles, 0);
  EXPECT_EQ(other.events, 0);
  waiter.unwatch(ended.number());
  EXPECT_TRUE(sleeps());
}

TEST_F(WaiterTest, TheEndOfTheOtherSideIsTrouble) {
  int ends[2];
  ASSERT_EQ(pipe2(ends, O_CLOEXEC), 0);
  const os::Descriptor reader(ends[0]);
  waiter.watch(reader.number(), source);
  EXPECT_EQ(::close(ends[1]), 0);
  waiter.set_alarm(kNever);
  EXPECT_TRUE(wakes());
  waiter.dispatch();
  EXPECT_EQ(source.troubles, 1);
}

TEST(WaiterTestBefore, WhatIsWatchedBeforeTheFirstSleepCounts) {
  const os::Descriptor ended = open_event(1), gone = open_event(1);
  Waiter waiter;
  CountedSource source, other;
  waiter.watch(ended.number(), source);
  waiter.watch(gone.number(), other);
  waiter.unwatch(gone.number());
  ASSERT_TRUE(waiter.open());
  EXPECT_TRUE(is_readable(waiter.descriptor(), 0));
  waiter.dispatch();
  EXPECT_EQ(source.events, 1);
  EXPECT_EQ(other.events, 0);
}

TEST(WaiterTestBefore, WhereSomethingCannotBeWaitedForNoThreadSleeps) {
  Waiter waiter;
  waiter.forbid();
  EXPECT_FALSE(waiter.open());
  EXPECT_EQ(waiter.descriptor(), -1);
}

TEST_F(WaiterTest, AnEngineThatCannotWatchASourceNeverSleepsAgain) {
  waiter.watch(-1, source);
  waiter.begin_arming();
  EXPECT_TRUE(waiter.complete() && waiter.can_sleep()) << "there is nothing to watch";
  const os::Descriptor unfit(::open("/dev/null", O_RDONLY | O_CLOEXEC));  // as if the set were full
  waiter.watch(unfit.number(), source);
  waiter.begin_arming();
  EXPECT_FALSE(waiter.complete());
  EXPECT_FALSE(waiter.can_sleep());
}

TEST_F(WaiterTest, ADeadlineThatMovesOnLeavesTheAlarmWhereItIs) {
  os::SystemClock clock;
  const Time begin = clock.now();
  waiter.set_alarm_by(begin + 20ms, begin);
  waiter.set_alarm_by(begin + 1h, begin);
  EXPECT_TRUE(wakes()) << "it goes off at the first of these times";
  waiter.dispatch();
  const Time later = clock.now();
  EXPECT_GE(later, begin + 20ms);
  waiter.set_alarm_by(begin + 1h, later);
  EXPECT_TRUE(sleeps());
  waiter.set_alarm_by(later, later - 1ns);
  EXPECT_TRUE(wakes()) << "an earlier one moves it";
}

TEST_F(WaiterTest, TheEarliestDeadlineWakes) {
  const Time now = os::SystemClock().now();
  waiter.set_alarm_if_earlier(Time::min());
  EXPECT_TRUE(wakes());
  EXPECT_FALSE(waiter.may_sleep());
  waiter.set_alarm_if_earlier(kNever);
  EXPECT_TRUE(wakes()) << "a later one changes nothing";
  waiter.dispatch();
  EXPECT_TRUE(waiter.may_sleep());
  EXPECT_TRUE(wakes()) << "as long as no thread has armed";
  waiter.set_alarm_by(kNever, now);
  EXPECT_TRUE(sleeps());
  EXPECT_TRUE(waiter.may_sleep());
  waiter.set_alarm_by(Time::min(), now);
  EXPECT_TRUE(wakes());
  waiter.cancel_alarm();
  EXPECT_TRUE(sleeps());
  EXPECT_FALSE(waiter.may_sleep()) << "deadlines are another thread's concern";
}

}  // namespace
}  // namespace cluster::transport
