#include "os/path_error_queue.h"

#include <gtest/gtest.h>
#include <poll.h>
#include <sys/socket.h>

#include <algorithm>
#include <array>

#include "conformance/link_station.h"
#include "conformance/two_hosts.h"
#include "os/udp_bursts.h"
#include "support/forged_icmp.h"

namespace cluster::os {
namespace {

using Family = SocketAddress::Family;

constexpr Time at(Duration since) { return Time{} + 1h + since; }

TEST(PathErrorGate, IsShutForAWhileByMoreThanANetworkHasToSay) {
  PathErrorGate gate;
  for (int i = 0; i < 1000; ++i) ASSERT_TRUE(gate.admit(at(i * 80us))) << "12,500 a second";
  EXPECT_FALSE(gate.shut());
  int admitted = 0;
  while (admitted < 1000 && gate.admit(at(1s))) ++admitted;
  EXPECT_EQ(admitted, 64);
  EXPECT_TRUE(gate.shut());
  EXPECT_FALSE(gate.reopen(at(1s + 99ms)));
  EXPECT_TRUE(gate.reopen(at(1s + 100ms)));
  EXPECT_FALSE(gate.shut());
  EXPECT_TRUE(gate.admit(at(1s + 100ms)));
}

/// A port to which a host sends errors that it has made up, as many as it likes.
class PathErrorQueueTest : public testing::TestWithParam<Family> {
 protected:
  void SetUp() override {
    int error = 0;
    port_ = UdpPort::open(test::loopback(GetParam()), error);
    other_ = UdpPort::open(test::loopback(GetParam()), error);
    ASSERT_TRUE(port_ && other_);
    if (!forger_.possible()) GTEST_SKIP() << "no CAP_NET_RAW";
    // Ten errors fill it.
    const int size = 8 * 1024;
    setsockopt(port_->socket(), SOL_SOCKET, SO_RCVBUF, &size, sizeof size);
  }
  void forge(int count, ConstBytes quoted = {}) {
    for (int i = 0; i < count; ++i) forger_.send_port_unreachable(port_->name(), other_->name(), quoted);
  }
  bool readable() const {
    pollfd watch{port_->socket(), POLLIN, 0};
    return poll(&watch, 1, 0) != 0;
  }
  void expect_one_datagram(UdpReceiver& receiver) {
    UdpSender sender(other_, world_.counters);
    const link::Path to{port_->name(), {}, false};
    const std::array<std::byte, 100> frame{};
    link::OutFrame out;
    out.path = &to;
    out.add(frame);
    sender.send({&out, 1});
    std::array<link::InFrame, 4> frames;
    EXPECT_EQ(receiver.receive(frames), 1u);
  }

  test::World world_;
  std::shared_ptr<UdpPort> port_;
  std::shared_ptr<UdpPort> other_;
  test::IcmpForger forger_{GetParam()};
};

TEST_P(PathErrorQueueTest, TheFrameThatAnErrorQuotesIsHandedOn) {
  const std::vector<std::byte> frame = test::numbered(1, 200);
  forge(1, frame);
  std::array<link::PathError, 4> errors;
  ASSERT_EQ(port_->read_path_errors(errors), 1u);
  EXPECT_EQ(errors[0].peer, other_->name());
  EXPECT_EQ(errors[0].status, Status::refused);
  EXPECT_TRUE(std::ranges::equal(errors[0].quote(), std::span(frame).first(link::PathError::kQuotedMax)));
  forge(1);
  ASSERT_EQ(port_->read_path_errors(errors), 1u);
  EXPECT_TRUE(errors[0].quote().empty());
}

/// The errors are not read meanwhile: the engine does so when something seems wrong.
TEST_P(PathErrorQueueTest, FramesFindTheirSpaceBesideAFloodOfForgedErrors) {
  UdpReceiver receiver(port_, port_->socket(), 4, UdpReceiver::Timestamps::no, world_.environment);
  for (int i = 0; i < 20; ++i) {
    forge(50);
    std::array<link::InFrame, 4> frames;
    EXPECT_EQ(receiver.receive(frames), 0u) << "a look, as in any turn";
    expect_one_datagram(receiver);
  }
}

TEST_P(PathErrorQueueTest, AnEndpointThatOnlySendsEmptiesTheQueueAsWell) {
  forge(50);
  UdpSender sender(port_, world_.counters);
  const link::Path to{other_->name(), {}, false};
  const std::array<std::byte, 100> frame{};
  link::OutFrame out;
  out.path = &to;
  out.add(frame);
  EXPECT_EQ(sender.send({&out, 1}), 1u);
  EXPECT_FALSE(readable()) << "it would wake a process that sleeps";
}

TEST_P(PathErrorQueueTest, AFloodIsNotListenedToForAWhile) {
  PathErrorQueue queue(GetParam());
  queue.add(port_->socket());
  for (int i = 0; i < 9; ++i) {
    forge(8);
    queue.drain(at(0s));
  }
  forge(20);
  EXPECT_FALSE(readable()) << "nothing takes space, no thread is woken";
  std::array<link::PathError, 100> errors;
  EXPECT_EQ(queue.take(errors), 64u);
  queue.drain(at(50ms));
  forge(1);
  queue.drain(at(60ms));
  EXPECT_EQ(queue.take(errors), 0u);
  queue.drain(at(100ms));
  forge(1);
  queue.drain(at(101ms));
  EXPECT_EQ(queue.take(errors), 1u) << "what is true comes again";
}

/// The first may be forged, and the engine may have been away for long.
TEST_P(PathErrorQueueTest, OfMoreThanAreKeptTheNewestAreHandedOn) {
  PathErrorQueue queue(GetParam());
  queue.add(port_->socket());
  const std::vector<std::byte> old = test::numbered(1, 40);
  const std::vector<std::byte> recent = test::numbered(2, 40);
  for (int i = 0; i < 8; ++i) {
    forge(8, old);
    queue.drain(at(0s));
  }
  forge(8, recent);
  queue.drain(at(10ms));
  std::array<link::PathError, 100> errors;
  const std::size_t count = queue.take(errors);
  EXPECT_EQ(count, 64u);
  const auto is_recent = [&](const link::PathError& error) {
    return std::ranges::equal(error.quote(), recent);
  };
  EXPECT_EQ(std::ranges::count_if(std::span(errors).first(count), is_recent), 8);
  EXPECT_TRUE(is_recent(errors[count - 1])) << "in the order in which they came";
  EXPECT_EQ(queue.take(errors), 0u);
}

TEST_P(PathErrorQueueTest, NoSocketKeepsAnotherFromItsTurn) {
  PathErrorQueue queue(GetParam());
  queue.add(port_->socket());
  queue.add(other_->socket());
  const int size = 1024 * 1024;
  setsockopt(port_->socket(), SOL_SOCKET, SO_RCVBUF, &size, sizeof size);
  forge(200);
  forger_.send_port_unreachable(other_->name(), port_->name(), {});
  queue.drain(at(0s));
  std::array<link::PathError, 64> errors;
  const std::size_t count = queue.take(errors);
  EXPECT_TRUE(std::ranges::count(std::span(errors).first(count), port_->name(), &link::PathError::peer) == 1);
}

INSTANTIATE_TEST_SUITE_P(Families, PathErrorQueueTest, testing::Values(Family::v4, Family::v6),
                         [](const auto& family) { return family.param == Family::v4 ? "v4" : "v6"; });

}  // namespace
}  // namespace cluster::os
