// When two processes count as having met, and what may fail before they have.
#include "sim/incarnations.h"

#include <gtest/gtest.h>

#include "sim/test/opening_frame.h"

namespace cluster::sim {
namespace {

constexpr HostNumber kCaller = 0;
constexpr HostNumber kCalled = 1;
constexpr Time kNow = Time{} + 1ms;

class IncarnationsTest : public testing::Test {
 protected:
  IncarnationsTest() : incarnations(2) {
    incarnations.begins(kCaller, Time{}, false);
    incarnations.begins(kCalled, Time{}, false);
  }

  void announce(HostNumber self, std::uint32_t session) {
    wire::Opening opening;
    opening.session = opening.epoch = session;
    incarnations.session_announced(self, self ^ 1, opening);
  }
  /// Reads a frame of the other host's incarnation. The frame names a session, or none.
  void read(HostNumber at, std::uint32_t session, std::uint32_t incarnation, Time sent_at = kNow) {
    Packet packet;
    packet.bytes = opening_frame(session, 99, wire::frame_flag::kAcknowledges);
    packet.from = at ^ 1;
    packet.to = at;
    packet.incarnation = incarnation;
    packet.sent_at = sent_at;
    wire::FrameView view;
    ASSERT_EQ(wire::admit(packet.bytes, view), wire::Refusal::none);
    incarnations.frame_read(at, packet, view, kNow);
  }
  void begin_anew(HostNumber host) {
    incarnations.ends(host);
    incarnations.begins(host, kNow, false);
  }
  /// The first incarnation of the called host has answered a call. The second one takes this call for its
  /// own.
  void mislead() {
    announce(kCaller, 1);
    begin_anew(kCalled);
    read(kCalled, kNoSession, 1, Time{});
  }
  bool error_permitted(const OperationStart& started) const {
    return incarnations.error_permitted(kCaller, kCalled, started);
  }

  Incarnations incarnations;
};

TEST_F(IncarnationsTest, NoErrorIsPermittedBetweenLivingIncarnations) {
  EXPECT_FALSE(error_permitted(incarnations.begin(kCaller, kCalled)));
}

TEST_F(IncarnationsTest, ANextIncarnationPermitsErrorsOfOperationsWithTheLast) {
  const OperationStart before = incarnations.begin(kCaller, kCalled);
  begin_anew(kCalled);
  EXPECT_TRUE(error_permitted(before));
  EXPECT_FALSE(error_permitted(incarnations.begin(kCaller, kCalled)));
}

/// The caller has given up a process that it never met. It learns of the next process from the first frame
/// of this process.
TEST_F(IncarnationsTest, OperationsWithALostPeerEndAtOnceUntilItIsHeard) {
  announce(kCaller, 1);
  const OperationStart before = incarnations.begin(kCaller, kCalled);
  EXPECT_FALSE(incarnations.operation_failed(kCaller, kCalled, before));
  EXPECT_FALSE(error_permitted(incarnations.begin(kCaller, kCalled))) << "what may not fail loses no peer";
  incarnations.ends(kCalled);
  EXPECT_TRUE(incarnations.operation_failed(kCaller, kCalled, before));
  incarnations.begins(kCalled, kNow, false);
  EXPECT_TRUE(error_permitted(incarnations.begin(kCaller, kCalled)));
  EXPECT_FALSE(incarnations.error_permitted(kCalled, kCaller, incarnations.begin(kCalled, kCaller)));
  announce(kCaller, 2);
  announce(kCalled, 3);
  read(kCalled, 3, 1);
  read(kCaller, 2, 2);
  EXPECT_FALSE(error_permitted(incarnations.begin(kCaller, kCalled)));
}

TEST_F(IncarnationsTest, AMisreadOpeningPermitsErrorsUntilTheTwoHaveMet) {
  mislead();
  const OperationStart before = incarnations.begin(kCaller, kCalled);
  EXPECT_TRUE(error_permitted(before));
  announce(kCaller, 2);
  announce(kCalled, 3);
  read(kCaller, 2, 2);
  const OperationStart half_way = incarnations.begin(kCaller, kCalled);
  read(kCalled, 3, 1);
  EXPECT_TRUE(error_permitted(half_way)) << "one of the two had not heard the other";
  EXPECT_FALSE(error_permitted(incarnations.begin(kCaller, kCalled)));
  EXPECT_TRUE(error_permitted(before));
}

TEST_F(IncarnationsTest, AFrameThatNamesAClosedSessionIsNoMeeting) {
  mislead();
  announce(kCalled, 3);
  announce(kCaller, 2);
  read(kCaller, 1, 2);
  read(kCalled, 3, 1);
  EXPECT_TRUE(error_permitted(incarnations.begin(kCaller, kCalled)));
}

TEST_F(IncarnationsTest, ANextIncarnationHasMetNoPeer) {
  mislead();
  announce(kCaller, 2);
  announce(kCalled, 3);
  read(kCaller, 2, 2);
  read(kCalled, 3, 1);
  const OperationStart met = incarnations.begin(kCaller, kCalled);
  begin_anew(kCalled);
  EXPECT_TRUE(error_permitted(met));
}

TEST_F(IncarnationsTest, AnOpeningForTheFirstIncarnationMisleadsNone) {
  read(kCalled, kNoSession, 1, Time{} - 1ms);
  EXPECT_FALSE(error_permitted(incarnations.begin(kCaller, kCalled)));
}

TEST_F(IncarnationsTest, AnAnswerOfAnEndedIncarnationPermitsErrors) {
  announce(kCaller, 1);
  begin_anew(kCalled);
  EXPECT_FALSE(error_permitted(incarnations.begin(kCaller, kCalled)));
  read(kCaller, 1, 1);
  EXPECT_TRUE(error_permitted(incarnations.begin(kCaller, kCalled)));
}

/// The caller calls again, but the second incarnation answers the first call.
TEST_F(IncarnationsTest, OnlyTheSessionAnnouncedLastProvesAnIncarnation) {
  announce(kCaller, 1);
  announce(kCalled, 101);
  read(kCaller, 1, 1);
  begin_anew(kCalled);
  announce(kCaller, 2);
  announce(kCalled, 102);
  read(kCaller, 1, 2);
  EXPECT_NO_THROW(incarnations.introduction_sent(kCaller, kCalled, 101, kNow + 1ms))
      << "the first call has been given up";
  read(kCaller, 2, 2);
  EXPECT_THROW(incarnations.introduction_sent(kCaller, kCalled, 101, kNow + 1ms), SafetyFailure);
}

TEST_F(IncarnationsTest, AnOutagePermitsErrorsUntilTheTwoHaveMetAgain) {
  incarnations.expect_outages(1s);
  incarnations.connection_changed(kCaller, kCalled, false, kNow);
  const OperationStart during = incarnations.begin(kCaller, kCalled);
  EXPECT_TRUE(error_permitted(during));
  incarnations.connection_changed(kCaller, kCalled, true, kNow + 1s);
  EXPECT_TRUE(error_permitted(during));
  announce(kCaller, 2);
  announce(kCalled, 3);
  read(kCaller, 2, 1);
  read(kCalled, 3, 1);
  EXPECT_FALSE(error_permitted(incarnations.begin(kCaller, kCalled)));
  EXPECT_TRUE(error_permitted(during));
}

/// A siege found this, because its peer timeout is short. In other runs few outages are long enough to be
/// noticed before they end.
TEST_F(IncarnationsTest, AnOutagePermitsErrorsWhileItLastsAlsoToThoseThatHaveMet) {
  incarnations.expect_outages(1s);
  announce(kCaller, 2);
  announce(kCalled, 3);
  read(kCaller, 2, 1);
  read(kCalled, 3, 1);
  const OperationStart before = incarnations.begin(kCaller, kCalled);
  EXPECT_FALSE(error_permitted(before));
  incarnations.connection_changed(kCaller, kCalled, false, kNow);
  EXPECT_TRUE(error_permitted(before));
}

TEST_F(IncarnationsTest, OneThatIsSilentPermitsErrorsToThoseThatHaveNotMetIt) {
  const OperationStart before = incarnations.begin(kCaller, kCalled);
  EXPECT_FALSE(error_permitted(before));
  incarnations.hides(kCalled);
  EXPECT_TRUE(error_permitted(before));
  announce(kCaller, 2);
  announce(kCalled, 3);
  read(kCaller, 2, 1);
  read(kCalled, 3, 1);
  EXPECT_FALSE(error_permitted(incarnations.begin(kCaller, kCalled)));
}

TEST_F(IncarnationsTest, AShortInterruptionPermitsNoErrors) {
  incarnations.expect_outages(1s);
  incarnations.connection_changed(kCaller, kCalled, false, kNow);
  incarnations.connection_changed(kCaller, kCalled, true, kNow + 999ms);
  EXPECT_FALSE(error_permitted(incarnations.begin(kCaller, kCalled)));
}

}  // namespace
}  // namespace cluster::sim
