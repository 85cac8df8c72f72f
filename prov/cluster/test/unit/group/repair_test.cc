// A frame that goes to one member alone: whole, or in parts where its path carries shorter frames.
#include <gtest/gtest.h>

#include <algorithm>
#include <vector>

#include "group/kept_frames.h"
#include "group/member.h"
#include "support/queue_carrier.h"

namespace cluster::group {
namespace {

using Bodies = std::vector<std::vector<std::byte>>;

constexpr std::size_t kBodySize = 5000;

class RepairTest : public testing::Test {
 protected:
  RepairTest() {
    listener.carrier = &carrier;
    body = std::vector<std::byte>(kBodySize);
    for (std::size_t i = 0; i < body.size(); ++i) body[i] = static_cast<std::byte>(i * 7);
    for (int i = 0; i < 2; ++i) {
      std::ranges::copy(body, frames.blank().begin());
      frames.append(body.size());
    }
  }
  /// What a receiver makes of all that was posted: the bodies that are complete.
  Bodies taken() {
    Bodies bodies;
    for (; !carrier.items.empty(); carrier.items.pop_front()) {
      const ConstBytes whole = parts.add(carrier.items.front().segment, carrier.items.front().payload);
      if (!whole.empty()) bodies.emplace_back(whole.begin(), whole.end());
    }
    return bodies;
  }

  test::QueueCarrier carrier;
  Listener listener;
  std::vector<std::byte> body;
  KeptFrames frames{{5, 77, 1}, kBodySize};
  RepairParts parts;
};

TEST_F(RepairTest, AFrameThatFitsGoesWhole) {
  carrier.segment_payload = kBodySize;
  EXPECT_TRUE(frames.post(listener, 0));
  EXPECT_TRUE(listener.posted);
  EXPECT_EQ(carrier.items.size(), 1u);
  EXPECT_EQ(taken(), Bodies{body});
}

TEST_F(RepairTest, AFrameThatIsLongerThanThePathCarriesGoesInParts) {
  carrier.segment_payload = 1400;
  EXPECT_TRUE(frames.post(listener, 0));
  EXPECT_EQ(carrier.items.size(), 4u);
  EXPECT_TRUE(frames.post(listener, 1));
  EXPECT_EQ(taken(), (Bodies{body, body}));
}

TEST_F(RepairTest, GoesOnWhereTheCarrierWasFull) {
  carrier.segment_payload = 1400;
  carrier.capacity = 3;
  EXPECT_FALSE(frames.post(listener, 0));
  EXPECT_TRUE(taken().empty());
  EXPECT_TRUE(frames.post(listener, 0));
  EXPECT_EQ(carrier.items.size(), 1u);
  EXPECT_EQ(taken(), Bodies{body});
}

TEST_F(RepairTest, APartWithoutTheOneBeforeIsDroppedAndTheNextBodyIsWhole) {
  carrier.segment_payload = 1400;
  EXPECT_TRUE(frames.post(listener, 0));
  carrier.items.erase(carrier.items.begin() + 1);
  EXPECT_TRUE(frames.post(listener, 1));
  EXPECT_EQ(taken(), Bodies{body});
}

TEST_F(RepairTest, PartsOfAnotherFrameOrStreamOrBeyondTheEndAreNoneOfThisOne) {
  const ConstBytes half = ConstBytes(body).first(kBodySize / 2);
  const wire::Segment first{.id = 5, .offset = 0, .total = kBodySize};
  wire::Segment second = first;
  second.peer_id = kBodySize / 2;
  EXPECT_TRUE(parts.add(first, half).empty());
  second.offset = 1;
  EXPECT_TRUE(parts.add(second, half).empty());
  second.offset = 0;
  second.id = 6;
  EXPECT_TRUE(parts.add(second, half).empty());
  second.id = 5;
  EXPECT_TRUE(parts.add(second, body).empty());
  EXPECT_EQ(parts.add(second, half).size(), kBodySize);
  EXPECT_TRUE(parts.add({.id = 5, .offset = 2, .total = 100'000}, half).empty());
  EXPECT_TRUE(parts.add({.id = 5, .peer_id = kBodySize / 2, .offset = 2, .total = 100'000}, half).empty());
}

}  // namespace
}  // namespace cluster::group
