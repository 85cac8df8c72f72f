// Whatever may happen to an engine makes the one descriptor readable on which its threads sleep.
#include "engine/waiter.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <poll.h>
#include <sys/eventfd.h>

#include <array>

#include "os/descriptor.h"
#include "os/system_clock.h"
#include "support/node.h"
#include "support/quiet_local.h"

namespace cluster::engine {
namespace {

os::Descriptor open_event(unsigned count) {
  return os::Descriptor(eventfd(count, EFD_CLOEXEC | EFD_NONBLOCK));
}

bool is_readable(int descriptor, int milliseconds) {
  pollfd one{descriptor, POLLIN, 0};
  return poll(&one, 1, milliseconds) == 1;
}

class WaiterTest : public testing::Test {
 protected:
  WaiterTest() {
    EXPECT_TRUE(waiter.open(peers));
    waiter.begin_arming();
    waiter.set_alarm(kNever);
  }
  bool wakes() const { return is_readable(waiter.descriptor(), 1000); }
  bool sleeps() const { return !is_readable(waiter.descriptor(), 0); }
  std::size_t collect() { return waiter.collect(events); }

  PeerTable peers{1472};
  Peer& peer = peers.find_or_add(test::kB);
  Waiter waiter{nullptr, nullptr};
  std::array<Waiter::Event, Waiter::kEventsMax> events{};
};

TEST_F(WaiterTest, SleepsWhileNothingHappens) {
  EXPECT_TRUE(waiter.complete());
  EXPECT_TRUE(waiter.can_sleep());
  EXPECT_TRUE(waiter.may_sleep());
  EXPECT_TRUE(sleeps());
}

TEST_F(WaiterTest, APeerThatComesWakesThoseThatSleep) {
  const os::Descriptor quiet = open_event(0);
  waiter.watch(quiet.number(), peer);
  EXPECT_TRUE(wakes()) << "its doorbell is not armed";
  EXPECT_FALSE(waiter.complete());
  EXPECT_EQ(collect(), 0u) << "only the alarm";
  EXPECT_TRUE(sleeps());
  waiter.begin_arming();
  EXPECT_TRUE(waiter.complete());
}

TEST_F(WaiterTest, AnEndNamesItsPeerUntilThatIsGone) {
  const os::Descriptor ended = open_event(1);
  waiter.watch(ended.number(), peer);
  waiter.set_alarm(kNever);
  EXPECT_TRUE(wakes());
  ASSERT_EQ(collect(), 1u);
  EXPECT_EQ(events[0].source, Waiter::Source::peer);
  EXPECT_EQ(events[0].peer, &peer);
  waiter.unwatch(ended.number());
  EXPECT_TRUE(sleeps());
}

TEST_F(WaiterTest, TheSocketOfAGroupIsNamed) {
  const os::Descriptor socket = open_event(1);
  waiter.watch_group(socket.number());
  waiter.set_alarm(kNever);
  EXPECT_TRUE(wakes());
  ASSERT_EQ(collect(), 1u);
  EXPECT_EQ(events[0].source, Waiter::Source::multicast);
  waiter.unwatch_group(socket.number());
  EXPECT_TRUE(sleeps());
}

TEST_F(WaiterTest, AnEngineThatCannotWatchAPeerNeverSleepsAgain) {
  waiter.watch(-1, peer);
  waiter.begin_arming();
  EXPECT_TRUE(waiter.complete() && waiter.can_sleep()) << "there is nothing to watch";
  const os::Descriptor unfit(::open("/dev/null", O_RDONLY | O_CLOEXEC));  // as if the set were full
  waiter.watch(unfit.number(), peer);
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
  EXPECT_EQ(collect(), 0u);
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
  EXPECT_EQ(collect(), 0u);
  EXPECT_TRUE(sleeps());
  EXPECT_TRUE(waiter.may_sleep());
  waiter.set_alarm_by(Time::min(), now);
  EXPECT_TRUE(wakes());
  waiter.cancel_alarm();
  EXPECT_TRUE(sleeps());
  EXPECT_FALSE(waiter.may_sleep()) << "deadlines are another thread's concern";
}

/// An endpoint with a listener that has taken a connection, or whose doorbell has rung, while a thread was asleep.
class ListenerOfOne final : public test::QuietListener {
 public:
  ListenerOfOne(int descriptor, int doorbell) : descriptor_(descriptor), doorbell_(doorbell) {}
  int descriptor() const override { return descriptor_; }
  int doorbell() const override { return doorbell_; }

 private:
  int descriptor_, doorbell_;
};

void expect_report(unsigned connections, unsigned rings, Waiter::Source source) {
  const os::Descriptor connection = open_event(connections), doorbell = open_event(rings);
  ListenerOfOne host(connection.number(), doorbell.number());
  PeerTable peers{1472};
  Waiter waiter{nullptr, &host};
  ASSERT_TRUE(waiter.open(peers));
  waiter.set_alarm(kNever);
  EXPECT_TRUE(is_readable(waiter.descriptor(), 0));
  std::array<Waiter::Event, Waiter::kEventsMax> events{};
  ASSERT_EQ(waiter.collect(events), 1u);
  EXPECT_EQ(events[0].source, source);
}

TEST(WaiterOfAListener, AConnectionIsReportedAsSuch) { expect_report(1, 0, Waiter::Source::connection); }
TEST(WaiterOfAListener, ADoorbellIsReportedAsSuch) { expect_report(0, 1, Waiter::Source::doorbell); }

}  // namespace
}  // namespace cluster::engine
