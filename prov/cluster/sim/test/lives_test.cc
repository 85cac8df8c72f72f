// When two processes count as having met, and what may fail before they have.
#include "sim/lives.h"

#include <gtest/gtest.h>

#include "sim/test/opening_frame.h"

namespace cluster::sim {
namespace {

constexpr HostNumber kCaller = 0;
constexpr HostNumber kCalled = 1;
constexpr Time kNow = Time{} + 1ms;

class LivesTest : public testing::Test {
 protected:
  LivesTest() : lives(2) {
    lives.begins(kCaller, Time{}, false);
    lives.begins(kCalled, Time{}, false);
  }

  void tell(HostNumber self, std::uint32_t session) {
    wire::Opening opening;
    opening.session = opening.epoch = session;
    lives.tells(self, self ^ 1, opening);
  }
  /// A frame of the other host's life that names a session, or none.
  void read(HostNumber at, std::uint32_t session, std::uint32_t life, Time sent_at = kNow) {
    Packet packet;
    packet.bytes = opening_frame(session, 99, wire::frame_flag::kAcknowledges);
    packet.from = at ^ 1;
    packet.to = at;
    packet.life = life;
    packet.sent_at = sent_at;
    wire::FrameView view;
    ASSERT_EQ(wire::admit(packet.bytes, view), wire::Refusal::none);
    lives.frame_read(at, packet, view, kNow);
  }
  void begin_anew(HostNumber host) {
    lives.ends(host);
    lives.begins(host, kNow, false);
  }
  /// The second life of the one who is called takes a call for its own that the first had answered.
  void mislead() {
    tell(kCaller, 1);
    begin_anew(kCalled);
    read(kCalled, kNobody, 1, Time{});
  }
  bool excused(const Begun& begun) const { return lives.excused(kCaller, kCalled, begun); }

  Lives lives;
};

TEST_F(LivesTest, NothingIsExcusedBetweenTwoWhoLive) { EXPECT_FALSE(excused(lives.begin(kCaller, kCalled))); }

TEST_F(LivesTest, AnotherLifeIsAnExcuseForWhatWasBegunWithTheLast) {
  const Begun before = lives.begin(kCaller, kCalled);
  begin_anew(kCalled);
  EXPECT_TRUE(excused(before));
  EXPECT_FALSE(excused(lives.begin(kCaller, kCalled)));
}

TEST_F(LivesTest, ConfusionIsAnExcuseForWhatWasBegunBeforeTheyMet) {
  mislead();
  const Begun before = lives.begin(kCaller, kCalled);
  EXPECT_TRUE(excused(before));
  tell(kCaller, 2);
  tell(kCalled, 3);
  read(kCaller, 2, 2);
  const Begun half_way = lives.begin(kCaller, kCalled);
  read(kCalled, 3, 1);
  EXPECT_TRUE(excused(half_way)) << "one of the two had not heard the other";
  EXPECT_FALSE(excused(lives.begin(kCaller, kCalled)));
  EXPECT_TRUE(excused(before));
}

TEST_F(LivesTest, WhoNamesASessionThatWasGivenUpHasNotBeenMet) {
  mislead();
  tell(kCalled, 3);
  tell(kCaller, 2);
  read(kCaller, 1, 2);
  read(kCalled, 3, 1);
  EXPECT_TRUE(excused(lives.begin(kCaller, kCalled)));
}

TEST_F(LivesTest, WhoBeginsAnewHasMetNobody) {
  mislead();
  tell(kCaller, 2);
  tell(kCalled, 3);
  read(kCaller, 2, 2);
  read(kCalled, 3, 1);
  const Begun met = lives.begin(kCaller, kCalled);
  begin_anew(kCalled);
  EXPECT_TRUE(excused(met));
}

TEST_F(LivesTest, NobodyIsMisledByACallThatCouldOnlyBeForItsFirstLife) {
  read(kCalled, kNobody, 1, Time{} - 1ms);
  EXPECT_FALSE(excused(lives.begin(kCaller, kCalled)));
}

TEST_F(LivesTest, AnAnswerOfALifeThatIsOverConfuses) {
  tell(kCaller, 1);
  begin_anew(kCalled);
  EXPECT_FALSE(excused(lives.begin(kCaller, kCalled)));
  read(kCaller, 1, 1);
  EXPECT_TRUE(excused(lives.begin(kCaller, kCalled)));
}

/// The caller calls again; the first call is answered by the second life.
TEST_F(LivesTest, OnlyTheSessionToldLastProvesALife) {
  tell(kCaller, 1);
  tell(kCalled, 101);
  read(kCaller, 1, 1);
  begin_anew(kCalled);
  tell(kCaller, 2);
  tell(kCalled, 102);
  read(kCaller, 1, 2);
  EXPECT_NO_THROW(lives.introduces(kCaller, kCalled, 101, kNow + 1ms)) << "the first call has been given up";
  read(kCaller, 2, 2);
  EXPECT_THROW(lives.introduces(kCaller, kCalled, 101, kNow + 1ms), SafetyFailure);
}

}  // namespace
}  // namespace cluster::sim
