// Collective teams and operations: every operation on teams of all sides and of some, with messages of the
// application in between; what is refused; sets.
#include <algorithm>
#include <complex>

#include "members.h"

namespace conformance {
namespace {

constexpr int kSides = 5;

/// Numbers of elements: of one packet, of one segment, and of many.
#ifdef CLUSTER_SANITIZED
constexpr std::size_t kCounts[] = {0, 1, 100, 5000};
constexpr std::size_t kSizeStep = 3;
#else
constexpr std::size_t kCounts[] = {0, 1, 2, 100, 1000, 5000, 50000, 300000};
constexpr std::size_t kSizeStep = 1;
#endif
constexpr std::size_t kCountsOfEachTeam[] = {1, 3000, 20000};

std::vector<fi_addr_t> all_of(const Team& team) { return team.peers; }

SIDES_TEST(Collective, EveryOperationAtEveryLength, kSides) {
  Team team(side, with_collectives());
  Members members(team, all_of(team));
  ASSERT_EQ(members.joined(), 0);
  for (const std::size_t count : kCounts) every_operation(members, count);
}

SIDES_TEST(Collective, TeamsOfTwoToEight, 8) {
  Team team(side, with_collectives());
  for (std::size_t size = 2; size <= team.peers.size(); size += kSizeStep) {
    if (static_cast<std::size_t>(side.index()) < size) {
      Members members(team, {team.peers.begin(), team.peers.begin() + static_cast<std::ptrdiff_t>(size)});
      ASSERT_EQ(members.joined(), 0);
      for (const std::size_t count : kCountsOfEachTeam) every_operation(members, count);
    }
    team.meet();
  }
}

/// Even sides and odd ones, and all in reverse, at the same time.
SIDES_TEST(Collective, TeamsOverlap, kSides) {
  Team team(side, with_collectives());
  std::vector<fi_addr_t> mine;
  for (std::size_t i = static_cast<std::size_t>(side.index() % 2); i < team.peers.size(); i += 2)
    mine.push_back(team.peers[i]);
  std::vector<fi_addr_t> reversed(team.peers.rbegin(), team.peers.rend());
  Members half(team, mine);
  ASSERT_EQ(half.joined(), 0);
  Members all(team, reversed);
  ASSERT_EQ(all.joined(), 0);
  Members again(team, reversed);
  ASSERT_EQ(again.joined(), 0);
  for (const std::size_t count : {1, 3000, 20000}) {
    every_operation(half, count);
    every_operation(all, count);
    every_operation(again, count);
  }
}

SIDES_TEST(Collective, ManyAreUnderWayAtOnce, kSides) {
  constexpr std::size_t kAtOnce = 40;
  Team team(side, with_collectives());
  Members members(team, all_of(team));
  ASSERT_EQ(members.joined(), 0);
  for (const std::size_t count : {1, 4000}) {
    std::vector<Numbers> results(kAtOnce, Numbers(count));
    const Numbers own = numbers(members.self(), count);
    int marks[kAtOnce];
    for (std::size_t i = 0; i < kAtOnce; ++i) {
      const std::size_t root = i % members.size();
      if (i % 2 == 1 && members.self() == root) results[i] = own;
      team.endpoint.must([&] {
        return i % 2 == 0 ? fi_allreduce(members.ep(), own.data(), count, nullptr, results[i].data(), nullptr,
                                         members.coll_addr(), FI_INT64, FI_SUM, 0, &marks[i])
                          : fi_broadcast(members.ep(), results[i].data(), count, nullptr, members.coll_addr(),
                                         members.address(root), FI_INT64, 0, &marks[i]);
      });
    }
    for (int& mark : marks) team.endpoint.finish(&mark);
    for (std::size_t i = 0; i < kAtOnce; ++i) {
      EXPECT_EQ(results[i], i % 2 == 0 ? sum_of(members.size(), count) : numbers(i % members.size(), count))
          << i;
    }
  }
}

/// A receive from any sender with any tag gets messages of the application, and nothing else.
SIDES_TEST(Collective, NoReceiveOfTheApplicationGetsAMessageOfATeam, kSides) {
  Team team(side, with_collectives());
  Members members(team, all_of(team));
  ASSERT_EQ(members.joined(), 0);
  Blob tagged(8);
  Blob untagged(8);
  int tagged_mark = 0;
  int untagged_mark = 0;
  team.endpoint.must([&] {
    return fi_trecv(members.ep(), tagged.data(), tagged.size(), nullptr, FI_ADDR_UNSPEC, 0, ~0ull,
                    &tagged_mark);
  });
  team.endpoint.must([&] {
    return fi_recv(members.ep(), untagged.data(), untagged.size(), nullptr, FI_ADDR_UNSPEC, &untagged_mark);
  });
  every_operation(members, 1);
  every_operation(members, 3000);
  const auto next = static_cast<std::size_t>(side.index() + 1) % team.peers.size();
  const Blob word(8, 7);
  int sent[2];
  team.endpoint.must([&] {
    return fi_tsend(members.ep(), word.data(), word.size(), nullptr, team.peers[next], 5, &sent[0]);
  });
  team.endpoint.must(
      [&] { return fi_send(members.ep(), word.data(), word.size(), nullptr, team.peers[next], &sent[1]); });
  EXPECT_EQ(team.endpoint.finish(&tagged_mark).entry.tag, 5u);
  team.endpoint.finish(&untagged_mark);
  EXPECT_EQ(tagged, word);
  EXPECT_EQ(untagged, word);
  for (int& mark : sent) team.endpoint.finish(&mark);
}

template <typename Value>
void check_reduction(Members& members, fi_datatype type, fi_op op,
                     const std::function<Value(Value, Value)>& combine) {
  const auto value_of = [](std::size_t member, std::size_t i) {
    return static_cast<Value>(static_cast<double>((member * 5 + i * 3) % 7));
  };
  constexpr std::size_t kCount = 9;
  std::vector<Value> own(kCount);
  std::vector<Value> result(kCount);
  for (std::size_t i = 0; i < kCount; ++i) own[i] = value_of(members.self(), i);
  members.run([&](void* context) {
    return fi_allreduce(members.ep(), own.data(), kCount, nullptr, result.data(), nullptr,
                        members.coll_addr(), type, op, 0, context);
  });
  for (std::size_t i = 0; i < kCount; ++i) {
    Value expected = value_of(0, i);
    for (std::size_t member = 1; member < members.size(); ++member)
      expected = combine(expected, value_of(member, i));
    EXPECT_EQ(result[i], expected) << "type " << type << ", operation " << op << ", element " << i;
  }
}

template <typename Value>
void check_order_and_sums(Members& members, fi_datatype type) {
  check_reduction<Value>(members, type, FI_SUM, [](Value a, Value b) { return static_cast<Value>(a + b); });
  check_reduction<Value>(members, type, FI_PROD, [](Value a, Value b) { return static_cast<Value>(a * b); });
  check_reduction<Value>(members, type, FI_MIN, [](Value a, Value b) { return std::min(a, b); });
  check_reduction<Value>(members, type, FI_MAX, [](Value a, Value b) { return std::max(a, b); });
}

template <typename Value>
void check_integers(Members& members, fi_datatype type) {
  check_order_and_sums<Value>(members, type);
  check_reduction<Value>(members, type, FI_BOR, [](Value a, Value b) { return static_cast<Value>(a | b); });
  check_reduction<Value>(members, type, FI_BAND, [](Value a, Value b) { return static_cast<Value>(a & b); });
  check_reduction<Value>(members, type, FI_BXOR, [](Value a, Value b) { return static_cast<Value>(a ^ b); });
  check_reduction<Value>(members, type, FI_LOR, [](Value a, Value b) { return static_cast<Value>(a || b); });
  check_reduction<Value>(members, type, FI_LAND, [](Value a, Value b) { return static_cast<Value>(a && b); });
}

SIDES_TEST(Collective, EveryReductionOnEveryType, kSides) {
  Team team(side, with_collectives());
  Members members(team, all_of(team));
  ASSERT_EQ(members.joined(), 0);
  check_integers<std::int8_t>(members, FI_INT8);
  check_integers<std::uint8_t>(members, FI_UINT8);
  check_integers<std::int16_t>(members, FI_INT16);
  check_integers<std::uint16_t>(members, FI_UINT16);
  check_integers<std::int32_t>(members, FI_INT32);
  check_integers<std::uint32_t>(members, FI_UINT32);
  check_integers<std::int64_t>(members, FI_INT64);
  check_integers<std::uint64_t>(members, FI_UINT64);
  check_order_and_sums<float>(members, FI_FLOAT);
  check_order_and_sums<double>(members, FI_DOUBLE);
  check_order_and_sums<long double>(members, FI_LONG_DOUBLE);
  using Complex = std::complex<double>;
  check_reduction<Complex>(members, FI_DOUBLE_COMPLEX, FI_SUM, [](Complex a, Complex b) { return a + b; });
}

SINGLE_TEST(Collective, QueryTellsWhatThereIs) {
  Endpoint e(with_collectives());
  fid_domain* const domain = e.domain().domain();
  fi_collective_attr attributes{};
  attributes.op = FI_NOOP;
  attributes.datatype = FI_VOID;
  EXPECT_EQ(fi_query_collective(domain, FI_BARRIER, &attributes, 0), 0);
  EXPECT_GE(attributes.max_members, 1000u);
  attributes.datatype = FI_DOUBLE;
  EXPECT_EQ(fi_query_collective(domain, FI_BROADCAST, &attributes, 0), 0);
  EXPECT_EQ(attributes.datatype_attr.size, sizeof(double));
  EXPECT_GT(attributes.datatype_attr.count, std::size_t{1} << 30);
  attributes.op = FI_SUM;
  for (const fi_collective_op each : {FI_ALLREDUCE, FI_REDUCE, FI_REDUCE_SCATTER})
    EXPECT_EQ(fi_query_collective(domain, each, &attributes, 0), 0) << each;
  attributes.op = FI_BXOR;
  EXPECT_EQ(fi_query_collective(domain, FI_ALLREDUCE, &attributes, 0), -FI_EOPNOTSUPP);
  attributes.op = FI_CSWAP;
  EXPECT_EQ(fi_query_collective(domain, FI_ALLREDUCE, &attributes, 0), -FI_EOPNOTSUPP);
}

SINGLE_TEST(Collective, ATeamOfOneWorks) {
  Team team(side, with_collectives());
  Members members(team, all_of(team));
  ASSERT_EQ(members.joined(), 0);
  for (const std::size_t count : {0, 1, 100000}) every_operation(members, count);
}

SINGLE_TEST(Collective, WhatCannotBeIsRefused) {
  Team team(side, with_collectives());
  Members members(team, all_of(team));
  ASSERT_EQ(members.joined(), 0);
  std::int64_t value = 0;
  EXPECT_EQ(fi_barrier(members.ep(), FI_ADDR_NOTAVAIL, nullptr), -FI_EINVAL);
  EXPECT_EQ(fi_barrier(members.ep(), 77, nullptr), -FI_EINVAL) << "no address of a team";
  EXPECT_EQ(fi_barrier2(members.ep(), members.coll_addr(), FI_REMOTE_CQ_DATA, nullptr), -FI_EBADFLAGS);
  EXPECT_EQ(fi_broadcast(members.ep(), &value, 1, nullptr, members.coll_addr(), 77, FI_INT64, 0, nullptr),
            -FI_EINVAL);
  EXPECT_EQ(fi_broadcast(members.ep(), nullptr, 1, nullptr, members.coll_addr(), members.address(0), FI_INT64,
                         0, nullptr),
            -FI_EINVAL);
  EXPECT_EQ(fi_allreduce(members.ep(), &value, 1, nullptr, &value, nullptr, members.coll_addr(), FI_INT64,
                         FI_CSWAP, 0, nullptr),
            -FI_EOPNOTSUPP);
  EXPECT_EQ(fi_allreduce(members.ep(), &value, 1, nullptr, &value, nullptr, members.coll_addr(), FI_DOUBLE,
                         FI_BXOR, 0, nullptr),
            -FI_EOPNOTSUPP);
  EXPECT_EQ(fi_allgather(members.ep(), &value, 1, nullptr, &value, nullptr, members.coll_addr(), FI_VOID, 0,
                         nullptr),
            -FI_EOPNOTSUPP);
  EXPECT_EQ(fi_broadcast(members.ep(), &value, SIZE_MAX / 8, nullptr, members.coll_addr(), members.address(0),
                         FI_INT64, 0, nullptr),
            -FI_EMSGSIZE);
  Endpoint plain;
  fid_mc* mc = nullptr;
  EXPECT_EQ(fi_join_collective(plain.ep(), FI_ADDR_NOTAVAIL, nullptr, 0, &mc, nullptr), -FI_EOPNOTSUPP);
  EXPECT_EQ(fi_barrier(plain.ep(), 0, nullptr), -FI_ENOSYS);
}

SINGLE_TEST(Collective, AJoinNeedsItselfAmongKnownMembers) {
  Team team(side, with_collectives());
  const auto join = [&](const std::vector<fi_addr_t>& addresses) {
    fi_av_set_attr attributes{};
    attributes.start_addr = attributes.end_addr = FI_ADDR_NOTAVAIL;
    fid_av_set* set = nullptr;
    EXPECT_EQ(fi_av_set(team.endpoint.domain().av(), &attributes, &set, nullptr), 0);
    const Owned<fid_av_set> owned(set);
    for (const fi_addr_t address : addresses) EXPECT_EQ(fi_av_set_insert(set, address), 0);
    fid_mc* mc = nullptr;
    return fi_join_collective(team.endpoint.ep(), FI_ADDR_NOTAVAIL, set, 0, &mc, nullptr);
  };
  Blob other = team.endpoint.name();
  ++other[3];  // another port
  const fi_addr_t unknown = team.endpoint.insert(other);
  EXPECT_EQ(join({}), -FI_EINVAL);
  EXPECT_EQ(join({unknown}), -FI_EINVAL) << "this endpoint is none of them";
  fid_mc* mc = nullptr;
  EXPECT_EQ(fi_join_collective(team.endpoint.ep(), FI_ADDR_NOTAVAIL, nullptr, 0, &mc, nullptr), -FI_EINVAL);
}

SINGLE_TEST(Collective, SetsAreSets) {
  Endpoint e(with_collectives());
  fid_av* const av = e.domain().av();
  Blob name = e.name();
  std::vector<fi_addr_t> all;
  for (int i = 0; i < 6; ++i) {
    ++name[3];  // another port each
    all.push_back(e.insert(name));
  }
  const auto open = [&](fi_addr_t first, fi_addr_t last, std::uint64_t stride, std::uint64_t flags) {
    fi_av_set_attr attributes{};
    attributes.start_addr = first;
    attributes.end_addr = last;
    attributes.stride = stride;
    attributes.flags = flags;
    fid_av_set* set = nullptr;
    EXPECT_EQ(fi_av_set(av, &attributes, &set, nullptr), 0);
    return Owned<fid_av_set>(set);
  };
  const auto even = open(0, 5, 2, 0);
  const auto universe = open(FI_ADDR_NOTAVAIL, FI_ADDR_NOTAVAIL, 0, FI_UNIVERSE);
  const auto none = open(FI_ADDR_NOTAVAIL, FI_ADDR_NOTAVAIL, 0, 0);
  EXPECT_EQ(fi_av_set_insert(even.get(), all[0]), -FI_EINVAL) << "it is there already";
  EXPECT_EQ(fi_av_set_remove(even.get(), all[1]), -FI_EINVAL) << "it is not there";
  EXPECT_EQ(fi_av_set_union(none.get(), even.get()), 0);
  for (const fi_addr_t each : {all[0], all[2], all[4]}) EXPECT_EQ(fi_av_set_remove(none.get(), each), 0);
  EXPECT_EQ(fi_av_set_diff(universe.get(), even.get()), 0);
  for (const fi_addr_t each : {all[1], all[3], all[5]}) EXPECT_EQ(fi_av_set_insert(none.get(), each), 0);
  EXPECT_EQ(fi_av_set_intersect(universe.get(), none.get()), 0);
  for (const fi_addr_t each : {all[1], all[3], all[5]}) EXPECT_EQ(fi_av_set_remove(universe.get(), each), 0);
  EXPECT_EQ(fi_av_set_remove(universe.get(), all[1]), -FI_EINVAL);
}

}  // namespace
}  // namespace conformance
