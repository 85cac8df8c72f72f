#include "os/tcp_probe.h"

#include <gtest/gtest.h>
#include <poll.h>

#include <functional>

#include "os/udp_port.h"
#include "support/fake_environment.h"

namespace cluster::os {
namespace {

using Answer = link::ProcessProbe::Answer;

const std::byte kLoopback[] = {std::byte{127}, std::byte{0}, std::byte{0}, std::byte{1}};

/// Asks until something is known; the kernel of this host answers at once.
Answer answer_of(TcpProbe& probe, const SocketAddress& peer) {
  for (int i = 0; i < 5000; ++i) {
    const Answer answer = probe.ask(peer);
    if (answer != Answer::none) return answer;
    poll(nullptr, 0, 1);
  }
  return Answer::none;
}

class TcpProbeTest : public ::testing::Test {
 protected:
  /// A name whose number is free for TCP as well, or so it is hoped.
  SocketAddress free_name() {
    int error = 0;
    return UdpPort::open(SocketAddress::v4(kLoopback, 0), error)->name();
  }
  test::FakeLog log;
};

TEST_F(TcpProbeTest, AKernelSaysThatAProcessExistsUntilItHasEnded) {
  const SocketAddress name = free_name();
  std::unique_ptr<TcpProbe> asked = TcpProbe::open(name, log);
  ASSERT_TRUE(asked->answered_here()) << name.text();
  std::unique_ptr<TcpProbe> asking = TcpProbe::open(free_name(), log);
  EXPECT_EQ(answer_of(*asking, name), Answer::exists);
  EXPECT_EQ(answer_of(*asking, name), Answer::exists) << "over the same connection";
  asked.reset();
  EXPECT_EQ(answer_of(*asking, name), Answer::ended) << "the connection was reset";
  EXPECT_EQ(answer_of(*asking, name), Answer::ended) << "no process listens";
  asked = TcpProbe::open(name, log);
  ASSERT_TRUE(asked->answered_here()) << "what is left of old connections is in the way";
  EXPECT_EQ(answer_of(*asking, name), Answer::exists);
  asking->end(name);
}

TEST_F(TcpProbeTest, APortThatIsInUseMeansNoAnswers) {
  const SocketAddress name = free_name();
  const std::unique_ptr<TcpProbe> first = TcpProbe::open(name, log);
  ASSERT_TRUE(first->answered_here());
  const std::unique_ptr<TcpProbe> second = TcpProbe::open(name, log);
  EXPECT_FALSE(second->answered_here());
  EXPECT_FALSE(log.lines.empty());
}

}  // namespace
}  // namespace cluster::os
