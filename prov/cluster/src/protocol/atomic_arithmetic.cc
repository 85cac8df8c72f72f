#include "protocol/atomic_arithmetic.h"

#include <array>
#include <atomic>
#include <bit>
#include <complex>
#include <concepts>
#include <cstring>
#include <limits>

namespace cluster::protocol {
namespace {

__extension__ using Int128 = __int128;
__extension__ using UInt128 = unsigned __int128;

template <typename Value>
concept Integer = std::integral<Value> || std::same_as<Value, Int128> || std::same_as<Value, UInt128>;
template <typename Value>
concept Ordered = Integer<Value> || std::floating_point<Value>;

/// Integers wrap around: they are added and multiplied without a sign, in a width that never promotes.
template <typename Value>
struct Modular {
  using Type = Value;
};
template <Integer Value>
struct Modular<Value> {
  using Type = std::conditional_t<(sizeof(Value) > 8), UInt128, std::uint64_t>;
};
template <typename Value>
typename Modular<Value>::Type modular(Value value) {
  return static_cast<typename Modular<Value>::Type>(value);
}

template <typename Value>
bool holds(Value value) {
  return value != Value{};
}
template <typename Value>
Value truth(bool value) {
  return value ? Value{1} : Value{};
}

// What is there, the operand and the comparand make what will be there. The constraint says which
// types have the operation.
struct Min {
  template <Ordered V>
  V operator()(V there, V operand, V) const {
    return operand < there ? operand : there;
  }
};
struct Max {
  template <Ordered V>
  V operator()(V there, V operand, V) const {
    return operand > there ? operand : there;
  }
};
struct Sum {
  template <typename V>
  V operator()(V there, V operand, V) const {
    return static_cast<V>(modular(there) + modular(operand));
  }
};
struct Prod {
  template <typename V>
  V operator()(V there, V operand, V) const {
    return static_cast<V>(modular(there) * modular(operand));
  }
};
struct LogicalOr {
  template <typename V>
  V operator()(V there, V operand, V) const {
    return truth<V>(holds(there) || holds(operand));
  }
};
struct LogicalAnd {
  template <typename V>
  V operator()(V there, V operand, V) const {
    return truth<V>(holds(there) && holds(operand));
  }
};
struct LogicalXor {
  template <typename V>
  V operator()(V there, V operand, V) const {
    return truth<V>(holds(there) != holds(operand));
  }
};
struct BitOr {
  template <Integer V>
  V operator()(V there, V operand, V) const {
    return static_cast<V>(there | operand);
  }
};
struct BitAnd {
  template <Integer V>
  V operator()(V there, V operand, V) const {
    return static_cast<V>(there & operand);
  }
};
struct BitXor {
  template <Integer V>
  V operator()(V there, V operand, V) const {
    return static_cast<V>(there ^ operand);
  }
};
struct Read {
  template <typename V>
  V operator()(V there, V, V) const {
    return there;
  }
};
struct Write {
  template <typename V>
  V operator()(V, V operand, V) const {
    return operand;
  }
};
struct SwapEqual {
  template <typename V>
  V operator()(V there, V operand, V comparand) const {
    return comparand == there ? operand : there;
  }
};
struct SwapNotEqual {
  template <typename V>
  V operator()(V there, V operand, V comparand) const {
    return comparand != there ? operand : there;
  }
};
struct SwapLessEqual {
  template <Ordered V>
  V operator()(V there, V operand, V comparand) const {
    return comparand <= there ? operand : there;
  }
};
struct SwapLess {
  template <Ordered V>
  V operator()(V there, V operand, V comparand) const {
    return comparand < there ? operand : there;
  }
};
struct SwapGreaterEqual {
  template <Ordered V>
  V operator()(V there, V operand, V comparand) const {
    return comparand >= there ? operand : there;
  }
};
struct SwapGreater {
  template <Ordered V>
  V operator()(V there, V operand, V comparand) const {
    return comparand > there ? operand : there;
  }
};
struct SwapMasked {
  template <Integer V>
  V operator()(V there, V operand, V mask) const {
    return static_cast<V>((operand & mask) | (there & ~mask));
  }
};

template <typename Value>
Value load(const std::byte* from) {
  Value value;
  std::memcpy(&value, from, sizeof value);
  return value;
}

/// The unsigned integer of that size, for which the processor has atomic instructions; void: none.
template <std::size_t size>
struct BitsOf {
  using Type = void;
};
template <>
struct BitsOf<1> {
  using Type = std::uint8_t;
};
template <>
struct BitsOf<2> {
  using Type = std::uint16_t;
};
template <>
struct BitsOf<4> {
  using Type = std::uint32_t;
};
template <>
struct BitsOf<8> {
  using Type = std::uint64_t;
};

/// Replaces the value by change(value), and returns the previous one.
template <typename Value, bool changes, typename Change>
Value exchange(std::byte* place, Change&& change) {
  using Bits = typename BitsOf<sizeof(Value)>::Type;
  if constexpr (!std::is_void_v<Bits>) {
    if (reinterpret_cast<std::uintptr_t>(place) % sizeof(Bits) == 0) {
      const std::atomic_ref bits(*reinterpret_cast<Bits*>(place));
      Bits was = bits.load(std::memory_order_acquire);
      if constexpr (changes) {
        while (!bits.compare_exchange_weak(was, std::bit_cast<Bits>(change(std::bit_cast<Value>(was))))) {
        }
      }
      return std::bit_cast<Value>(was);
    }
  }
  const auto was = load<Value>(place);
  if constexpr (changes) {
    const Value now = change(was);
    std::memcpy(place, &now, sizeof now);
  }
  return was;
}

template <typename Operation, typename Value>
void each_element(const AtomicPart& part) {
  constexpr bool changes = !std::same_as<Operation, Read>;
  for (std::size_t at = 0; at < part.bytes; at += sizeof(Value)) {
    const Value operand = part.operands != nullptr ? load<Value>(part.operands + at) : Value{};
    const Value comparand = part.comparands != nullptr ? load<Value>(part.comparands + at) : Value{};
    const Value was = exchange<Value, changes>(
        part.target + at, [&](Value there) { return Operation{}(there, operand, comparand); });
    std::memcpy(part.before + at, &was, sizeof was);
  }
}

using Function = void (*)(const AtomicPart&);
using Row = std::array<Function, wire::kAtomicTypes>;

template <typename Operation, typename Value>
consteval Function function_for() {
  if constexpr (std::invocable<Operation, Value, Value, Value>) {
    return each_element<Operation, Value>;
  } else {
    return nullptr;
  }
}

template <typename Operation, typename... Values>
consteval Row row_of() {
  return {function_for<Operation, Values>()...};
}

/// In the order of wire::AtomicType.
template <typename Operation>
consteval Row row() {
  return row_of<Operation, std::int8_t, std::uint8_t, std::int16_t, std::uint16_t, std::int32_t,
                std::uint32_t, std::int64_t, std::uint64_t, float, double, std::complex<float>,
                std::complex<double>, long double, std::complex<long double>, Int128, UInt128>();
}

static_assert(std::numeric_limits<float>::is_iec559 && sizeof(std::complex<long double>) == 32);

/// In the order of wire::AtomicOp.
constexpr std::array<Row, wire::kAtomicOps> kTable = {
    row<Min>(),
    row<Max>(),
    row<Sum>(),
    row<Prod>(),
    row<LogicalOr>(),
    row<LogicalAnd>(),
    row<BitOr>(),
    row<BitAnd>(),
    row<LogicalXor>(),
    row<BitXor>(),
    row<Read>(),
    row<Write>(),
    row<SwapEqual>(),
    row<SwapNotEqual>(),
    row<SwapLessEqual>(),
    row<SwapLess>(),
    row<SwapGreaterEqual>(),
    row<SwapGreater>(),
    row<SwapMasked>(),
};

Function entry(wire::AtomicOp op, wire::AtomicType type) {
  return kTable[static_cast<std::size_t>(op)][static_cast<std::size_t>(type)];
}

}  // namespace

bool supported(wire::AtomicOp op, wire::AtomicType type) { return entry(op, type) != nullptr; }

void perform(const wire::AtomicCode& code, const AtomicPart& part) { entry(code.op, code.type)(part); }

}  // namespace cluster::protocol
