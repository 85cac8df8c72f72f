// Reports of a running endpoint: an answer of any length arrives complete, other users get none, and a
// malformed answer is refused.
#include "provider/report_server.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <cstring>

#include "os/shared_memory.h"
#include "support/fake_environment.h"
#include "support/foreign_user.h"

namespace cluster::provider {
namespace {

/// An address that no other test on this machine uses.
SocketAddress own_name() {
  const auto number = static_cast<unsigned>(getpid());
  const std::byte ip[] = {std::byte{127}, static_cast<std::byte>(number >> 16),
                          static_cast<std::byte>(number >> 8), static_cast<std::byte>(number)};
  return SocketAddress::v4(ip, 9228);
}

std::string listener_name() { return std::string(kReportSocketPrefix) + own_name().text(); }

class ReportServerTest : public ::testing::Test {
 protected:
  void SetUp() override {
    report_server = ReportServer::open(
        own_name(),
        [this](Report& report) {
          if (busy-- > 0) return false;
          report = answer;
          return true;
        },
        reason);
    ASSERT_TRUE(report_server) << reason;
    answer.emplace_back("endpoint").text("endpoint", own_name().text());
  }
  os::LocalSocket ask() { return os::LocalSocket::connect(listener_name(), reason); }

  Report answer;
  int busy = 0;
  std::string reason;
  std::unique_ptr<ReportServer> report_server;
};

TEST_F(ReportServerTest, WaitsForAClient) {
  const os::NextWake rest = report_server->serve();
  EXPECT_GE(rest.descriptor, 0);
  EXPECT_EQ(rest.after, os::NextWake::kUntilReadable);
}

TEST_F(ReportServerTest, AnswersOnceAndThenPauses) {
  os::LocalSocket socket = ask();
  ASSERT_TRUE(socket) << reason;
  EXPECT_FALSE(receive_report(socket, reason));
  EXPECT_EQ(reason, "") << "it has not answered yet";
  EXPECT_LT(report_server->serve().descriptor, 0) << "the pause";
  const std::optional<Report> report = receive_report(socket, reason);
  ASSERT_TRUE(report) << reason;
  EXPECT_EQ((*report)[0]["endpoint"], own_name().text());
  EXPECT_GE(report_server->serve().descriptor, 0);
  EXPECT_FALSE(receive_report(socket, reason));
  EXPECT_NE(reason, "") << "one question, one answer";
}

TEST_F(ReportServerTest, RetriesWhileTheEngineLockIsHeld) {
  busy = 2;
  os::LocalSocket socket = ask();
  for (int i = 0; i < 2; ++i) {
    EXPECT_LT(report_server->serve().after, 1ms);
    EXPECT_FALSE(receive_report(socket, reason));
  }
  report_server->serve();
  EXPECT_TRUE(receive_report(socket, reason)) << reason;
}

TEST_F(ReportServerTest, AClientThatDisconnectsIsDropped) {
  busy = 1;
  static_cast<void>(ask());
  report_server->serve();
  busy = 1'000'000;  // no client is left
  report_server->serve();
  os::LocalSocket next = ask();
  busy = 0;
  while (report_server->serve().descriptor < 0) continue;
  EXPECT_TRUE(receive_report(next, reason)) << reason;
}

TEST_F(ReportServerTest, ALongAnswerIsComplete) {
  for (int i = 0; i < 20'000; ++i) {
    answer.emplace_back("peer").text("why", std::string(100, 'x')).number("number", static_cast<unsigned>(i));
  }
  os::LocalSocket socket = ask();
  report_server->serve();
  const std::optional<Report> report = receive_report(socket, reason);
  ASSERT_TRUE(report) << reason;
  EXPECT_EQ(report->back()["number"], "19999");
}

TEST_F(ReportServerTest, AnAnswerBeyondTheShareOfItsUserIsNotRead) {
  std::size_t left = write_report(answer).size() + 10;
  os::LocalSocket socket = ask();
  report_server->serve();
  EXPECT_TRUE(receive_report(socket, reason, &left)) << reason;
  EXPECT_EQ(left, 10u);
  os::LocalSocket next = ask();
  while (report_server->serve().descriptor < 0) continue;
  EXPECT_FALSE(receive_report(next, reason, &left));
  EXPECT_NE(reason.find("too long"), std::string::npos) << reason;
  EXPECT_EQ(left, 10u);
}

TEST_F(ReportServerTest, ManyClientsAreAnsweredInTurn) {
  std::vector<os::LocalSocket> sockets;
  for (int i = 0; i < 50; ++i) sockets.push_back(ask());
  while (report_server->serve().descriptor < 0) continue;
  for (os::LocalSocket& socket : sockets) EXPECT_TRUE(receive_report(socket, reason)) << reason;
}

TEST_F(ReportServerTest, ClientsOfOtherUsersCostThoseBehindThemNoPauseEach) {
  if (!test::connect_as_other_user(listener_name(), 600)) GTEST_SKIP() << "needs root to become another user";
  os::LocalSocket socket = ask();
  ASSERT_TRUE(socket) << reason;
  for (int i = 0; i < 3; ++i) EXPECT_LT(report_server->serve().descriptor, 0);
  EXPECT_TRUE(receive_report(socket, reason)) << reason;
}

TEST_F(ReportServerTest, ANameIsBoundOnceAndFreeAfterwards) {
  EXPECT_FALSE(ReportServer::open(own_name(), nullptr, reason));
  EXPECT_NE(reason, "");
  report_server.reset();
  EXPECT_FALSE(ask());
  EXPECT_TRUE(ReportServer::open(own_name(), nullptr, reason)) << reason;
}

/// Another server has the name; it sends `bytes` with a memfd that holds `text`.
std::string reason_for(std::uint64_t magic, std::uint64_t bytes, const std::string& text) {
  std::string reason;
  const std::string name = listener_name() + "-liar";
  const os::LocalSocket listener = os::LocalSocket::listen(name, reason);
  os::LocalSocket asker = os::LocalSocket::connect(name, reason);
  const os::LocalSocket liar = listener.accept(reason);
  os::Descriptor file;
  const os::SharedMemory memory = os::SharedMemory::create(text.size(), file, reason);
  std::memcpy(memory.bytes().data(), text.data(), text.size());
  const std::uint64_t message[] = {magic, bytes};
  EXPECT_TRUE(liar.send(as_bytes(message, sizeof message), file, reason)) << reason;
  return receive_report(asker, reason) ? "believed" : reason;
}

TEST(ReceiveReport, MalformedAnswersAreRefused) {
  constexpr std::uint64_t magic = 0x6f666e692d6c6c63;
  const std::string good = "[peer\n=peer 10.0.0.1:1\n";
  EXPECT_EQ(reason_for(magic, good.size(), good), "believed");
  for (const std::uint64_t size : {std::uint64_t{0}, good.size() - 1, good.size() + 1, UINT64_MAX}) {
    EXPECT_NE(reason_for(magic, size, good), "believed") << size;
  }
  EXPECT_NE(reason_for(magic + 1, good.size(), good), "believed");
  for (const std::string& bad :
       {std::string("hello"), std::string(100, '\0'), std::string("[peer\n=peer \x1b[2J\n")}) {
    EXPECT_EQ(reason_for(magic, bad.size(), bad), "its answer is not a report");
  }
}

}  // namespace
}  // namespace cluster::provider
