// Every operation, by every number of members, root, length and placement on nodes: all schedules of a team run
// against each other in memory, with messages that arrive in any order, and the results are checked.
#include "collective/composition.h"

#include <gtest/gtest.h>

#include <deque>
#include <map>
#include <numeric>
#include <random>

#include "collective/schedule.h"

namespace cluster::collective {
namespace {

using Value = std::uint32_t;
using Values = std::vector<Value>;

/// The element of a member's contribution at a position.
Value value_of(Member member, std::size_t position) {
  return static_cast<Value>(member * 1000003u + position * 17u + 5u);
}

Values contribution(Member member, std::size_t count) {
  Values values(count);
  for (std::size_t i = 0; i < count; ++i) values[i] = value_of(member, i);
  return values;
}

Values sums(std::size_t members, std::size_t count) {
  Values values(count);
  for (Member member = 0; member < members; ++member)
    for (std::size_t i = 0; i < count; ++i) values[i] += value_of(member, i);
  return values;
}

ConstBytes const_bytes(const Values& values) {
  return as_bytes(values.data(), values.size() * sizeof(Value));
}
Bytes bytes(Values& values) { return as_bytes(values.data(), values.size() * sizeof(Value)); }

/// The schedules of one operation at all members. Each sent message arrives at a random time.
class ScheduledTeam {
 public:
  ScheduledTeam(std::size_t members, std::size_t per_node, unsigned seed) : random_(seed) {
    for (std::size_t member = 0; member < members; ++member) node_of_.push_back(member / per_node);
  }
  /// Members of one node do not have consecutive numbers.
  void shuffle_nodes() { std::shuffle(node_of_.begin(), node_of_.end(), random_); }

  void start(Member self, const Arguments& arguments) {
    runs_.emplace_back(compose(TeamLayout(node_of_, self), arguments));
  }
  /// True if every member's schedule is done, and no message is left.
  bool run() {
    std::vector<std::size_t> order(runs_.size());
    std::iota(order.begin(), order.end(), std::size_t{0});
    std::shuffle(order.begin(), order.end(), random_);
    for (const std::size_t self : order)
      runs_[self].begin(
          [&](Step step, const Action& action) { issue(static_cast<Member>(self), step, action); });
    while (!arrivals_.empty()) {
      std::swap(arrivals_[random_() % arrivals_.size()], arrivals_.back());
      const Event event = arrivals_.back();
      arrivals_.pop_back();
      runs_[event.member].done(event.step,
                               [&](Step step, const Action& action) { issue(event.member, step, action); });
    }
    for (const auto& [key, pair] : pairs_) {
      if (!pair.sent.empty() || !pair.posted.empty()) return false;
    }
    return std::all_of(runs_.begin(), runs_.end(), [](const ScheduleRun& run) { return run.finished(); });
  }

  /// Messages that went by multicast.
  std::size_t spread() const { return spread_; }

 private:
  struct Event {
    Member member;
    Step step;
    ConstBytes leaving;  ///< nothing is to be received in there before
  };
  struct Posted {
    Step step;
    Bytes target;
  };
  struct Pair {
    std::deque<std::vector<std::byte>> sent;
    std::deque<Posted> posted;
  };

  static bool overlap(ConstBytes a, ConstBytes b) {
    return !a.empty() && !b.empty() && a.data() < b.data() + b.size() && b.data() < a.data() + a.size();
  }
  void issue(Member self, Step step, const Action& action) {
    if (action.kind == Action::Kind::spread) return spread(self, step, action);
    const bool sends = action.kind == Action::Kind::send;
    ASSERT_NE(action.member, self);
    ASSERT_LT(action.member, node_of_.size());
    const Member from = sends ? self : action.member;
    const Member to = sends ? action.member : self;
    Pair& pair = pairs_[{from, to, action.number}];
    if (sends) {
      pair.sent.emplace_back(action.source.begin(), action.source.end());
      arrivals_.push_back({self, step, action.source});
    } else {
      for (const Event& event : arrivals_)
        ASSERT_FALSE(event.member == self && overlap(event.leaving, action.target));
      pair.posted.push_back({step, action.target});
    }
    match(pair, to);
  }
  void spread(Member self, Step step, const Action& action) {
    arrivals_.push_back({self, step, action.source});
    const TeamLayout layout(node_of_, self);
    ASSERT_EQ(layout.leaders()[layout.node()], self);
    ++spread_;
    for (const Member leader : layout.leaders()) {
      if (leader == self) continue;
      Pair& pair = pairs_[{self, leader, action.number}];
      pair.sent.emplace_back(action.source.begin(), action.source.end());
      match(pair, leader);
    }
  }
  void match(Pair& pair, Member to) {
    if (pair.sent.empty() || pair.posted.empty()) return;
    ASSERT_EQ(pair.sent.front().size(), pair.posted.front().target.size());
    std::copy(pair.sent.front().begin(), pair.sent.front().end(), pair.posted.front().target.begin());
    arrivals_.push_back({to, pair.posted.front().step, {}});
    pair.sent.pop_front();
    pair.posted.pop_front();
  }

  std::mt19937 random_;
  std::vector<std::size_t> node_of_;
  std::deque<ScheduleRun> runs_;
  std::map<std::tuple<Member, Member, std::uint16_t>, Pair> pairs_;
  std::vector<Event> arrivals_;
  std::size_t spread_ = 0;
};

/// Members, members per node, elements of one contribution or block.
using Case = std::tuple<std::size_t, std::size_t, std::size_t>;

class Composition : public testing::TestWithParam<Case> {
 protected:
  std::size_t members() const { return std::get<0>(GetParam()); }
  std::size_t count() const { return std::get<2>(GetParam()); }

  /// Runs the operation of arguments(member) at every member.
  template <typename MakeArguments>
  void run(MakeArguments&& arguments, unsigned seed = 1) {
    ScheduledTeam team(members(), std::get<1>(GetParam()), seed);
    if (seed % 2 == 0) team.shuffle_nodes();
    for (Member member = 0; member < members(); ++member) team.start(member, arguments(member));
    ASSERT_TRUE(team.run());
  }

  /// Contributions of all members, each of `blocks` blocks.
  std::vector<Values> contributions(std::size_t blocks) const {
    std::vector<Values> all;
    for (Member member = 0; member < members(); ++member)
      all.push_back(contribution(member, blocks * count()));
    return all;
  }
  std::vector<Values> results(std::size_t blocks) const {
    return std::vector<Values>(members(), Values(blocks * count()));
  }
  static constexpr Reduction kSum{wire::AtomicOp::sum, wire::AtomicType::uint32};
};

TEST_P(Composition, BroadcastByMulticastFromEveryRoot) {
  for (Member root = 0; root < members(); ++root) {
    const bool often = root % 2 == 0;
    auto buffers = results(1);
    buffers[root] = contribution(root, count());
    ScheduledTeam team(members(), std::get<1>(GetParam()), root + 1);
    team.shuffle_nodes();
    for (Member member = 0; member < members(); ++member) {
      team.start(member, {.kind = Kind::broadcast,
                          .target = bytes(buffers[member]),
                          .root = root,
                          .multicast = true,
                          .often = often});
    }
    ASSERT_TRUE(team.run());
    for (const Values& buffer : buffers) EXPECT_EQ(buffer, buffers[root]);
    const std::size_t nodes = (members() + std::get<1>(GetParam()) - 1) / std::get<1>(GetParam());
    const bool is_long = nodes >= kMulticastNodes && count() * sizeof(Value) >= kMulticastMin;
    EXPECT_EQ(team.spread() != 0, is_long || (often && nodes >= kMulticastNodesShort));
  }
}

TEST_P(Composition, BroadcastFromEveryRoot) {
  for (Member root = 0; root < members(); ++root) {
    auto buffers = results(1);
    buffers[root] = contribution(root, count());
    run(
        [&](Member member) {
          return Arguments{.kind = Kind::broadcast, .target = bytes(buffers[member]), .root = root};
        },
        root);
    for (const Values& buffer : buffers) ASSERT_EQ(buffer, contribution(root, count()));
  }
}

TEST_P(Composition, ReduceToEveryRoot) {
  const auto own = contributions(1);
  for (Member root = 0; root < members(); ++root) {
    auto result = results(1);
    run(
        [&](Member member) {
          return Arguments{.kind = Kind::reduce,
                           .reduction = kSum,
                           .source = const_bytes(own[member]),
                           .target = member == root ? bytes(result[member]) : Bytes{},
                           .root = root};
        },
        root);
    ASSERT_EQ(result[root], sums(members(), count()));
  }
}

TEST_P(Composition, AllreduceIsTheSameAtAll) {
  for (unsigned seed = 0; seed < 8; ++seed) {
    const bool in_place = seed % 2 == 0, multicast = seed >= 4;
    const auto own = contributions(1);
    auto result = in_place ? own : results(1);
    ScheduledTeam team(members(), std::get<1>(GetParam()), seed);
    team.shuffle_nodes();
    for (Member member = 0; member < members(); ++member) {
      team.start(member, {.kind = Kind::allreduce,
                          .reduction = kSum,
                          .source = const_bytes(in_place ? result[member] : own[member]),
                          .target = bytes(result[member]),
                          .multicast = multicast});
    }
    ASSERT_TRUE(team.run());
    for (const Values& sum : result) ASSERT_EQ(sum, sums(members(), count()));
    const std::size_t nodes = (members() + std::get<1>(GetParam()) - 1) / std::get<1>(GetParam());
    EXPECT_EQ(team.spread() != 0,
              multicast && nodes >= kMulticastNodes && count() * sizeof(Value) >= kMulticastSums);
  }
}

TEST_P(Composition, AllgatherInTheOrderOfTheGroup) {
  for (unsigned seed = 0; seed < 4; ++seed) {
    const auto own = contributions(1);
    auto result = results(members());
    run(
        [&](Member member) {
          return Arguments{
              .kind = Kind::allgather, .source = const_bytes(own[member]), .target = bytes(result[member])};
        },
        seed);
    Values expected;
    for (const Values& block : own) expected.insert(expected.end(), block.begin(), block.end());
    for (const Values& gathered : result) ASSERT_EQ(gathered, expected);
  }
}

TEST_P(Composition, ScatterAndGatherAtEveryRoot) {
  for (Member root = 0; root < members(); ++root) {
    const Values all = contribution(root, members() * count());
    auto blocks = results(1);
    run(
        [&](Member member) {
          return Arguments{.kind = Kind::scatter,
                           .source = member == root ? const_bytes(all) : ConstBytes{},
                           .target = bytes(blocks[member]),
                           .root = root};
        },
        root);
    Values gathered(all.size());
    run(
        [&](Member member) {
          return Arguments{.kind = Kind::gather,
                           .source = const_bytes(blocks[member]),
                           .target = member == root ? bytes(gathered) : Bytes{},
                           .root = root};
        },
        root);
    ASSERT_EQ(gathered, all);
    for (Member member = 0; member < members(); ++member) {
      const auto begin = all.begin() + static_cast<std::ptrdiff_t>(member * count());
      ASSERT_EQ(blocks[member], Values(begin, begin + static_cast<std::ptrdiff_t>(count())));
    }
  }
}

TEST_P(Composition, AlltoallTransposes) {
  const auto own = contributions(members());
  auto result = results(members());
  run([&](Member member) {
    return Arguments{
        .kind = Kind::alltoall, .source = const_bytes(own[member]), .target = bytes(result[member])};
  });
  for (Member to = 0; to < members(); ++to) {
    for (Member from = 0; from < members(); ++from) {
      for (std::size_t i = 0; i < count(); ++i)
        ASSERT_EQ(result[to][from * count() + i], own[from][to * count() + i]);
    }
  }
}

TEST_P(Composition, ReduceScatterGivesEachItsBlock) {
  for (unsigned seed = 0; seed < 4; ++seed) {
    const auto own = contributions(members());
    const Values all = sums(members(), members() * count());
    auto result = results(1);
    run(
        [&](Member member) {
          return Arguments{.kind = Kind::reduce_scatter,
                           .reduction = kSum,
                           .source = const_bytes(own[member]),
                           .target = bytes(result[member])};
        },
        seed);
    for (Member member = 0; member < members(); ++member) {
      for (std::size_t i = 0; i < count(); ++i) ASSERT_EQ(result[member][i], all[member * count() + i]);
    }
  }
}

std::vector<Case> cases() {
  std::vector<Case> all;
  for (std::size_t members = 1; members <= 33; ++members) {
    const std::size_t per_node[] = {1, 3, members};
    if (members <= 9) {
      for (const std::size_t each : per_node) all.emplace_back(members, each, 3);
    } else {
      all.emplace_back(members, per_node[members % 3], 3);
    }
  }
  for (const std::size_t members : {1u, 2u, 3u, 7u, 8u}) {
    all.emplace_back(members, 2, 0);                                  // nothing to send
    all.emplace_back(members, 1, kLong / sizeof(Value) / 4 + 1);      // the ring of an allgather
    all.emplace_back(members, 2, kLong / sizeof(Value));              // the first long one
    all.emplace_back(members, 3, 3 * kPieceMin / sizeof(Value) + 7);  // in pieces
  }
  return all;
}

INSTANTIATE_TEST_SUITE_P(Teams, Composition, testing::ValuesIn(cases()));

/// A ring of so many nodes uses message numbers twice.
TEST(LongRing, MatchesMessagesWhoseNumbersRepeat) {
  constexpr std::size_t kNodes = 260, kCount = kLong / sizeof(Value);
  std::vector<Values> sums_at(kNodes);
  ScheduledTeam team(kNodes, 1, 7);
  for (Member member = 0; member < kNodes; ++member) {
    sums_at[member] = contribution(member, kCount);
    team.start(member, {.kind = Kind::allreduce,
                        .reduction = {wire::AtomicOp::sum, wire::AtomicType::uint32},
                        .source = const_bytes(sums_at[member]),
                        .target = bytes(sums_at[member])});
  }
  ASSERT_TRUE(team.run());
  const Values expected = sums(kNodes, kCount);
  for (const Values& sum : sums_at) ASSERT_EQ(sum, expected);
}

/// The messages that a member of two on two nodes sends before it has heard of the other.
std::size_t sent_at_once(Member self, const Arguments& arguments) {
  const std::vector<std::size_t> nodes{0, 1};
  const Schedule schedule = compose(TeamLayout(nodes, self), arguments);
  return static_cast<std::size_t>(std::count_if(
      schedule.actions().begin(), schedule.actions().end(),
      [](const Action& action) { return action.kind == Action::Kind::send && action.awaited == 0; }));
}

TEST(TwoNodes, DoNotWaitForEachOtherBeforeTheySend) {
  Values own(1);
  const Arguments reduction{.kind = Kind::allreduce,
                            .reduction = {wire::AtomicOp::sum, wire::AtomicType::uint32},
                            .source = bytes(own),
                            .target = bytes(own)};
  for (const Member self : {0u, 1u}) {
    EXPECT_EQ(sent_at_once(self, {.kind = Kind::barrier}), 1u) << self;
    EXPECT_EQ(sent_at_once(self, reduction), 1u) << self;
  }
}

TEST(TwoNodes, BroadcastInOnePiece) {
  Values buffer(1 << 20);
  EXPECT_EQ(sent_at_once(0, {.kind = Kind::broadcast, .target = bytes(buffer)}), 1u);
}

/// No member leaves a barrier before the last one has come.
TEST(Barrier, WaitsForEveryMember) {
  for (std::size_t members = 1; members <= 33; ++members) {
    for (const std::size_t per_node : {std::size_t{1}, std::size_t{3}, members}) {
      for (std::size_t late = 0; late < members; late += 1 + members / 9) {
        std::vector<std::size_t> node_of(members);
        for (std::size_t i = 0; i < members; ++i) node_of[i] = i / per_node;
        std::deque<ScheduleRun> runs;
        std::map<std::tuple<Member, Member, std::uint16_t>, int> sent;
        std::map<std::tuple<Member, Member, std::uint16_t>, Step> posted;
        std::vector<std::pair<Member, Step>> done;
        const auto issue_for = [&](Member self) {
          return [&, self](Step step, const Action& action) {
            const bool sends = action.kind == Action::Kind::send;
            const std::tuple key{sends ? self : action.member, sends ? action.member : self, action.number};
            if (sends) done.emplace_back(self, step);
            if (sends) ++sent[key];
            if (!sends) posted[key] = step;
            const auto waiting = posted.find(key);
            if (waiting == posted.end() || sent[key] == 0) return;
            done.emplace_back(std::get<1>(key), waiting->second);
            --sent[key];
            posted.erase(waiting);
          };
        };
        const auto settle = [&] {
          while (!done.empty()) {
            const auto [member, step] = done.back();
            done.pop_back();
            runs[member].done(step, issue_for(member));
          }
        };
        for (Member self = 0; self < members; ++self)
          runs.emplace_back(compose(TeamLayout(node_of, self), {}));
        for (Member self = 0; self < members; ++self)
          if (self != late) runs[self].begin(issue_for(self));
        settle();
        for (Member self = 0; self < members; ++self) ASSERT_FALSE(runs[self].finished() && self != late);
        runs[late].begin(issue_for(static_cast<Member>(late)));
        settle();
        for (const ScheduleRun& run : runs) ASSERT_TRUE(run.finished());
      }
    }
  }
}

}  // namespace
}  // namespace cluster::collective
