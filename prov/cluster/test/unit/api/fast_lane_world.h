// Two endpoints of one node whose rings are open, and what their counters say of the fast lane: how many of a
// few messages took it down, and how many up.
#pragma once

#include <deque>
#include <functional>
#include <utility>
#include <vector>

#include "api/endpoint.h"
#include "unit/api/api_world.h"

namespace cluster::api::test {

inline constexpr std::uint64_t kTag = 7;
inline constexpr int kFew = 8;

class FastLaneTest : public PairTest {
 protected:
  FastLaneTest() { platform.alone = platform.one_node = true; }

  static Counters counters(const Node& node) {
    return object_of<Endpoint>(&node.endpoint->fid).opened_engine()->counters();
  }
  std::uint64_t sent() { return counters(left).fast_sent; }
  std::uint64_t received() { return counters(right).fast_received; }

  /// Endpoints with open rings both ways that owe each other nothing.
  void start_connected(std::uint64_t send_bind = 0, std::uint64_t receive_bind = 0) {
    start(send_bind, receive_bind);
    connect();
  }
  void connect() {
    for (int i = 0; i < kFew; ++i) {
      exchange(left, right, to_right);
      exchange(right, left, to_left);
    }
    platform.clock().step = 0us;  // no turn is due by the clock
  }
  void exchange(const Node& from, const Node& to, fi_addr_t address) {
    ASSERT_EQ(fi_trecv(to.endpoint, &got, sizeof got, nullptr, FI_ADDR_UNSPEC, kTag, 0, nullptr), 0);
    ASSERT_EQ(fi_tinject(from.endpoint, &word, sizeof word, address, kTag), 0);
    ASSERT_EQ(await(to.receives, entry), 1);
  }
  void post(std::uint64_t tag = kTag, std::uint64_t ignore = 0, void* context = nullptr) {
    ASSERT_EQ(fi_trecv(right.endpoint, &got, sizeof got, nullptr, FI_ADDR_UNSPEC, tag, ignore, context), 0);
  }
  /// More often than a message that no receive waits for stays in the ring.
  void look_often() {
    for (int i = 0; i < 4 * kFew; ++i) turn_both();
  }
  void expect_arrival() {
    ASSERT_EQ(await(right.receives, entry), 1);
    EXPECT_EQ(got, word);
  }
  ssize_t send() {
    ++word;
    return fi_tsend(left.endpoint, &word, sizeof word, nullptr, to_right, kTag, &word);
  }
  /// A message that stays where it is until the end.
  ssize_t send_number() {
    numbers_.push_back(numbers_.size());
    return fi_tsend(left.endpoint, &numbers_.back(), 8, nullptr, to_right, kTag, nullptr);
  }
  void expect_numbers(std::uint64_t count) {
    for (std::uint64_t i = 0; i < count; ++i) {
      post();
      ASSERT_EQ(await(right.receives, entry), 1);
      ASSERT_EQ(got, i) << "in order";
    }
  }
  /// Of kFew messages with receives posted first, how many took the lane down and up.
  std::pair<int, int> lane_users(const std::function<ssize_t()>& way) {
    const std::uint64_t sent_before = sent(), received_before = received();
    for (int i = 0; i < kFew; ++i) {
      post();
      EXPECT_EQ(way(), 0);
      expect_arrival();
    }
    const int up = static_cast<int>(received() - received_before);
    // Once in many turns the engine looks at everything: then a message takes the general path.
    return {static_cast<int>(sent() - sent_before), up == kFew - 1 ? kFew : up};
  }
  std::pair<int, int> lane_users() {
    return lane_users([this] { return send(); });
  }
  void set_op_flags(std::uint64_t flags) {
    std::uint64_t value = flags | FI_TRANSMIT;
    ASSERT_EQ(fi_control(&left.endpoint->fid, FI_SETOPSFLAG, &value), 0);
  }

  std::vector<fid_cntr*> counters_;
  std::deque<std::uint64_t> numbers_;
  static constexpr std::pair<int, int> kBoth{kFew, kFew}, kOnlyUp{0, kFew}, kOnlyDown{kFew, 0},
      kNeither{0, 0};
  std::uint64_t word = 0;
  std::uint64_t got = 0;
  fi_cq_tagged_entry entry{};
};

}  // namespace cluster::api::test
