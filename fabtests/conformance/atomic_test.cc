// Remote atomics: which operations exist for which type, that they do what fi_atomic(3) says, that nothing is lost when
// many sides change one element, and that forbidden memory stays untouched.
#include <rdma/fi_atomic.h>
#include <rdma/fi_rma.h>

#include <algorithm>
#include <complex>
#include <numeric>

#include "fabric.h"

namespace conformance {
namespace {

constexpr std::uint64_t kAtomicKey = 0x8000000000000021;
constexpr std::size_t kElements = 1024;

Options atomic_options() {
  Options options;
  options.caps = FI_MSG | FI_RMA | FI_ATOMIC | FI_DIRECTED_RECV;
  return options;
}

/// Elements of this side that the others may change.
struct SharedValues {
  explicit SharedValues(Team& team, std::uint64_t access = FI_REMOTE_READ | FI_REMOTE_WRITE)
      : values(kElements) {
    std::iota(values.begin(), values.end(), 100);
    fid_mr* opened = nullptr;
    EXPECT_EQ(fi_mr_reg(team.endpoint.domain().domain(), values.data(), values.size() * 8, access, 0,
                        kAtomicKey, 0, &opened, nullptr),
              0);
    region.reset(opened);
    team.meet();
  }
  std::vector<std::int64_t> values;
  Owned<fid_mr> region;
};

bool has(int type, int op, char form, fid_ep* ep, std::size_t& count) {
  const auto datatype = static_cast<fi_datatype>(type);
  const auto operation = static_cast<fi_op>(op);
  const int result = form == 'b'   ? fi_atomicvalid(ep, datatype, operation, &count)
                     : form == 'f' ? fi_fetch_atomicvalid(ep, datatype, operation, &count)
                                   : fi_compare_atomicvalid(ep, datatype, operation, &count);
  EXPECT_TRUE(result == 0 || result == -FI_EOPNOTSUPP) << result;
  return result == 0;
}

SINGLE_TEST(Atomic, WhatIsOfferedIsTheWholeTable) {
  Endpoint e(atomic_options());
  constexpr int kOps = FI_MSWAP + 8;
  constexpr int kTypes = FI_UINT128 + 8;
  for (int type = -1; type < kTypes; ++type) {
    const bool known = type >= FI_INT8 && type <= FI_UINT128;
    const bool complex =
        type == FI_FLOAT_COMPLEX || type == FI_DOUBLE_COMPLEX || type == FI_LONG_DOUBLE_COMPLEX;
    const bool real = type == FI_FLOAT || type == FI_DOUBLE || type == FI_LONG_DOUBLE;
    for (int op = -1; op < kOps; ++op) {
      SCOPED_TRACE(testing::Message() << "type " << type << " op " << op);
      const bool bits = op == FI_BOR || op == FI_BAND || op == FI_BXOR || op == FI_MSWAP;
      const bool order = op == FI_MIN || op == FI_MAX || (op >= FI_CSWAP_LE && op <= FI_CSWAP_GT);
      const bool exists =
          known && op >= FI_MIN && op <= FI_MSWAP && !(bits && (real || complex)) && !(order && complex);
      const bool compares = op >= FI_CSWAP;
      for (const char form : {'b', 'f', 'c'}) {
        const bool offered = exists && compares == (form == 'c') && !(form == 'b' && op == FI_ATOMIC_READ);
        std::size_t count = 0;
        EXPECT_EQ(has(type, op, form, e.ep(), count), offered);
        fi_atomic_attr attributes{};
        const std::uint64_t flags = form == 'f' ? FI_FETCH_ATOMIC : form == 'c' ? FI_COMPARE_ATOMIC : 0;
        const int queried = fi_query_atomic(e.domain().domain(), static_cast<fi_datatype>(type),
                                            static_cast<fi_op>(op), &attributes, flags);
        EXPECT_EQ(queried == 0, offered);
        if (!offered) continue;
        EXPECT_EQ(attributes.count, count);
        EXPECT_GE(count * attributes.size, 512u);
      }
    }
  }
}

template <typename Value>
void combine(Endpoint& e, fi_addr_t peer, fi_datatype type, fi_op op, Value there, Value operand,
             Value result) {
  SCOPED_TRACE(testing::Message() << "type " << type << " op " << op);
  int context = 0;
  constexpr std::size_t kCount = 9;  // more than one part of the larger types
  std::vector<Value> initial(kCount, there), operands(kCount, operand), before(kCount), after(kCount);
  e.must([&] {
    return fi_atomic(e.ep(), initial.data(), kCount, nullptr, peer, 32, kAtomicKey, type, FI_ATOMIC_WRITE,
                     &context);
  });
  EXPECT_EQ(e.finish(&context).entry.flags, FI_ATOMIC | FI_WRITE);
  e.must([&] {
    return fi_fetch_atomic(e.ep(), operands.data(), kCount, nullptr, before.data(), nullptr, peer, 32,
                           kAtomicKey, type, op, &context);
  });
  EXPECT_EQ(e.finish(&context).entry.flags, FI_ATOMIC | FI_READ);
  e.must([&] {
    return fi_fetch_atomic(e.ep(), nullptr, kCount, nullptr, after.data(), nullptr, peer, 32, kAtomicKey,
                           type, FI_ATOMIC_READ, &context);
  });
  e.finish(&context);
  for (std::size_t i = 0; i < kCount; ++i) {
    EXPECT_TRUE(before[i] == there) << i;
    EXPECT_TRUE(after[i] == result) << i;
  }
}

PAIR_TEST(Atomic, CombinesAndFetchesEveryType) {
  Team team(side, atomic_options());
  SharedValues shared(team);
  if (side.first()) {
    Endpoint& e = team.endpoint;
    const fi_addr_t peer = team.peer();
    combine<std::int8_t>(e, peer, FI_INT8, FI_SUM, 100, 100, -56);
    combine<std::uint8_t>(e, peer, FI_UINT8, FI_MAX, 100, 200, 200);
    combine<std::int16_t>(e, peer, FI_INT16, FI_MIN, 3, -3, -3);
    combine<std::uint16_t>(e, peer, FI_UINT16, FI_PROD, 65535, 65535, 1);
    combine<std::int32_t>(e, peer, FI_INT32, FI_BAND, 12, 10, 8);
    combine<std::uint32_t>(e, peer, FI_UINT32, FI_LAND, 12, 0, 0);
    combine<std::int64_t>(e, peer, FI_INT64, FI_BOR, 12, 3, 15);
    combine<std::uint64_t>(e, peer, FI_UINT64, FI_BXOR, ~0ull, 1, ~1ull);
    combine<float>(e, peer, FI_FLOAT, FI_LXOR, 2.5f, 0, 1);
    combine<double>(e, peer, FI_DOUBLE, FI_SUM, 1.5, -4, -2.5);
    combine<long double>(e, peer, FI_LONG_DOUBLE, FI_MIN, 1.5L, -4, -4);
    combine<std::complex<float>>(e, peer, FI_FLOAT_COMPLEX, FI_PROD, {0, 1}, {0, 1}, {-1, 0});
    combine<std::complex<double>>(e, peer, FI_DOUBLE_COMPLEX, FI_SUM, {1, 2}, {3, 4}, {4, 6});
    combine<std::complex<long double>>(e, peer, FI_LONG_DOUBLE_COMPLEX, FI_LOR, {0, 0}, {0, 1}, {1, 0});
    __extension__ typedef unsigned __int128 Wide;
    const Wide high = Wide{1} << 100;
    combine<Wide>(e, peer, FI_UINT128, FI_SUM, high - 1, 1, high);
  }
  team.meet();
}

PAIR_TEST(Atomic, ComparesBeforeItSwaps) {
  Team team(side, atomic_options());
  SharedValues shared(team);
  Endpoint& e = team.endpoint;
  int context = 0;
  const struct {
    fi_op op;
    std::int64_t compare, result;
  } cases[] = {{FI_CSWAP, 100, 7},    {FI_CSWAP, 99, 100},     {FI_CSWAP_NE, 99, 7},  {FI_CSWAP_NE, 100, 100},
               {FI_CSWAP_LE, 100, 7}, {FI_CSWAP_LE, 101, 100}, {FI_CSWAP_LT, 99, 7},  {FI_CSWAP_LT, 100, 100},
               {FI_CSWAP_GE, 100, 7}, {FI_CSWAP_GE, 99, 100},  {FI_CSWAP_GT, 101, 7}, {FI_CSWAP_GT, 100, 100},
               {FI_MSWAP, 6, 102}};  // 100 is 1100100: of the bits 110, those of 7
  for (const auto& [op, compare, result] : cases) {
    if (side.first()) {
      const std::int64_t operand = 7;
      const std::int64_t comparand = compare;  // the library may read it until the operation is complete
      std::int64_t before = 0;
      e.must([&, op = op] {
        return fi_compare_atomic(e.ep(), &operand, 1, nullptr, &comparand, nullptr, &before, nullptr,
                                 team.peer(), 0, kAtomicKey, FI_INT64, op, &context);
      });
      e.finish(&context);
      EXPECT_EQ(before, 100) << op << " " << compare;
    }
    team.meet();
    if (!side.first()) {
      EXPECT_EQ(shared.values[0], result) << op << " " << compare;
    }
    shared.values[0] = 100;
    team.meet();
  }
}

PAIR_TEST(Atomic, VectorsRangesAndInjection) {
  Team team(side, atomic_options());
  SharedValues shared(team);
  Endpoint& e = team.endpoint;
  int context = 0;
  if (side.first()) {
    std::int64_t operands[] = {1, 2, 3};
    std::int64_t before[3] = {};
    const fi_ioc vector[] = {{operands, 1}, {operands + 1, 2}};
    fi_ioc results[] = {{before, 2}, {before + 2, 1}};
    const fi_rma_ioc ranges[] = {{80, 2, kAtomicKey}, {8, 1, kAtomicKey}};
    fi_msg_atomic message{vector, nullptr, 2, team.peer(), ranges, 2, FI_INT64, FI_SUM, &context, 0};
    e.must(
        [&] { return fi_fetch_atomicmsg(e.ep(), &message, results, nullptr, 2, FI_COMPLETION | FI_INJECT); });
    operands[0] = operands[1] = operands[2] = 1000;
    e.finish(&context);
    EXPECT_EQ(before[0], 110);
    EXPECT_EQ(before[1], 111);
    EXPECT_EQ(before[2], 101);
    operands[0] = 50;
    e.must([&] {
      return fi_inject_atomic(e.ep(), operands, 1, team.peer(), 160, kAtomicKey, FI_INT64, FI_SUM);
    });
    operands[0] = 0;
    // A fenced read comes behind it.
    fi_ioc result{before, 1};
    const fi_rma_ioc one{160, 1, kAtomicKey};
    message = {nullptr, nullptr, 0, team.peer(), &one, 1, FI_INT64, FI_ATOMIC_READ, &context, 0};
    e.must(
        [&] { return fi_fetch_atomicmsg(e.ep(), &message, &result, nullptr, 1, FI_COMPLETION | FI_FENCE); });
    e.finish(&context);
    EXPECT_EQ(before[0], 170);
    EXPECT_TRUE(e.silent(std::chrono::milliseconds(20))) << "an injected operation generates no completion";
    std::vector<std::int64_t> many(kElements, 1);
    EXPECT_EQ(
        fi_atomic(e.ep(), many.data(), 513, nullptr, team.peer(), 0, kAtomicKey, FI_INT64, FI_SUM, &context),
        -FI_EMSGSIZE);
    EXPECT_EQ(fi_inject_atomic(e.ep(), many.data(), 129, team.peer(), 0, kAtomicKey, FI_INT64, FI_SUM),
              -FI_EINVAL);
    EXPECT_EQ(
        fi_atomic(e.ep(), many.data(), 1, nullptr, team.peer(), 0, kAtomicKey, FI_FLOAT, FI_BOR, &context),
        -FI_EOPNOTSUPP);
    e.must([&] {
      return fi_atomic(e.ep(), many.data(), 512, nullptr, team.peer(), 512, kAtomicKey, FI_INT64, FI_SUM,
                       &context);
    });
    e.finish(&context);
  }
  team.meet();
  if (!side.first()) {
    EXPECT_EQ(shared.values[10], 111);
    EXPECT_EQ(shared.values[11], 113);
    EXPECT_EQ(shared.values[1], 104);
    EXPECT_EQ(shared.values[20], 170);
    for (std::size_t i = 64; i < kElements; ++i) {
      ASSERT_EQ(shared.values[i], static_cast<std::int64_t>(100 + i + (i < 64 + 512 ? 1 : 0))) << i;
    }
  }
  team.meet();
}

PAIR_TEST(Atomic, ElementsMayLieAnywhere) {
  Team team(side, atomic_options());
  SharedValues shared(team);
  Endpoint& e = team.endpoint;
  if (side.first()) {
    for (std::uint64_t offset = 1; offset < 8; ++offset) {
      const std::uint64_t address = 64 * offset + offset;
      std::int64_t value = 0x0102030405060708, before = 0;
      const auto act = [&](fi_op op) {
        e.must([&] {
          return fi_fetch_atomic(e.ep(), &value, 1, nullptr, &before, nullptr, team.peer(), address,
                                 kAtomicKey, FI_INT64, op, &value);
        });
        e.finish(&value);
      };
      act(FI_ATOMIC_WRITE);
      act(FI_SUM);
      EXPECT_EQ(before, 0x0102030405060708);
      act(FI_ATOMIC_READ);
      EXPECT_EQ(before, 2 * 0x0102030405060708);
    }
  }
  team.meet();
}

SINGLE_TEST(Atomic, QueriesOfTaggedBuffersAndOfBothKindsAreRefused) {
  Domain domain(atomic_options());
  fi_atomic_attr attr{};
  fid_domain* d = domain.domain();
  EXPECT_EQ(fi_query_atomic(d, FI_INT64, FI_SUM, &attr, FI_TAGGED), -FI_EOPNOTSUPP);
  EXPECT_LT(fi_query_atomic(d, FI_INT64, FI_CSWAP, &attr, FI_FETCH_ATOMIC | FI_COMPARE_ATOMIC), 0);
}

PAIR_TEST(Atomic, WhatIsNotAllowedFailsHereAndChangesNothingThere) {
  Team team(side, atomic_options());
  SharedValues shared(team, FI_REMOTE_READ);
  Endpoint& e = team.endpoint;
  int context = 0;
  if (side.first()) {
    std::vector<std::int64_t> operands(512, 9), results(512);
    for (const std::size_t count : {std::size_t{1}, std::size_t{100}, std::size_t{512}}) {
      const auto change = [&](std::uint64_t address, std::uint64_t key) {
        e.must([&] {
          return fi_atomic(e.ep(), operands.data(), count, nullptr, team.peer(), address, key, FI_INT64,
                           FI_SUM, &context);
        });
        e.fail(&context, FI_EACCES);
      };
      const auto fetch = [&](std::uint64_t address, std::uint64_t key, fi_op op) {
        e.must([&] {
          return fi_fetch_atomic(e.ep(), operands.data(), count, nullptr, results.data(), nullptr,
                                 team.peer(), address, key, FI_INT64, op, &context);
        });
        e.fail(&context, FI_EACCES);
      };
      change(0, kAtomicKey);
      change(0, kAtomicKey + 1);
      fetch(0, kAtomicKey, FI_SUM);
      fetch(0, kAtomicKey + 1, FI_ATOMIC_READ);
      fetch(8 * kElements - 8 * count + 8, kAtomicKey, FI_ATOMIC_READ);
      fetch(~0ull - 7, kAtomicKey, FI_ATOMIC_READ);
    }
  }
  team.meet();
  for (std::size_t i = 0; i < kElements; ++i) {
    ASSERT_EQ(shared.values[i], static_cast<std::int64_t>(100 + i));
  }
  team.meet();
}

/// All sides, the owner too, draw tickets from one element of side 0: each ticket is drawn once.
SIDES_TEST(Atomic, ManySidesLoseNothing, 4) {
  Team team(side, atomic_options());
  SharedValues shared(team);
  Endpoint& e = team.endpoint;
  constexpr std::size_t kRounds = 500;
  constexpr std::size_t kWindow = 10;
  const fi_addr_t owner = team.peers[0];
  std::vector<std::int64_t> tickets(kRounds);
  const std::int64_t one = 1;
  for (std::size_t round = 0; round < kRounds; round += kWindow) {
    for (std::size_t i = round; i < round + kWindow; ++i) {
      e.must([&] {
        return fi_fetch_atomic(e.ep(), &one, 1, nullptr, &tickets[i], nullptr, owner, 0, kAtomicKey, FI_INT64,
                               FI_SUM, &tickets[i]);
      });
      e.must([&] { return fi_inject_atomic(e.ep(), &one, 1, owner, 8, kAtomicKey, FI_INT64, FI_SUM); });
    }
    for (std::size_t i = round; i < round + kWindow; ++i) e.finish(&tickets[i]);
  }
  EXPECT_TRUE(std::is_sorted(tickets.begin(), tickets.end())) << "atomics of one side are in order";
  Blob mine(kRounds * sizeof tickets[0]);
  std::memcpy(mine.data(), tickets.data(), mine.size());
  const auto all = side.exchange(mine, [&] { e.progress(); });
  std::vector<std::int64_t> drawn;
  for (const Blob& blob : all) {
    std::vector<std::int64_t> theirs(kRounds);
    std::memcpy(theirs.data(), blob.data(), blob.size());
    drawn.insert(drawn.end(), theirs.begin(), theirs.end());
  }
  std::sort(drawn.begin(), drawn.end());
  for (std::size_t i = 0; i < drawn.size(); ++i) ASSERT_EQ(drawn[i], static_cast<std::int64_t>(100 + i));
  // The injected ones are behind no completion; a fenced read is behind them.
  std::int64_t seen = 0;
  fi_ioc result{&seen, 1};
  const fi_rma_ioc range{8, 1, kAtomicKey};
  const fi_msg_atomic message{nullptr, nullptr, 0, owner, &range, 1, FI_INT64, FI_ATOMIC_READ, &seen, 0};
  e.must([&] { return fi_fetch_atomicmsg(e.ep(), &message, &result, nullptr, 1, FI_COMPLETION | FI_FENCE); });
  e.finish(&seen);
  team.meet();
  if (side.first()) {
    EXPECT_EQ(shared.values[1], static_cast<std::int64_t>(101 + 4 * kRounds));
  }
  team.meet();
}

/// A lock made of compare-and-swap guards a plain element that is read and written remotely.
SIDES_TEST(Atomic, ALockKeepsOthersOut, 3) {
  Team team(side, atomic_options());
  SharedValues shared(team);
  Endpoint& e = team.endpoint;
  constexpr int kRounds = 50;
  const fi_addr_t owner = team.peers[0];
  int context = 0;
  std::int64_t before = 0;
  const std::int64_t open = 100;
  const std::int64_t mine = side.index() + 1;
  for (int round = 0; round < kRounds; ++round) {
    do {
      e.must([&] {
        return fi_compare_atomic(e.ep(), &mine, 1, nullptr, &open, nullptr, &before, nullptr, owner, 0,
                                 kAtomicKey, FI_INT64, FI_CSWAP, &context);
      });
      e.finish(&context);
    } while (before != open);
    std::int64_t value = 0;
    e.must([&] { return fi_read(e.ep(), &value, 8, nullptr, owner, 8, kAtomicKey, &context); });
    e.finish(&context);
    ++value;
    e.must([&] { return fi_write(e.ep(), &value, 8, nullptr, owner, 8, kAtomicKey, &context); });
    e.finish(&context);
    e.must([&] {
      return fi_atomic(e.ep(), &open, 1, nullptr, owner, 0, kAtomicKey, FI_INT64, FI_ATOMIC_WRITE, &context);
    });
    e.finish(&context);
  }
  team.meet();
  if (side.first()) {
    EXPECT_EQ(shared.values[1], 101 + 3 * kRounds);
  }
  team.meet();
}

}  // namespace
}  // namespace conformance
