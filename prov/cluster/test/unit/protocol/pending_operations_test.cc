// What an endpoint lists as in progress, and what it says that each operation waits for.
#include "protocol/pending_operations.h"

#include <gtest/gtest.h>

#include <string>

#include "support/messenger_pair.h"

namespace cluster::protocol {
namespace {

class PendingOperationsTest : public MessengerTest {
 protected:
  /// The operations of one side, as "kind: what it waits for".
  static std::vector<std::string> list(const Side& side) {
    std::vector<PendingOperation> all;
    collect(side.channel, all);
    std::vector<std::string> texts;
    for (const PendingOperation& each : all) texts.push_back(std::string(each.kind) + ": " + each.waits_for);
    return texts;
  }
  using Texts = std::vector<std::string>;
};

TEST_F(PendingOperationsTest, ALongSendWaitsForAReceiveThatFetchesIt) {
  ASSERT_EQ(send(left, pattern(1 << 20), 9), Status::ok);
  run();
  EXPECT_EQ(list(left), Texts{"send: to post a receive that matches it"});
  std::vector<std::byte> target(1 << 20);
  ASSERT_EQ(receive(right, target, 9), Status::ok);
  EXPECT_EQ(list(right), Texts{"receive: to send the rest of it"});
  left.carrier.capacity = 2;
  right.messenger.pump();
  carry(right, left);
  EXPECT_EQ(list(left), Texts{"send: to fetch the rest of it"});
  left.messenger.pump();
  std::vector<PendingOperation> sends;
  collect(left.channel, sends);
  ASSERT_EQ(sends.size(), 1u);
  EXPECT_EQ(sends[0].done, 2 * left.carrier.segment_payload);
  std::vector<PendingOperation> all;
  collect(right.channel, all);
  ASSERT_EQ(all.size(), 1u);
  EXPECT_TRUE(all[0].tagged);
  EXPECT_EQ(all[0].tag, 9u);
  EXPECT_EQ(all[0].length, target.size());
  run();
  EXPECT_EQ(list(left), Texts{});
  EXPECT_EQ(list(right), Texts{});
}

TEST_F(PendingOperationsTest, AShortSendWaitsForItsAcknowledgementOrItsMatch) {
  ASSERT_EQ(send(left, pattern(100), 9), Status::ok);
  left.messenger.pump();
  EXPECT_EQ(list(left), Texts{"send: to acknowledge it"});
  run();
  EXPECT_EQ(list(left), Texts{});
  ASSERT_EQ(send(left, pattern(100), 8, nullptr, CompletionLevel::match), Status::ok);
  run();
  EXPECT_EQ(list(left), Texts{"send: to post a receive that matches it"});
  std::vector<StoredMessage> stored;
  collect(right.messenger.matcher(), stored, 10);
  ASSERT_EQ(stored.size(), 2u);
  EXPECT_EQ(stored[0].length, 100u);
  EXPECT_EQ(stored[0].tag, 9u);
}

TEST_F(PendingOperationsTest, RemoteAccessNamesItsKind) {
  RegionTable regions;
  std::vector<std::byte> memory(1 << 20), source = pattern(1 << 20), target(1 << 20);
  const RmaIov far{0, 1, memory.size()};
  ASSERT_EQ(write(source, {&far, 1}), Status::ok);
  const Bytes slices[] = {target};
  ASSERT_EQ(read(slices, {&far, 1}), Status::ok);
  left.messenger.pump();
  const Texts all = list(left);
  EXPECT_TRUE(
      std::ranges::count(all, "write: to fetch it") + std::ranges::count(all, "write: to confirm it") == 1)
      << testing::PrintToString(all);
  EXPECT_TRUE(std::ranges::any_of(all, [](const std::string& text) { return text.starts_with("read: "); }))
      << testing::PrintToString(all);
  run();  // the target has no regions, so both fail
  EXPECT_EQ(list(left), Texts{});
}

TEST_F(PendingOperationsTest, AReceiveWithoutAMessageIsListedAndGetsItsAgeOnce) {
  std::vector<std::byte> target(64);
  ASSERT_EQ(receive(right, target, 9, 0, nullptr, true), Status::ok);
  const auto noted = [&] {
    std::vector<PendingOperation> all;
    collect(right.messenger.matcher(), all);
    EXPECT_EQ(all.size(), 1u);
    return all.empty() ? Time{} : all[0].noted;
  };
  EXPECT_EQ(noted(), Time{});
  const Time first = Time{} + std::chrono::seconds(1);
  note(right.messenger.matcher(), first);
  note(right.messenger.matcher(), first + std::chrono::seconds(1));
  EXPECT_EQ(noted(), first);
}

}  // namespace
}  // namespace cluster::protocol
