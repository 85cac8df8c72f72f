// Whatever may happen to an engine makes the one descriptor readable on which its threads sleep.
#include "engine/waiter.h"

#include <gtest/gtest.h>
#include <poll.h>
#include <sys/eventfd.h>

#include <array>

#include "os/descriptor.h"
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

TEST_F(WaiterTest, ADoorbellNamesItsPeerUntilThatIsGone) {
  const os::Descriptor ringing = open_event(1);
  waiter.watch(ringing.number(), peer);
  waiter.set_alarm(kNever);
  EXPECT_TRUE(wakes());
  ASSERT_EQ(collect(), 1u);
  EXPECT_EQ(events[0].source, Waiter::Source::peer);
  EXPECT_EQ(events[0].peer, &peer);
  EXPECT_FALSE(events[0].trouble);
  waiter.unwatch(ringing.number());
  EXPECT_TRUE(sleeps());
}

TEST_F(WaiterTest, AnEngineThatCannotWatchAPeerNeverSleepsAgain) {
  waiter.watch(-1, peer);
  waiter.begin_arming();
  EXPECT_FALSE(waiter.complete());
  EXPECT_FALSE(waiter.can_sleep());
}

TEST_F(WaiterTest, TheEarliestDeadlineWakes) {
  waiter.set_alarm_if_earlier(Time::min());
  EXPECT_TRUE(wakes());
  EXPECT_FALSE(waiter.may_sleep());
  waiter.set_alarm_if_earlier(kNever);
  EXPECT_TRUE(wakes()) << "a later one changes nothing";
  EXPECT_EQ(collect(), 0u);
  EXPECT_TRUE(sleeps());
  EXPECT_TRUE(waiter.may_sleep());
  waiter.set_alarm_if_other(Time::min());
  EXPECT_TRUE(wakes());
  waiter.cancel_alarm();
  EXPECT_TRUE(sleeps());
  EXPECT_FALSE(waiter.may_sleep()) << "deadlines are another thread's concern";
}

/// An endpoint with a listener that has taken a connection while a thread was asleep.
class ListenerOfOne final : public test::QuietListener {
 public:
  explicit ListenerOfOne(int descriptor) : descriptor_(descriptor) {}
  int descriptor() const override { return descriptor_; }

 private:
  int descriptor_;
};

TEST(WaiterOfAListener, AConnectionIsReportedAsSuch) {
  const os::Descriptor knocking = open_event(1);
  ListenerOfOne host(knocking.number());
  PeerTable peers{1472};
  Waiter waiter{nullptr, &host};
  ASSERT_TRUE(waiter.open(peers));
  waiter.set_alarm(kNever);
  EXPECT_TRUE(is_readable(waiter.descriptor(), 0));
  std::array<Waiter::Event, Waiter::kEventsMax> events{};
  ASSERT_EQ(waiter.collect(events), 1u);
  EXPECT_EQ(events[0].source, Waiter::Source::connection);
}

}  // namespace
}  // namespace cluster::engine
