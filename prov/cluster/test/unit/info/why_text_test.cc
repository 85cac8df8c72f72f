// The sentence that tells users why their program is stuck.
#include "why_text.h"

#include <gtest/gtest.h>

#include <string>

#include "endpoint_text.h"

namespace cluster::info {
namespace {

const char* const kSelf = "10.0.0.1:9";
const char* const kPeer = "10.0.0.2:9";

class WhyTextTest : public ::testing::Test {
 protected:
  WhyTextTest() {
    answer.process = 7;
    answer.network = "self";
    answer.report.emplace_back("endpoint").text("endpoint", kSelf).number("unexpected_messages", 0);
  }
  Record& endpoint() { return answer.report.front(); }
  Record& add_peer(const char* name = kPeer, const char* path = "udp") {
    return answer.report.emplace_back("peer").text("peer", name).text("path", path).text("why", "so it is");
  }
  Record& add_operation(const char* kind, const char* peer, std::uint64_t age = 12'000'000'000) {
    return answer.report.emplace_back("operation")
        .text("operation", kind)
        .text("peer", peer)
        .number("bytes", 8)
        .number("done_bytes", 0)
        .number("age_ns", age)
        .text("waits_for", "to send a message that matches it");
  }
  void add_message(std::uint64_t tag) {
    answer.report.emplace_back("message").text("peer", kPeer).number("bytes", 8).number("tag", tag);
  }
  std::string why() const { return why_text(answer, neighbours); }
  bool says(const char* words) const { return why().find(words) != std::string::npos; }

  EndpointReport answer;
  std::vector<Neighbour> neighbours;
};

TEST_F(WhyTextTest, APeerWhoseKernelVouchesForIt) {
  add_operation("receive", kPeer);
  add_peer().number("sent_frames", 5).number("silent_ns", 11'000'000'000).flag("kernel_vouches", true);
  EXPECT_EQ(
      why(),
      "10.0.0.1:9 has waited 12.0 s for 10.0.0.2:9 to send a message that matches it (receive of 8 bytes); "
      "it has been silent for 11.0 s; its kernel reports that its process exists: the process is "
      "stopped, or a firewall blocks UDP.\n");
}

TEST_F(WhyTextTest, APeerThatHasNeverAnswered) {
  add_operation("receive", kPeer);
  add_peer().number("sent_frames", 5).flag("kernel_vouches", false);
  EXPECT_TRUE(says("; it has never been reached.")) << why();
}

TEST_F(WhyTextTest, ThoseThatWereLostCanSendNothingToAReceiveFromAnyPeer) {
  add_operation("receive", "any");
  add_peer(kPeer, "none").text("lost", "peer unreachable").number("lost_ns", 7'000'000'000);
  add_peer("10.0.0.3:9");
  EXPECT_TRUE(says("; 10.0.0.2:9 was lost 7.0 s ago (peer unreachable) and can no longer send the message."))
      << why();
  const std::string text = endpoints_text({{answer}, {}, 0}, true);
  EXPECT_NE(text.find("10.0.0.2:9  lost"), std::string::npos) << text;
  EXPECT_NE(text.find("10.0.0.2:9 was lost 7.0 s ago (peer unreachable)"), std::string::npos) << text;
}

TEST_F(WhyTextTest, BuffersForWhateverComesWaitForNothing) {
  for (int i = 0; i < 3; ++i) add_operation("buffer", "any");
  EXPECT_EQ(why(), "10.0.0.1:9 waits for no peer: nothing is in progress (3 buffers for any message).\n");
  add_operation("receive", kPeer, 1'000'000'000);
  add_operation("receive", kPeer, 1'000'000'000);
  EXPECT_TRUE(says("has waited 1.0 s for 10.0.0.2:9")) << why();
  EXPECT_TRUE(says("; 1 more operation is in progress.")) << why();
  const std::string text = endpoints_text({{answer}, {}, 0}, true);
  EXPECT_NE(text.find("3 x buffer"), std::string::npos) << text;
  EXPECT_NE(text.find("2 x receive"), std::string::npos) << text;
}

TEST_F(WhyTextTest, AnApplicationThatMakesNoCall) {
  EXPECT_FALSE(says("no libfabric call"));
  endpoint().number("no_call_ns", 12'000'000'000);
  EXPECT_TRUE(
      says("; the application has made no libfabric call for 12.0 s: it computes, or waits elsewhere."))
      << why();
}

TEST_F(WhyTextTest, MessagesThatNoReceiveMatches) {
  answer.report.front() = Record("endpoint");
  endpoint().text("endpoint", kSelf).number("unexpected_messages", 1);
  add_message(77);
  EXPECT_TRUE(
      says(", and 1 message waits here for a receive that matches it (tag 77, 8 bytes, from 10.0.0.2:9)."))
      << why();
  add_operation("receive", kPeer);
  add_peer().number("unexpected_messages", 2);
  EXPECT_TRUE(says("; 2 messages wait here for a receive that matches them (the first: tag 77, 8 bytes,"))
      << why();
}

TEST_F(WhyTextTest, APeerOfThisNodeIsNamedByItsProcess) {
  add_operation("receive", kPeer);
  neighbours = {{"4711", kPeer, 8, "other"}, {"self", kPeer, 9, "ring"}};
  EXPECT_TRUE(says("for 10.0.0.2:9 (process 9 ring) to send")) << why();
}

TEST_F(WhyTextTest, RanksThatWaitForNoPeerMayWaitForTheirLauncher) {
  answer.launcher = {4, "orted", {}};
  EndpointReport other = answer;
  EXPECT_EQ(launchers_text({answer, other}),
            "No rank of orted (process 4) waits for a peer: if the job hangs, its ranks are "
            "computing, or wait for orted.\n");
  answer.launcher.silent = {{"10.0.0.1:5", "10.0.0.2:6", 7}};
  EXPECT_EQ(launchers_text({answer, other}),
            "No rank of orted (process 4) waits for a peer: if the job hangs, its ranks are computing, or "
            "wait for orted; nothing answers what orted sends over TCP from 10.0.0.1:5 to 10.0.0.2:6 (7 "
            "retransmissions): is this rail cut?\n");
  EXPECT_NE(reasons_text({{answer, other}, {}, 0}).find("No rank of orted"), std::string::npos);
  other.trouble = "it does not answer";
  EXPECT_EQ(launchers_text({answer, other}), "") << "what is not known is not said";
  add_operation("buffer", "any");
  EXPECT_NE(launchers_text({answer}), "") << "what stands waits for nothing";
  add_operation("receive", kPeer);
  EXPECT_EQ(launchers_text({answer}), "") << "one that waits for a peer";
}

TEST_F(WhyTextTest, AProgramWithoutLauncherWaitsForNone) { EXPECT_EQ(launchers_text({answer}), ""); }

}  // namespace
}  // namespace cluster::info
