// Asking a running endpoint: an answer of any length comes whole, others get none, and nothing that comes
// over such a connection is believed.
#include "provider/inquiry.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <cstring>

#include "os/shared_memory.h"
#include "support/fake_world.h"

namespace cluster::provider {
namespace {

/// A name that no other test on this machine has.
SocketAddress own_name() {
  const auto number = static_cast<unsigned>(getpid());
  const std::byte ip[] = {std::byte{127}, static_cast<std::byte>(number >> 16),
                          static_cast<std::byte>(number >> 8), static_cast<std::byte>(number)};
  return SocketAddress::v4(ip, 9228);
}

std::string listener_name() { return std::string(kInquiryPrefix) + own_name().text(); }

class InquiryTest : public ::testing::Test {
 protected:
  void SetUp() override {
    inquiry = Inquiry::open(
        own_name(),
        [this](Report& report) {
          if (busy-- > 0) return false;
          report = answer;
          return true;
        },
        reason);
    ASSERT_TRUE(inquiry) << reason;
    answer.emplace_back("endpoint").text("endpoint", own_name().text());
  }
  os::LocalSocket ask() { return os::LocalSocket::connect(listener_name(), reason); }

  Report answer;
  int busy = 0;
  std::string reason;
  std::unique_ptr<Inquiry> inquiry;
};

TEST_F(InquiryTest, NobodyAsks) {
  const os::Rest rest = inquiry->visit();
  EXPECT_TRUE(rest.listening);
  EXPECT_EQ(rest.length, os::Rest::kUntilCalled);
}

TEST_F(InquiryTest, AnAnswerAndThenAPause) {
  const os::LocalSocket socket = ask();
  ASSERT_TRUE(socket) << reason;
  EXPECT_FALSE(receive_answer(socket, reason));
  EXPECT_EQ(reason, "") << "it has not answered yet";
  EXPECT_FALSE(inquiry->visit().listening) << "deaf for a while";
  const std::optional<Report> report = receive_answer(socket, reason);
  ASSERT_TRUE(report) << reason;
  EXPECT_EQ((*report)[0]["endpoint"], own_name().text());
  EXPECT_TRUE(inquiry->visit().listening);
  EXPECT_FALSE(receive_answer(socket, reason));
  EXPECT_NE(reason, "") << "one question, one answer";
}

TEST_F(InquiryTest, WaitsUntilTheDoorIsFree) {
  busy = 2;
  const os::LocalSocket socket = ask();
  for (int i = 0; i < 2; ++i) {
    EXPECT_LT(inquiry->visit().length, 1ms);
    EXPECT_FALSE(receive_answer(socket, reason));
  }
  inquiry->visit();
  EXPECT_TRUE(receive_answer(socket, reason)) << reason;
}

TEST_F(InquiryTest, WhoeverLeavesIsForgotten) {
  busy = 1;
  static_cast<void>(ask());
  inquiry->visit();
  busy = 1'000'000;  // nobody is left to be answered
  inquiry->visit();
  const os::LocalSocket next = ask();
  busy = 0;
  while (!inquiry->visit().listening) continue;
  EXPECT_TRUE(receive_answer(next, reason)) << reason;
}

TEST_F(InquiryTest, ALongAnswerComesWhole) {
  for (int i = 0; i < 20'000; ++i) {
    answer.emplace_back("peer").text("why", std::string(100, 'x')).number("number", static_cast<unsigned>(i));
  }
  const os::LocalSocket socket = ask();
  inquiry->visit();
  const std::optional<Report> report = receive_answer(socket, reason);
  ASSERT_TRUE(report) << reason;
  EXPECT_EQ(report->back()["number"], "19999");
}

TEST_F(InquiryTest, ManyAskOneAfterTheOther) {
  std::vector<os::LocalSocket> sockets;
  for (int i = 0; i < 50; ++i) sockets.push_back(ask());
  while (!inquiry->visit().listening) continue;
  for (const os::LocalSocket& socket : sockets) EXPECT_TRUE(receive_answer(socket, reason)) << reason;
}

TEST_F(InquiryTest, ANameIsTakenOnceAndFreeAfterwards) {
  EXPECT_FALSE(Inquiry::open(own_name(), nullptr, reason));
  EXPECT_NE(reason, "");
  inquiry.reset();
  EXPECT_FALSE(ask());
  EXPECT_TRUE(Inquiry::open(own_name(), nullptr, reason)) << reason;
}

/// Somebody else has the name, and says `bytes` with a memory that holds `text`.
std::string reason_for(std::uint64_t magic, std::uint64_t bytes, const std::string& text) {
  std::string reason;
  const std::string name = listener_name() + "-liar";
  const os::LocalSocket listener = os::LocalSocket::listen(name, reason);
  const os::LocalSocket asker = os::LocalSocket::connect(name, reason);
  const os::LocalSocket liar = listener.accept(reason);
  os::Descriptor file;
  const os::SharedMemory memory = os::SharedMemory::create(text.size(), file, reason);
  std::memcpy(memory.bytes().data(), text.data(), text.size());
  const std::uint64_t message[] = {magic, bytes};
  EXPECT_TRUE(liar.send(as_bytes(message, sizeof message), file, reason)) << reason;
  return receive_answer(asker, reason) ? "believed" : reason;
}

TEST(InquiryAnswer, LiesAreNotBelieved) {
  constexpr std::uint64_t magic = 0x6f666e692d6c6c63;
  const std::string good = "[peer\n=peer 10.0.0.1:1\n";
  EXPECT_EQ(reason_for(magic, good.size(), good), "believed");
  for (const std::uint64_t size : {std::uint64_t{0}, good.size() - 1, good.size() + 1, UINT64_MAX}) {
    EXPECT_NE(reason_for(magic, size, good), "believed") << size;
  }
  EXPECT_NE(reason_for(magic + 1, good.size(), good), "believed");
  for (const std::string& bad :
       {std::string("hello"), std::string(100, '\0'), std::string("[peer\n=peer \x1b[2J\n")}) {
    EXPECT_EQ(reason_for(magic, bad.size(), bad), "its answer is no report");
  }
}

}  // namespace
}  // namespace cluster::provider
