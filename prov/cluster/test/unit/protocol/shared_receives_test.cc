// Receives that several endpoints share: which of them a message takes, and who takes them from there.
#include "protocol/shared_receives.h"

#include <gtest/gtest.h>

#include "support/messenger_pair.h"

namespace cluster::protocol {
namespace {

/// A sender with this address handle.
auto from(std::uint64_t handle) {
  return [handle] { return handle; };
}

TEST(SharedReceives, AMessageTakesTheOldestThatFits) {
  SharedReceives shared;
  int first, second, other, untagged;
  EXPECT_TRUE(shared.empty());
  shared.add({.from = 3, .context = &other, .tag = 5, .tagged = true});
  shared.add({.context = &first, .tag = 4, .ignore = 1, .tagged = true});
  shared.add({.context = &second, .tag = 5, .tagged = true});
  shared.add({.context = &untagged});
  EXPECT_FALSE(shared.would_match(true, 6, from(3)));
  EXPECT_FALSE(shared.take(true, 6, from(3)));
  EXPECT_TRUE(shared.would_match(true, 5, from(7)));
  EXPECT_EQ(shared.take(true, 5, from(7))->context, &first) << "its tag fits, and it names no sender";
  EXPECT_EQ(shared.take(true, 5, from(7))->context, &second);
  EXPECT_FALSE(shared.take(true, 5, from(7)));
  EXPECT_EQ(shared.take(true, 5, from(3))->context, &other);
  EXPECT_FALSE(shared.empty());
  EXPECT_EQ(shared.take(false, 0, from(7))->context, &untagged);
  EXPECT_TRUE(shared.empty());
}

TEST(SharedReceives, AReceiveIsClaimedOnce) {
  SharedReceives shared;
  int context;
  const auto first = shared.add({.context = &context}), second = shared.add({.context = &context});
  EXPECT_TRUE(shared.claim(second));
  EXPECT_FALSE(shared.claim(second));
  EXPECT_TRUE(shared.claim(first)) << "the same context, but another receive";
  EXPECT_TRUE(shared.empty());
}

TEST(SharedReceives, TheOldestWithAContextIsCanceledFirst) {
  SharedReceives shared;
  int one, two;
  shared.add({.context = &one, .tag = 1, .tagged = true});
  shared.add({.context = &two, .tag = 2, .tagged = true});
  shared.add({.context = &one, .tag = 3, .tagged = true});
  EXPECT_EQ(shared.take_by_context(&one)->tag, 1u);
  EXPECT_EQ(shared.take_by_context(&one)->tag, 3u);
  EXPECT_FALSE(shared.take_by_context(&one));
  EXPECT_EQ(shared.take_by_context(&two)->tag, 2u);
}

/// The right side shares its receives.
class SharedReceivesOfAnEndpoint : public MessengerTest {
 protected:
  SharedReceivesOfAnEndpoint() {
    EndpointBindings bindings;
    bindings.rx_queue = &right.completions;
    bindings.shared_receives = &shared;
    right.messenger.attach(bindings);
  }
  SharedReceives::Receive add(Bytes bytes, std::uint64_t tag) {
    return shared.add({.slices = {&bytes, 1}, .tag = tag, .tagged = true});
  }
  SharedReceives shared;
};

TEST_F(SharedReceivesOfAnEndpoint, AnArrivalTakesAReceiveOfItsOwnFirst) {
  std::vector<std::byte> own(3000), common(3000), long_message(50000);
  add(common, 9);
  add(long_message, 10);
  ASSERT_EQ(receive(right, own, 9), Status::ok);
  for (unsigned seed : {1u, 2u}) ASSERT_EQ(send(left, pattern(3000, seed), 9), Status::ok);
  ASSERT_EQ(send(left, pattern(50000, 3), 10), Status::ok);
  run();
  EXPECT_EQ(own, pattern(3000, 1));
  EXPECT_EQ(common, pattern(3000, 2));
  EXPECT_EQ(long_message, pattern(50000, 3));
  EXPECT_EQ(right.take().size(), 3u);
  EXPECT_TRUE(shared.empty());
}

TEST_F(SharedReceivesOfAnEndpoint, AStoredMessageIsGivenToAReceiveOnce) {
  std::vector<std::byte> first(3000), second(3000);
  ASSERT_EQ(send(left, pattern(3000), 9), Status::ok);
  run();
  const auto wrong_tag = add(second, 8), wanted = add(first, 9);
  Matcher& matcher = right.messenger.matcher();
  EXPECT_FALSE(matcher.take_shared(nullptr, wrong_tag));
  EXPECT_TRUE(matcher.take_shared(nullptr, wanted));
  EXPECT_EQ(first, pattern(3000));
  EXPECT_EQ(right.take().size(), 1u);
  EXPECT_EQ(matcher.stored(), 0u);

  ASSERT_EQ(send(left, pattern(3000, 2), 9), Status::ok);
  run();
  const auto gone = add(second, 9);
  EXPECT_TRUE(shared.claim(gone)) << "another endpoint takes it meanwhile";
  EXPECT_TRUE(matcher.take_shared(nullptr, gone)) << "it waits no longer";
  EXPECT_EQ(matcher.stored(), 1u) << "the message stays";
}

}  // namespace
}  // namespace cluster::protocol
