#include "os/udp_bursts.h"

#include <gtest/gtest.h>
#include <poll.h>
#include <sys/socket.h>

#include <array>
#include <optional>
#include <vector>

#include "conformance/link_station.h"
#include "conformance/two_hosts.h"
#include "os/keep_alive_responder.h"
#include "os/udp_link.h"
#include "wire/control.h"

namespace cluster::os {
namespace {

constexpr link::Thinning kFlood{.mark = 0x17, .on = true};
constexpr std::uint32_t kMember = 0xABCD0017;
constexpr std::uint32_t kUnknown = 0xABCD0042;
constexpr std::uint32_t kUnmarked = 0;

class SetClock final : public Clock {
 public:
  Time now() override { return at; }
  Duration realtime_offset() override { return Duration::zero(); }
  std::uint64_t ticks() override { return 0; }
  Time at{std::chrono::hours(1)};
};

class AsideReceiverTest : public ::testing::Test {
 protected:
  AsideReceiverTest() {
    int error = 0;
    port = UdpPort::open(test::loopback(SocketAddress::Family::v4), error);
    caller = UdpPort::open(test::loopback(SocketAddress::Family::v4), error);
    link = open_udp_link(port, 1500, environment);
  }
  void send(std::uint32_t session, int count = 1) {
    for (int i = 0; i < count; ++i) send(frame_for(session).bytes());
  }
  static wire::ControlFrame frame_for(std::uint32_t session) {
    wire::FrameView asked;
    asked.sequence.value = session;
    return wire::ControlFrame::path_response(asked);
  }
  bool answered(std::uint32_t session) {
    send(wire::ControlFrame::keep_alive(1, 7, session).bytes());
    pollfd caller_socket{caller->socket(), POLLIN, 0};
    std::array<std::byte, 256> answer;
    return poll(&caller_socket, 1, 300) > 0 && recv(caller->socket(), answer.data(), answer.size(), 0) > 0;
  }
  void send(ConstBytes frame) {
    sockaddr_storage address;
    const std::size_t size = port->name().to(address);
    ASSERT_EQ(sendto(caller->socket(), frame.data(), frame.size(), 0, reinterpret_cast<sockaddr*>(&address),
                     static_cast<socklen_t>(size)),
              static_cast<ssize_t>(frame.size()));
  }
  /// What lies there now: over the loopback interface what has been sent has arrived.
  std::size_t receive() {
    link->before_sleep();
    std::size_t sum = 0;
    for (std::size_t count = 1; count != 0; sum += count) count = link->receive_burst(frames);
    return sum;
  }
  bool wakes() const {
    pollfd socket{port->socket(), POLLIN, 0};
    return poll(&socket, 1, 0) > 0;
  }

  test::World world;
  SetClock clock;
  Environment environment{clock, world.random, world.log, world.counters};
  std::shared_ptr<UdpPort> port;
  std::shared_ptr<UdpPort> caller;
  std::unique_ptr<link::Link> link;
  std::array<link::InFrame, 44> frames;
};

TEST_F(AsideReceiverTest, AFloodWakesNoProcessAndIsReadByTime) {
  send(kUnmarked);
  EXPECT_TRUE(wakes()) << "without a flood an unknown source is heard at once";
  EXPECT_EQ(receive(), 1U);
  link->thin(kFlood);
  send(kUnmarked, 10);
  EXPECT_FALSE(wakes());
  EXPECT_EQ(receive(), 0U);
  send(kMember);
  EXPECT_TRUE(wakes()) << "a member is heard at once";
  EXPECT_EQ(receive(), 1U);
  clock.at += link::Thinning::kAsideInterval;
  EXPECT_EQ(receive(), 10U);
}

TEST_F(AsideReceiverTest, ALookTakesSoManyAndWhatFindsNoSpaceIsDropped) {
  link->thin(kFlood);
  send(kUnmarked, 5000);
  for (int look = 0; look < 2; ++look) {
    clock.at += link::Thinning::kAsideInterval;
    EXPECT_EQ(receive(), link::Thinning::kAsideFrames);
  }
  for (int look = 0; look < 100; ++look) {
    clock.at += link::Thinning::kAsideInterval;
    receive();
  }
  send(kUnmarked, 3);
  clock.at += link::Thinning::kAsideInterval;
  EXPECT_EQ(receive(), 3U) << "the buffer is empty again";
}

TEST_F(AsideReceiverTest, AllWithoutTheMarkWaitsAside) {
  link->thin(kFlood);
  send(kUnmarked);
  send(kUnknown);
  send(ConstBytes(frame_for(kMember).bytes()).first(12));  // too short to have a mark
  EXPECT_FALSE(wakes());
  clock.at += link::Thinning::kAsideInterval;
  EXPECT_EQ(receive(), 3U);
}

TEST_F(AsideReceiverTest, FramesOfTheListedSessionsDoNotWait) {
  for (const bool answers : {false, true}) {
    link->thin({});
    int error = 0;
    if (answers) {
      // The program is another one if a socket for keep-alives shares the port.
      ASSERT_GE(port->open_keep_alive_socket(error), 0) << error;
    }
    link::Thinning flood = kFlood;
    flood.sessions = {0x11112242, kUnknown, 0x33334442};
    link->thin(flood);
    for (const std::uint32_t session : {flood.sessions[0], flood.sessions[1], flood.sessions[2], kMember}) {
      send(session);
      EXPECT_TRUE(wakes()) << session;
      EXPECT_EQ(receive(), 1U) << session;
    }
    send(kUnknown + 1);
    send(ConstBytes(frame_for(kUnknown).bytes()).first(15));  // too short to name a session
    EXPECT_FALSE(wakes());
    clock.at += link::Thinning::kAsideInterval;
    EXPECT_EQ(receive(), 2U);
  }
}

TEST_F(AsideReceiverTest, AnAlarmThatGoesOffALittleEarlyCostsNoFrames) {
  link->thin(kFlood);
  for (int look = 0; look < 20; ++look) {
    send(kUnmarked, 100);
    clock.at += link::Thinning::kAsideInterval + (look % 2 == 0 ? -300us : 300us);
    EXPECT_EQ(receive(), link::Thinning::kAsideFrames) << look;
  }
}

TEST_F(AsideReceiverTest, AlarmsThatAreAlwaysEarlyGainNothing) {
  link->thin(kFlood);
  std::size_t read = 0;
  for (int look = 0; look < 100; ++look) {
    send(kUnmarked, 100);
    clock.at += link::Thinning::kAsideInterval * 4 / 5;
    read += receive();
  }
  EXPECT_LE(read, 82 * link::Thinning::kAsideFrames);
}

TEST_F(AsideReceiverTest, WhatWaitsAtTheEndOfTheFloodIsReadAndThenAllComesAsBefore) {
  link->thin(kFlood);
  send(kUnmarked, 3);
  link->thin({.mark = kFlood.mark});
  send(kUnmarked, 2);
  EXPECT_TRUE(wakes());
  EXPECT_EQ(receive(), 2U);
  clock.at += link::Thinning::kAsideInterval;
  EXPECT_EQ(receive(), 3U);
  clock.at += link::Thinning::kAsideInterval;
  EXPECT_EQ(receive(), 0U);
  link->thin(kFlood);
  send(kUnmarked);
  EXPECT_FALSE(wakes()) << "the next flood";
  clock.at += link::Thinning::kAsideInterval;
  EXPECT_EQ(receive(), 1U);
}

TEST_F(AsideReceiverTest, TheResponderAnswersMembersInAFlood) {
  const auto responder = start_keep_alive_responder(port, world.log);
  ASSERT_TRUE(responder) << world.log.text();
  link->thin(kFlood);
  bool heard = false;
  for (int i = 0; i < 20 && !heard; ++i) heard = answered(kMember);
  EXPECT_TRUE(heard);
}

/// Otherwise a host that gets an answer to each would know that it has found the mark.
TEST_F(AsideReceiverTest, KeepAlivesWithTheMarkWaitAsideAsOftenAsOthers) {
  const auto responder = start_keep_alive_responder(port, world.log);
  ASSERT_TRUE(responder) << world.log.text();
  link->thin(kFlood);
  for (const std::uint32_t session : {kMember, kUnknown}) {
    for (int i = 0; i < 400; ++i) send(wire::ControlFrame::keep_alive(1, 7, session).bytes());
    clock.at += link::Thinning::kAsideInterval;
    EXPECT_GT(receive(), 0U) << session;
    EXPECT_FALSE(wakes());
  }
}

TEST_F(AsideReceiverTest, TheResponderAnswersAlsoPeersThatHaveNoSessionYet) {
  const auto responder = start_keep_alive_responder(port, world.log);
  ASSERT_TRUE(responder) << world.log.text();
  link->thin(kFlood);
  send(kUnmarked, 5000);  // which fill the place aside
  bool heard = false;
  for (int i = 0; i < 20 && !heard; ++i) heard = answered(kUnmarked);
  EXPECT_TRUE(heard);
}

TEST_F(AsideReceiverTest, AFloodOfKeepAlivesIsSeenToGoOn) {
  const auto responder = start_keep_alive_responder(port, world.log);
  ASSERT_TRUE(responder) << world.log.text();
  link->thin(kFlood);
  for (int i = 0; i < 200; ++i) send(wire::ControlFrame::keep_alive(1, 7, kUnmarked).bytes());
  clock.at += link::Thinning::kAsideInterval;
  EXPECT_GT(receive(), 0U) << "some wait aside, where the engine counts them";
  EXPECT_FALSE(wakes());
}

/// The headers of a receiver are made ready after use, because looks that find nothing must cost little.
class UdpReceiverTest : public ::testing::Test {
 protected:
  UdpReceiverTest() {
    int error = 0;
    port = UdpPort::open(test::loopback(SocketAddress::Family::v4), error);
    caller = UdpPort::open(test::loopback(SocketAddress::Family::v4), error);
    path = link::Path{port->name(), {}, false};
    receiver.emplace(port, port->socket(), kBuffers, UdpReceiver::Timestamps::yes, world.environment);
    sender.emplace(caller, world.counters);
  }
  /// Sends `count` frames of equal size, which the kernel joins.
  void send(std::size_t count, std::size_t size) {
    std::vector<link::OutFrame> out(count);
    for (link::OutFrame& frame : out) {
      frame.path = &path;
      frame.add(ConstBytes(content).first(size));
    }
    ASSERT_EQ(sender->send(out), count);
  }
  /// The number of bytes in all frames, each of which must have come from the caller by now.
  std::size_t receive(std::size_t segment) {
    std::size_t bytes = 0;
    for (std::size_t count = 1; count != 0;) {
      count = receiver->receive(frames);
      for (const link::InFrame& frame : std::span(frames).first(count)) {
        EXPECT_EQ(frame.from.to, caller->name());
        EXPECT_EQ(frame.segment, segment);
        EXPECT_NE(frame.arrived, kNever);
        bytes += frame.bytes.size();
      }
    }
    return bytes;
  }

  static constexpr std::size_t kBuffers = 4;
  test::World world;
  std::shared_ptr<UdpPort> port;
  std::shared_ptr<UdpPort> caller;
  link::Path path;
  std::array<std::byte, 1000> content{};
  std::optional<UdpReceiver> receiver;
  std::optional<UdpSender> sender;
  std::array<link::InFrame, 2 * kBuffers> frames;
};

TEST_F(UdpReceiverTest, ASuperFrameAfterLoneFramesHasItsSegmentSize) {
  for (int round = 0; round < 3; ++round) {
    for (std::size_t size = 1; size < 2 * kBuffers; ++size) send(1, size);
    EXPECT_EQ(receive(0), kBuffers * (2 * kBuffers - 1));
    send(8, content.size());
    EXPECT_EQ(receive(content.size()), 8 * content.size());
    EXPECT_EQ(receive(0), 0U) << "a look that finds nothing";
  }
}

TEST_F(UdpReceiverTest, NoSpaceForFramesMakesNoCall) {
  send(1, 10);
  EXPECT_EQ(receiver->receive({}), 0U);
  EXPECT_EQ(receive(0), 10U);
}

}  // namespace
}  // namespace cluster::os
