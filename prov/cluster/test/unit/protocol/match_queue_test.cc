// Matching against a plain list of everything, in random order and with every kind of lookup:
// whatever the indices do, the result is the first match in order.
#include "protocol/match_queue.h"

#include <gtest/gtest.h>

#include <deque>
#include <random>
#include <vector>

#include "protocol/channel.h"
#include "protocol/match_index.h"

namespace cluster::protocol {
namespace {

constexpr std::uint64_t kMasks[] = {0, 0xff, ~std::uint64_t{0}, 0xff00, 0xff00ff, 0xf0};

class MatchQueueTest : public testing::TestWithParam<unsigned> {
 protected:
  std::uint64_t below(std::uint64_t limit) { return random() % limit; }
  Channel* any_channel() { return &channels[below(std::size(channels))]; }
  std::uint64_t any_tag() { return below(4) << 16 | below(6) << 8 | below(6); }

  void post() {
    RecvRequest& receive = receives.emplace_back();
    receive.from = below(2) == 0 ? any_channel() : nullptr;
    receive.tag = any_tag();
    receive.ignore = kMasks[below(masks)];
    receive.context = &receive;
    queue.post(receive);
    posted.push_back(&receive);
  }
  void arrive() {
    const Channel* channel = any_channel();
    const std::uint64_t tag = any_tag();
    const auto expected = std::find_if(posted.begin(), posted.end(), [&](const RecvRequest* receive) {
      return fits(receive->from, receive->tag, receive->ignore, channel, tag);
    });
    RecvRequest* got = queue.match(channel, tag);
    ASSERT_EQ(got, expected == posted.end() ? nullptr : *expected);
    if (got != nullptr) posted.erase(expected);
  }
  void cancel() {
    if (posted.empty()) return;
    const auto victim = posted.begin() + static_cast<std::ptrdiff_t>(below(posted.size()));
    RecvRequest* found = queue.find_context((*victim)->context);
    ASSERT_EQ(found, *victim);
    queue.withdraw(*found);
    posted.erase(victim);
  }
  void store() {
    UnexpectedMessage& message = messages.emplace_back();
    message.channel = any_channel();
    message.tag = any_tag();
    queue.store(message);
    stored.push_back(&message);
  }
  void look(bool take) {
    const Channel* from = below(2) == 0 ? any_channel() : nullptr;
    const std::uint64_t tag = any_tag(), ignore = kMasks[below(masks)];
    const auto expected = std::find_if(stored.begin(), stored.end(), [&](const UnexpectedMessage* message) {
      return message->available() && fits(from, tag, ignore, message->channel, message->tag);
    });
    UnexpectedMessage* got = queue.find(from, tag, ignore);
    ASSERT_EQ(got, expected == stored.end() ? nullptr : *expected);
    if (got == nullptr) return;
    if (!take) {
      got->claimed = true;
      return;
    }
    queue.drop(*got);
    stored.erase(expected);
  }

  std::mt19937 random{GetParam()};
  std::size_t masks = 1 + GetParam() % std::size(kMasks);
  Channel channels[3];
  MatchQueue queue;
  std::deque<RecvRequest> receives;
  std::deque<UnexpectedMessage> messages;
  std::vector<RecvRequest*> posted;
  std::vector<UnexpectedMessage*> stored;
};

TEST_P(MatchQueueTest, ReceivesAreTakenInTheOrderOfPosting) {
  for (int flood = 0; flood < 3; ++flood) {
    for (int i = 0; i < 300; ++i) post();
    for (int i = 0; i < 1000 && !HasFatalFailure(); ++i) {
      switch (below(5)) {
        case 0: post(); break;
        case 1: cancel(); break;
        default: arrive();
      }
    }
    while (!posted.empty() && !HasFatalFailure()) cancel();
    EXPECT_EQ(queue.find_directed(nullptr), nullptr);
    const auto left = [](const Channel&) { ADD_FAILURE() << "a receive is still posted"; };
    queue.each_directed(left);
  }
}

TEST_P(MatchQueueTest, MessagesAreFoundInTheOrderOfArrival) {
  for (int flood = 0; flood < 3; ++flood) {
    for (int i = 0; i < 300; ++i) store();
    for (int i = 0; i < 1500 && !HasFatalFailure(); ++i) {
      switch (below(4)) {
        case 0: store(); break;
        case 1: look(below(8) != 0); break;
        default: look(true);
      }
    }
    for (UnexpectedMessage* message : stored) queue.drop(*message);
    stored.clear();
    EXPECT_EQ(queue.find(nullptr, 0, ~std::uint64_t{0}), nullptr);
  }
}

INSTANTIATE_TEST_SUITE_P(Seeds, MatchQueueTest, testing::Range(0U, 24U));

}  // namespace
}  // namespace cluster::protocol
