#include "os/tcp_probe.h"

#include <gtest/gtest.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <sys/resource.h>
#include <sys/socket.h>

#include <algorithm>
#include <array>
#include <cstring>
#include <functional>
#include <vector>

#include "os/port_filter.h"
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

/// A host at 127.0.0.2 that takes all connections it can get.
class Hoarder {
 public:
  Hoarder() {
    rlimit limit{};
    getrlimit(RLIMIT_NOFILE, &limit);
    rlimit raised{std::max<rlim_t>(limit.rlim_cur, 10'000), std::max<rlim_t>(limit.rlim_max, 10'000)};
    setrlimit(RLIMIT_NOFILE, &raised);
  }
  /// Until the queue there takes no more. False: this process may not have so many descriptors.
  bool fill(const SocketAddress& name) {
    for (;;) {
      Descriptor socket(::socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0));
      if (!socket) return false;
      sockaddr_storage storage;
      std::size_t size = SocketAddress::v4(kOther, 0).to(storage);
      if (bind(socket.number(), reinterpret_cast<sockaddr*>(&storage), static_cast<socklen_t>(size)) != 0)
        return false;
      size = name.to(storage);
      connect(socket.number(), reinterpret_cast<sockaddr*>(&storage), static_cast<socklen_t>(size));
      pollfd watch{socket.number(), POLLOUT, 0};
      if (poll(&watch, 1, 2500) != 1) return true;  // some are taken out of it, once a second, up to a number
      held_.push_back(std::move(socket));
    }
  }
  /// Acts like a host that loses power: silent. False if this process has no permission.
  bool vanish() {
    for (Descriptor& each : held_) {
      const int on = 1;
      if (setsockopt(each.number(), IPPROTO_TCP, TCP_REPAIR, &on, sizeof on) != 0) return false;
      each.reset();
    }
    return true;
  }

 private:
  static constexpr std::byte kOther[] = {std::byte{127}, std::byte{0}, std::byte{0}, std::byte{2}};
  std::vector<Descriptor> held_;
};

TEST_F(TcpProbeTest, WhatOtherHostsTakeIsNotWhatThereIsForMembers) {
  const SocketAddress name = free_name();
  const std::unique_ptr<TcpProbe> asked = TcpProbe::open(name, log);
  ASSERT_TRUE(asked->answered_here()) << name.text();
  const SocketAddress host = name.with_port(0);
  asked->set_members({&host, 1});
  Hoarder hoarder;
  if (!hoarder.fill(name)) GTEST_SKIP() << "needs more descriptors";
  const std::unique_ptr<TcpProbe> member = TcpProbe::open(free_name(), log);
  EXPECT_EQ(answer_of(*member, name), Answer::exists);
}

TEST_F(TcpProbeTest, HostsThatVanishGiveTheirPlacesBack) {
  const SocketAddress name = free_name();
  const std::unique_ptr<TcpProbe> asked = TcpProbe::open(name, log);
  ASSERT_TRUE(asked->answered_here()) << name.text();
  Hoarder hoarder;
  if (!hoarder.fill(name) || !hoarder.vanish()) GTEST_SKIP() << "needs root";
  const std::unique_ptr<TcpProbe> asking = TcpProbe::open(free_name(), log);
  Answer answer = Answer::none;
  for (int i = 0; i < 4 && answer == Answer::none; ++i) answer = answer_of(*asking, name);
  EXPECT_EQ(answer, Answer::exists);
}

/// A listener that no connection reaches, and a firewall that rejects each with an ICMP error.
class Rejecter {
 public:
  explicit Rejecter(const SocketAddress& name) : name_(name) {
    FilterProgram none = no_frames();
    sockaddr_storage storage;
    const std::size_t size = name.to(storage);
    bind(deaf_.number(), reinterpret_cast<sockaddr*>(&storage), static_cast<socklen_t>(size));
    attach_filter(deaf_.number(), SO_ATTACH_FILTER, none);
    listen(deaf_.number(), 1);
  }
  /// It needs CAP_NET_RAW.
  bool possible() const { return segments_ && errors_; }
  /// Rejects the next attempt to connect. False if none comes.
  bool reject() {
    constexpr std::size_t kIpHeader = 20;
    constexpr std::size_t kQuoted = kIpHeader + 8;
    std::array<std::byte, 128> segment;
    for (pollfd watch{segments_.number(), POLLIN, 0}; poll(&watch, 1, 3000) == 1;) {
      if (recv(segments_.number(), segment.data(), segment.size(), 0) < ssize_t{kQuoted}) continue;
      tcphdr tcp;
      std::memcpy(&tcp, segment.data() + kIpHeader, 8);
      if (tcp.th_dport != htons(name_.port())) continue;
      std::array<std::byte, 8 + kQuoted> error{std::byte{3}, std::byte{3}};  // port unreachable
      std::copy_n(segment.begin(), kQuoted, error.begin() + 8);
      std::uint32_t sum = 0;
      for (std::size_t i = 0; i < error.size(); i += 2)
        sum += std::to_integer<std::uint32_t>(error[i]) << 8 | std::to_integer<std::uint32_t>(error[i + 1]);
      sum = ~((sum & 0xffff) + (sum >> 16));
      error[2] = static_cast<std::byte>(sum >> 8);
      error[3] = static_cast<std::byte>(sum);
      sockaddr_storage to;
      const std::size_t size = name_.with_port(0).to(to);
      return sendto(errors_.number(), error.data(), error.size(), 0, reinterpret_cast<sockaddr*>(&to),
                    static_cast<socklen_t>(size)) == ssize_t{error.size()};
    }
    return false;
  }

 private:
  SocketAddress name_;
  Descriptor deaf_{::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0)};
  Descriptor segments_{::socket(AF_INET, SOCK_RAW | SOCK_CLOEXEC, IPPROTO_TCP)};
  Descriptor errors_{::socket(AF_INET, SOCK_RAW | SOCK_CLOEXEC, IPPROTO_ICMP)};
};

TEST_F(TcpProbeTest, AFirewallThatRejectsKnowsNothingOfTheProcess) {
  const SocketAddress name = free_name();
  Rejecter firewall(name);
  if (!firewall.possible()) GTEST_SKIP() << "needs CAP_NET_RAW";
  const std::unique_ptr<TcpProbe> asking = TcpProbe::open(free_name(), log);
  for (int attempt = 0; attempt < 3; ++attempt) {
    EXPECT_EQ(asking->ask(name), Answer::none);
    ASSERT_TRUE(firewall.reject());
    EXPECT_EQ(asking->ask(name), Answer::none) << "the next question connects again";
  }
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
