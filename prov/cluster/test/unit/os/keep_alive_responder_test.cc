#include "os/keep_alive_responder.h"

#include <gtest/gtest.h>
#include <netinet/udp.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cstring>
#include <mutex>
#include <thread>
#include <vector>

#include "conformance/link_station.h"
#include "conformance/two_hosts.h"
#include "os/progress_thread.h"
#include "relay/keep_alive_answer.h"
#include "seal/keep_alive_seal.h"
#include "support/seal_keys.h"
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

/// Answers with the datagram itself.
std::size_t echo(ConstBytes frame, const SocketAddress&, Bytes answer) {
  const std::size_t size = std::min(frame.size(), answer.size());
  std::copy_n(frame.begin(), size, answer.begin());
  return size;
}

/// Through a relay, a tag follows the keep-alive. Anything else behind it is another datagram, which the
/// kernel has joined, and which the responder would lose.
TEST_F(KeepAliveResponderTest, OnlyTheTagOfARelayMayFollowAKeepAlive) {
  const auto asker = open(), port = open();
  const auto responder = start_keep_alive_responder(port, world_.log, echo);
  const wire::ControlFrame question = wire::ControlFrame::keep_alive(1, 0);
  for (std::size_t more = 0; more <= 40; ++more) {
    std::vector<std::byte> bytes(question.bytes().begin(), question.bytes().end());
    bytes.resize(bytes.size() + more);
    std::array<std::byte, 256> buffer;
    send(*asker, port->name(), bytes);
    const UdpPort& hearer = more == 0 || more == sizeof(wire::RelayTag) ? *asker : *port;
    EXPECT_TRUE(test::eventually([&] {
      return receive(hearer, buffer) == static_cast<ssize_t>(bytes.size());
    })) << more;
  }
}

/// In a flood, the kernel puts one keep-alive in four aside, whatever follows it.
TEST_F(KeepAliveResponderTest, AFloodLeavesKeepAlivesThroughARelay) {
  constexpr int kSent = 200;
  const auto asker = open(), port = open();
  const auto responder = start_keep_alive_responder(port, world_.log, echo);
  ASSERT_TRUE(port->thin({.mark = 0x17, .on = true}).on);
  const wire::ControlFrame question = wire::ControlFrame::keep_alive(1, 0, 0x42);
  std::vector<std::byte> bytes(question.bytes().begin(), question.bytes().end());
  bytes.resize(bytes.size() + sizeof(wire::RelayTag));
  for (int i = 0; i < kSent; ++i) send(*asker, port->name(), bytes);
  std::array<std::byte, 256> buffer;
  int answers = 0, aside = 0;
  test::eventually([&] {
    answers += receive(*asker, buffer) > 0 ? 1 : 0;
    aside += recv(port->aside_socket(), buffer.data(), buffer.size(), 0) > 0 ? 1 : 0;
    return answers + aside == kSent;
  });
  EXPECT_EQ(answers + aside, kSent);
  EXPECT_GT(answers, kSent / 2);
  EXPECT_GT(aside, 0);
  EXPECT_LT(receive(*port, buffer), 0) << "the endpoint gets none";
}

/// The kernel, the responder and the relay's part of the answer together.
TEST_F(KeepAliveResponderTest, AnswersAPeerBehindARelayUnderTheNameOfTheEndpoint) {
  const seal::Credentials keys = test::credentials({"0123456789abcdef"});
  const auto forwarder = open(), port = open();
  const SocketAddress name = port->name();
  const auto responder = start_keep_alive_responder(
      port, world_.log, [&](ConstBytes frame, const SocketAddress& asked, Bytes answer) {
        return relay::answer_keep_alive(keys, frame, name, asked, answer);
      });
  wire::FrameHeader header{};
  header.magic = wire::kMagic;
  header.version = wire::kVersion;
  header.kind = static_cast<std::uint8_t>(wire::FrameKind::keep_alive);
  header.flags = wire::frame_flag::kSealed;
  header.length = sizeof header + sizeof(wire::SealTrailer);
  header.largest_acked = static_cast<std::uint32_t>(wire::AskedWay::relayed);
  wire::SealTrailer trailer{};
  trailer.counter = 9;
  seal::seal_keep_alive(*keys.keys[0], keys.mode, header, name, trailer);
  wire::RelayTag tag{};
  tag.magic = wire::kRelayMagic;
  tag.member = 5;
  tag.peer = wire::rail_block(test::loopback(SocketAddress::Family::v4).with_port(7));
  std::vector<std::byte> question(sizeof header + sizeof trailer + sizeof tag);
  std::memcpy(question.data(), &header, sizeof header);
  std::memcpy(question.data() + sizeof header, &trailer, sizeof trailer);
  std::memcpy(question.data() + sizeof header + sizeof trailer, &tag, sizeof tag);
  send(*forwarder, name, ConstBytes(question).first(sizeof header + sizeof trailer));  // it has lost its tag
  send(*forwarder, name, question);
  std::array<std::byte, 256> buffer;
  ssize_t got = -1;
  ASSERT_TRUE(test::eventually([&] { return (got = receive(*forwarder, buffer)) > 0; }));
  EXPECT_EQ(got, static_cast<ssize_t>(question.size())) << "without the tag there is no answer";
  wire::RelayTag repeated;
  ASSERT_NE(wire::tagged_frame(buffer, repeated), 0u);
  EXPECT_EQ(std::uint32_t{repeated.member}, 5u);
  EXPECT_EQ(repeated.hops, wire::kRelayHops);
  EXPECT_EQ(static_cast<wire::FrameKind>(buffer[offsetof(wire::FrameHeader, kind)]), wire::FrameKind::alive);
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
