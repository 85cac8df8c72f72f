#include "os/keep_alive_responder.h"

#include <gtest/gtest.h>
#include <netinet/udp.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include <array>
#include <mutex>
#include <thread>
#include <vector>

#include "conformance/link_station.h"
#include "conformance/two_hosts.h"
#include "os/progress_thread.h"
#include "wire/admit.h"
#include "wire/control.h"
#include "wire/relay_frame.h"

namespace cluster::os {
namespace {

class KeepAliveResponderTest : public ::testing::Test {
 protected:
  std::shared_ptr<UdpPort> open() {
    int error = 0;
    return UdpPort::open(test::loopback(SocketAddress::Family::v4), error);
  }
  static void send(const UdpPort& from, const SocketAddress& to, ConstBytes bytes) {
    sockaddr_storage address;
    const std::size_t size = to.to(address);
    sendto(from.socket(), bytes.data(), bytes.size(), 0, reinterpret_cast<sockaddr*>(&address),
           static_cast<socklen_t>(size));
  }
  /// -1 if nothing was there.
  static ssize_t receive(const UdpPort& port, std::span<std::byte> buffer) {
    return recv(port.socket(), buffer.data(), buffer.size(), 0);
  }
  /// The nonce of the next answer.
  static std::uint32_t answer(const UdpPort& port) {
    std::array<std::byte, 256> buffer;
    ssize_t got = -1;
    test::eventually([&] { return (got = receive(port, buffer)) > 0; });
    wire::FrameView view;
    if (got < 0 ||
        wire::admit(ConstBytes(buffer).first(static_cast<std::size_t>(got)), view) != wire::Refusal::none ||
        view.kind != wire::FrameKind::alive) {
      return 0;
    }
    return view.sequence.value;
  }

  test::World world_;
};

TEST_F(KeepAliveResponderTest, AnswersManyEndpoints) {
  const auto asker = open();
  std::vector<std::shared_ptr<UdpPort>> ports;
  std::vector<std::shared_ptr<void>> keep_alive_responders;
  for (std::uint32_t i = 0; i < 12; ++i) {
    ports.push_back(open());
    keep_alive_responders.push_back(start_keep_alive_responder(ports.back(), world_.log));
    ASSERT_TRUE(keep_alive_responders.back());
  }
  for (std::uint32_t i = 0; i < ports.size(); ++i) {
    send(*asker, ports[i]->name(), wire::ControlFrame::keep_alive(100 + i, 0).bytes());
    EXPECT_EQ(answer(*asker), 100 + i);
  }
}

/// Through a relay, a tag follows the keep-alive. More than that is another datagram, which the kernel has
/// joined.
TEST_F(KeepAliveResponderTest, GetsKeepAlivesWithTheTagOfARelay) {
  const auto asker = open();
  const auto port = open();
  const auto responder =
      start_keep_alive_responder(port, world_.log, [](ConstBytes frame, const SocketAddress&, Bytes answer) {
        std::copy(frame.begin(), frame.end(), answer.begin());
        return frame.size();
      });
  const wire::ControlFrame question = wire::ControlFrame::keep_alive(1, 0);
  std::array<std::byte, 256> buffer;
  std::vector<std::byte> bytes(question.bytes().begin(), question.bytes().end());
  bytes.resize(bytes.size() + sizeof(wire::RelayTag));
  send(*asker, port->name(), bytes);
  EXPECT_TRUE(
      test::eventually([&] { return receive(*asker, buffer) == static_cast<ssize_t>(bytes.size()); }));
  bytes.resize(bytes.size() + 4);
  send(*asker, port->name(), bytes);
  EXPECT_TRUE(test::eventually([&] { return receive(*port, buffer) == static_cast<ssize_t>(bytes.size()); }));
}

TEST_F(KeepAliveResponderTest, AnswersMoreThanOneTurnHolds) {
  const auto asker = open();
  const auto port = open();
  const auto responder = start_keep_alive_responder(port, world_.log);
  for (std::uint32_t i = 1; i <= 300; ++i)
    send(*asker, port->name(), wire::ControlFrame::keep_alive(i, 0).bytes());
  for (std::uint32_t i = 1; i <= 300; ++i) ASSERT_EQ(answer(*asker), i);
}

TEST_F(KeepAliveResponderTest, GarbageThatLooksLikeAKeepAliveGetsNoAnswer) {
  const auto asker = open();
  const auto port = open();
  const auto responder = start_keep_alive_responder(port, world_.log);
  const wire::ControlFrame keep_alive = wire::ControlFrame::keep_alive(5, 0);
  std::vector<std::byte> damaged(keep_alive.bytes().begin(), keep_alive.bytes().end());
  damaged[17] ^= std::byte{1};
  send(*asker, port->name(), damaged);
  send(*asker, port->name(), ConstBytes(damaged).first(3));
  send(*asker, port->name(), wire::ControlFrame::keep_alive(6, 0).bytes());
  EXPECT_EQ(answer(*asker), 6U) << "the first answer is to the first genuine keep-alive";
}

TEST_F(KeepAliveResponderTest, EverythingElseIsLeftToTheEndpoint) {
  const auto asker = open();
  const auto port = open();
  const auto responder = start_keep_alive_responder(port, world_.log);
  std::array<std::byte, 256> buffer;
  for (std::size_t size = 0; size < 64; ++size) {
    send(*asker, port->name(), std::vector<std::byte>(size, std::byte{1}));
    EXPECT_EQ(receive(*port, buffer), static_cast<ssize_t>(size)) << "loopback delivers at once";
  }
}

/// The first frame decides which socket gets the frames that the kernel has joined, and it may be forged.
TEST_F(KeepAliveResponderTest, AKeepAliveInFrontOfJoinedFramesTakesNoneAlong) {
  const auto sender = open(), port = open();
  const std::shared_ptr<void> responder = start_keep_alive_responder(port, world_.log);
  ASSERT_TRUE(responder);
  const auto frame = wire::ControlFrame::keep_alive(7, 0);
  std::vector<std::byte> joined;
  for (int i = 0; i < 4; ++i) joined.insert(joined.end(), frame.bytes().begin(), frame.bytes().end());
  const int segment = static_cast<int>(frame.bytes().size());
  ASSERT_EQ(setsockopt(sender->socket(), SOL_UDP, UDP_SEGMENT, &segment, sizeof segment), 0);
  send(*sender, port->name(), joined);
  std::array<std::byte, 512> buffer;
  ssize_t got = -1;
  test::eventually([&] { return (got = receive(*port, buffer)) > 0; });
  EXPECT_EQ(got, static_cast<ssize_t>(joined.size())) << "the endpoint gets all of it";
}

TEST_F(KeepAliveResponderTest, OnceDroppedKeepAlivesGoToTheEndpoint) {
  const auto asker = open();
  const auto port = open();
  auto responder = start_keep_alive_responder(port, world_.log);
  responder.reset();
  send(*asker, port->name(), wire::ControlFrame::keep_alive(5, 0).bytes());
  std::array<std::byte, 256> buffer;
  EXPECT_EQ(receive(*port, buffer), 32);
  responder = start_keep_alive_responder(port, world_.log);
  ASSERT_TRUE(responder) << "an endpoint may have a keep-alive responder again";
  send(*asker, port->name(), wire::ControlFrame::keep_alive(6, 0).bytes());
  EXPECT_EQ(answer(*asker), 6U);
}

TEST_F(KeepAliveResponderTest, AnIcmpErrorThatIsNotReadYetDoesNotKeepTheThreadAwake) {
  auto asker = open();
  const auto port = open();
  const auto responder = start_keep_alive_responder(port, world_.log);
  send(*asker, port->name(), wire::ControlFrame::keep_alive(1, 0).bytes());
  ASSERT_EQ(answer(*asker), 1U);
  // Keep-alives whose answers find no socket: port unreachable, which only read_path_errors() takes out.
  for (std::uint32_t i = 0; i < 20; ++i) {
    const auto gone = open();
    send(*gone, port->name(), wire::ControlFrame::keep_alive(2, 0).bytes());
  }
  send(*asker, port->name(), wire::ControlFrame::keep_alive(3, 0).bytes());
  ASSERT_EQ(answer(*asker), 3U) << "and it still answers";
  const auto cpu_time = [] {
    timespec used{};
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &used);
    return std::chrono::seconds(used.tv_sec) + std::chrono::nanoseconds(used.tv_nsec);
  };
  const auto before = cpu_time();
  std::this_thread::sleep_for(50ms);
  EXPECT_LT(cpu_time() - before, 25ms) << "the thread spins";
}

TEST_F(KeepAliveResponderTest, AnswersWhileAnEngineIsBusy) {
  std::mutex engine;
  const std::unique_lock computing(engine);
  int error = 0;
  const auto client = start_progress_client(
      [&engine] {
        const std::unique_lock lock(engine, std::try_to_lock);
        return NextWake{lock.owns_lock() ? NextWake::kUntilReadable : 200us};
      },
      error);
  const auto asker = open();
  const auto port = open();
  const auto responder = start_keep_alive_responder(port, world_.log);
  send(*asker, port->name(), wire::ControlFrame::keep_alive(4, 0).bytes());
  EXPECT_EQ(answer(*asker), 4U);
}

TEST_F(KeepAliveResponderTest, AChildWithoutTheThreadClosesWhatItInheritedAndMayStartItsOwn) {
#ifdef __SANITIZE_THREAD__
  GTEST_SKIP() << "ThreadSanitizer allows no threads in a forked child";
#endif
#ifdef __clang__
#if __has_feature(address_sanitizer)
  GTEST_SKIP()
      << "clang's AddressSanitizer forks with its allocator locked, and a thread of the child waits for it";
#endif
#endif
  const auto asker = open();
  auto port = open();
  const SocketAddress name = port->name();
  auto responder = start_keep_alive_responder(port, world_.log);
  const pid_t child = fork();
  if (child == 0) {
    alarm(20);  // a hang fails the test
    responder.reset();
    port.reset();
    const auto own = open();
    const auto own_responder = start_keep_alive_responder(own, world_.log);
    if (!own_responder) _exit(1);
    const auto child_asker = open();
    send(*child_asker, own->name(), wire::ControlFrame::keep_alive(9, 0).bytes());
    _exit(answer(*child_asker) == 9 ? 0 : 2);
  }
  int status = -1;
  ASSERT_EQ(waitpid(child, &status, 0), child);
  EXPECT_EQ(status, 0);
  send(*asker, name, wire::ControlFrame::keep_alive(7, 0).bytes());
  EXPECT_EQ(answer(*asker), 7U) << "the parent's responder must not have noticed";
}

}  // namespace
}  // namespace cluster::os
