// Every operation on every type, against the definitions of fi_atomic(3) written down once more in the
// plainest way; unaligned memory; and threads that change one element together.
#include "protocol/atomic_arithmetic.h"

#include <gtest/gtest.h>

#include <cmath>
#include <complex>
#include <cstring>
#include <limits>
#include <optional>
#include <thread>
#include <vector>

namespace cluster::protocol {
namespace {

using wire::AtomicCode;
using wire::AtomicOp;
using wire::AtomicType;

__extension__ using Int128 = __int128;
__extension__ using UInt128 = unsigned __int128;

template <typename V>
constexpr bool kInteger = std::is_integral_v<V> || std::is_same_v<V, Int128> || std::is_same_v<V, UInt128>;
template <typename V>
constexpr bool kOrdered = kInteger<V> || std::is_floating_point_v<V>;

/// What the manual says will be there; nothing if the type does not have the operation.
template <typename V>
std::optional<V> model(AtomicOp op, V there, V buf, V compare) {
  const V zero{};
  const V one{1};
  switch (op) {
    case AtomicOp::sum:
      if constexpr (kInteger<V>)
        return static_cast<V>(UInt128(there) + UInt128(buf));
      else
        return there + buf;
    case AtomicOp::prod:
      if constexpr (kInteger<V>)
        return static_cast<V>(UInt128(there) * UInt128(buf));
      else
        return there * buf;
    case AtomicOp::lor: return there != zero || buf != zero ? one : zero;
    case AtomicOp::land: return there != zero && buf != zero ? one : zero;
    case AtomicOp::lxor: return (there != zero) != (buf != zero) ? one : zero;
    case AtomicOp::read: return there;
    case AtomicOp::write: return buf;
    case AtomicOp::cswap: return compare == there ? buf : there;
    case AtomicOp::cswap_ne: return compare != there ? buf : there;
    default: break;
  }
  if constexpr (kOrdered<V>) {
    switch (op) {
      case AtomicOp::min: return buf < there ? buf : there;
      case AtomicOp::max: return buf > there ? buf : there;
      case AtomicOp::cswap_le: return compare <= there ? buf : there;
      case AtomicOp::cswap_lt: return compare < there ? buf : there;
      case AtomicOp::cswap_ge: return compare >= there ? buf : there;
      case AtomicOp::cswap_gt: return compare > there ? buf : there;
      default: break;
    }
  }
  if constexpr (kInteger<V>) {
    switch (op) {
      case AtomicOp::bor: return static_cast<V>(there | buf);
      case AtomicOp::band: return static_cast<V>(there & buf);
      case AtomicOp::bxor: return static_cast<V>(there ^ buf);
      case AtomicOp::mswap: return static_cast<V>((buf & compare) | (there & ~compare));
      default: break;
    }
  }
  return std::nullopt;
}

/// Interesting values: both signs, the ends of the range, equal ones, bits on and off.
template <typename V>
std::vector<V> values() {
  if constexpr (kInteger<V>) {
    const V ones = static_cast<V>(~V{});
    const V high = static_cast<V>(V{1} << (sizeof(V) * 8 - 2));
    return {V{0}, V{1}, V{2}, V{5}, V{93}, ones, high, static_cast<V>(ones ^ high)};
  } else {
    return {V(0), V(1), V(-1), V(0.5f), V(3.25f), V(-1024), V(1e10f)};
  }
}

template <typename V>
void check(AtomicType type) {
  ASSERT_EQ(wire::size_of(type), sizeof(V));
  const std::vector<V> all = values<V>();
  for (unsigned number = 0; number < wire::kAtomicOps; ++number) {
    const auto op = static_cast<AtomicOp>(number);
    SCOPED_TRACE(testing::Message() << "operation " << number << " type " << int(type));
    ASSERT_EQ(supported(op, type), model<V>(op, V{}, V{}, V{}).has_value());
    if (!supported(op, type)) continue;
    const AtomicCode code{op, type, true};
    for (const std::size_t shift : {std::size_t{0}, std::size_t{1}}) {  // aligned and not
      for (const V& there : all) {
        for (const V& buf : all) {
          alignas(32) std::byte memory[4 * sizeof(V) + 1];
          std::memset(memory, 0x5A, sizeof memory);
          std::vector<V> operands, compares;
          for (std::size_t i = 0; i < 3; ++i) {
            std::memcpy(memory + shift + i * sizeof(V), &there, sizeof there);
            operands.push_back(buf);
            compares.push_back(all[(i * 3 + number) % all.size()]);
          }
          V before[3];
          perform(code, {memory + shift,
                         code.operands() > 0 ? reinterpret_cast<std::byte*>(operands.data()) : nullptr,
                         code.operands() > 1 ? reinterpret_cast<std::byte*>(compares.data()) : nullptr,
                         reinterpret_cast<std::byte*>(before), 3 * sizeof(V)});
          for (std::size_t i = 0; i < 3; ++i) {
            V now;
            std::memcpy(&now, memory + shift + i * sizeof(V), sizeof now);
            ASSERT_TRUE(now == *model<V>(op, there, buf, compares[i]));
            ASSERT_TRUE(before[i] == there);
          }
          for (std::size_t i = 0; i < shift; ++i) ASSERT_EQ(memory[i], std::byte{0x5A});
          for (std::size_t i = shift + 3 * sizeof(V); i < sizeof memory; ++i)
            ASSERT_EQ(memory[i], std::byte{0x5A});
        }
      }
    }
  }
}

TEST(Atomics, Int8) { check<std::int8_t>(AtomicType::int8); }
TEST(Atomics, UInt8) { check<std::uint8_t>(AtomicType::uint8); }
TEST(Atomics, Int16) { check<std::int16_t>(AtomicType::int16); }
TEST(Atomics, UInt16) { check<std::uint16_t>(AtomicType::uint16); }
TEST(Atomics, Int32) { check<std::int32_t>(AtomicType::int32); }
TEST(Atomics, UInt32) { check<std::uint32_t>(AtomicType::uint32); }
TEST(Atomics, Int64) { check<std::int64_t>(AtomicType::int64); }
TEST(Atomics, UInt64) { check<std::uint64_t>(AtomicType::uint64); }
TEST(Atomics, Int128) { check<Int128>(AtomicType::int128); }
TEST(Atomics, UInt128) { check<UInt128>(AtomicType::uint128); }
TEST(Atomics, Float) { check<float>(AtomicType::float32); }
TEST(Atomics, Double) { check<double>(AtomicType::float64); }
TEST(Atomics, LongDouble) { check<long double>(AtomicType::float_long); }
TEST(Atomics, ComplexFloat) { check<std::complex<float>>(AtomicType::complex32); }
TEST(Atomics, ComplexDouble) { check<std::complex<double>>(AtomicType::complex64); }
TEST(Atomics, ComplexLongDouble) { check<std::complex<long double>>(AtomicType::complex_long); }

/// A swap that compared bytes would tell -0 from 0, and take a NaN for equal to itself.
TEST(Atomics, SwapsOfFloatingPointCompareValues) {
  const auto swapped = [](double there, double compare) {
    double target = there;
    double before = 0;
    const double with = 7;
    perform(
        AtomicCode{AtomicOp::cswap, AtomicType::float64, true},
        {reinterpret_cast<std::byte*>(&target), reinterpret_cast<const std::byte*>(&with),
         reinterpret_cast<const std::byte*>(&compare), reinterpret_cast<std::byte*>(&before), sizeof target});
    return target == with;
  };
  const double nan = std::numeric_limits<double>::quiet_NaN();
  EXPECT_TRUE(swapped(0.0, -0.0));
  EXPECT_TRUE(swapped(-0.0, 0.0));
  EXPECT_FALSE(swapped(nan, nan));
  EXPECT_FALSE(swapped(1.0, nan));
}

/// Two members of a team combine their values each in its own order.
TEST(Atomics, LeastAndMostDoNotDependOnTheOrderEvenIfOneIsNoNumber) {
  const auto combined = [](AtomicOp op, double there, double operand) {
    combine(op, AtomicType::float64, reinterpret_cast<std::byte*>(&there),
            {reinterpret_cast<const std::byte*>(&operand), sizeof operand});
    return there;
  };
  const double nan = std::numeric_limits<double>::quiet_NaN();
  for (const AtomicOp op : {AtomicOp::min, AtomicOp::max}) {
    EXPECT_TRUE(std::isnan(combined(op, nan, 1.0)));
    EXPECT_TRUE(std::isnan(combined(op, 1.0, nan)));
    EXPECT_EQ(combined(op, 1.0, 2.0), combined(op, 2.0, 1.0));
  }
}

TEST(Atomics, AlignedElementsAreAtomicWithoutAnyLock) {
  constexpr int kRounds = 20000;
  alignas(8) double total = 0;
  const auto add = [&] {
    const double one = 1;
    double before;
    for (int i = 0; i < kRounds; ++i) {
      perform({AtomicOp::sum, AtomicType::float64, true},
              {reinterpret_cast<std::byte*>(&total), reinterpret_cast<const std::byte*>(&one), nullptr,
               reinterpret_cast<std::byte*>(&before), sizeof total});
    }
  };
  std::thread other(add);
  add();
  other.join();
  EXPECT_EQ(total, 2.0 * kRounds);
}

}  // namespace
}  // namespace cluster::protocol
