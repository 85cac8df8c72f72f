#include "protocol/atomic_arithmetic.h"

#include <array>
#include <atomic>
#include <bit>
#include <cmath>
#include <complex>
#include <concepts>
#include <cstring>
#include <functional>
#include <limits>

namespace cluster::protocol {
namespace {

__extension__ using Int128 = __int128;
__extension__ using UInt128 = unsigned __int128;

template <typename Value>
concept Integer = std::integral<Value> || std::same_as<Value, Int128> || std::same_as<Value, UInt128>;
template <typename Value>
concept Ordered = Integer<Value> || std::floating_point<Value>;

/// The type in which values are added and multiplied. Integer results must wrap around, but the overflow of a
/// signed type is undefined in C++. Therefore the type for integers is unsigned. It has at least 64 bits,
/// because C++ promotes short unsigned integers to a signed type.
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
bool is_number(Value value) {
  if constexpr (std::floating_point<Value>) return !std::isnan(value);
  return true;
}

template <typename Value>
Value truth(bool value) {
  return value ? Value{1} : Value{};
}

// Each function computes the new value from the old value `there`, the operand and the comparand. The
// constraint of a function says for which types the operation exists. The result of min and max is NaN if
// either value is NaN. Members of a team may combine the same values in different orders, and this rule makes
// their results agree.
constexpr auto kMin = []<Ordered V>(V there, V operand, V) {
  return operand < there || !is_number(operand) ? operand : there;
};
constexpr auto kMax = []<Ordered V>(V there, V operand, V) {
  return operand > there || !is_number(operand) ? operand : there;
};
constexpr auto kSum = []<typename V>(V there, V operand, V) {
  return static_cast<V>(modular(there) + modular(operand));
};
constexpr auto kProd = []<typename V>(V there, V operand, V) {
  return static_cast<V>(modular(there) * modular(operand));
};
constexpr auto kLogicalOr = []<typename V>(V there, V operand, V) {
  return truth<V>(holds(there) || holds(operand));
};
constexpr auto kLogicalAnd = []<typename V>(V there, V operand, V) {
  return truth<V>(holds(there) && holds(operand));
};
constexpr auto kLogicalXor = []<typename V>(V there, V operand, V) {
  return truth<V>(holds(there) != holds(operand));
};
constexpr auto kBitOr = []<Integer V>(V there, V operand, V) { return static_cast<V>(there | operand); };
constexpr auto kBitAnd = []<Integer V>(V there, V operand, V) { return static_cast<V>(there & operand); };
constexpr auto kBitXor = []<Integer V>(V there, V operand, V) { return static_cast<V>(there ^ operand); };
constexpr auto kRead = []<typename V>(V there, V, V) { return there; };
constexpr auto kWrite = []<typename V>(V, V operand, V) { return operand; };
template <typename Compare>
constexpr auto kSwapIf = []<typename V>(V there, V operand,
                                        V comparand) requires std::predicate<Compare, V, V> {
  return Compare{}(comparand, there) ? operand : there;
};
constexpr auto kSwapMasked = []<Integer V>(V there, V operand, V mask) {
  return static_cast<V>((operand & mask) | (there & ~mask));
};

template <typename Value>
Value load(const std::byte* from) {
  Value value;
  std::memcpy(&value, from, sizeof value);
  return value;
}

/// Returns an unsigned integer of `size` bytes if the processor has atomic instructions for that size.
/// Otherwise the return type is void.
template <std::size_t size>
auto bits_of() {
  if constexpr (size == 1) return std::uint8_t{};
  if constexpr (size == 2) return std::uint16_t{};
  if constexpr (size == 4) return std::uint32_t{};
  if constexpr (size == 8) return std::uint64_t{};
}

/// Replaces the value at `place` by change(value), unless `changes` is false. Returns the previous value.
template <typename Value, bool changes, typename Change>
Value exchange(std::byte* place, Change&& change) {
  using Bits = decltype(bits_of<sizeof(Value)>());
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
  constexpr bool changes = !std::same_as<const Operation, decltype(kRead)>;
  for (std::size_t at = 0; at < part.bytes; at += sizeof(Value)) {
    const Value operand = part.operands != nullptr ? load<Value>(part.operands + at) : Value{};
    const Value comparand = part.comparands != nullptr ? load<Value>(part.comparands + at) : Value{};
    const Value was = exchange<Value, changes>(
        part.target + at, [&](Value there) { return Operation{}(there, operand, comparand); });
    std::memcpy(part.before + at, &was, sizeof was);
  }
}

template <typename Operation, typename Value>
void combine_elements(std::byte* target, ConstBytes source) {
  for (std::size_t at = 0; at < source.size(); at += sizeof(Value)) {
    const Value value = Operation{}(load<Value>(target + at), load<Value>(source.data() + at), Value{});
    std::memcpy(target + at, &value, sizeof value);
  }
}

struct ElementFunctions {
  void (*perform)(const AtomicPart&) = nullptr;
  void (*combine)(std::byte* target, ConstBytes source) = nullptr;
};
using Row = std::array<ElementFunctions, wire::kAtomicTypes>;

template <typename Operation, typename Value>
consteval ElementFunctions function_for() {
  if constexpr (std::invocable<Operation, Value, Value, Value>) {
    return {each_element<Operation, Value>, combine_elements<Operation, Value>};
  } else {
    return {};
  }
}

template <typename Operation, typename... Values>
consteval Row row_of() {
  return {function_for<Operation, Values>()...};
}

/// Returns the functions of one operation, one for each type in the order of wire::AtomicType.
template <typename Operation>
consteval Row row(Operation) {
  return row_of<Operation, std::int8_t, std::uint8_t, std::int16_t, std::uint16_t, std::int32_t,
                std::uint32_t, std::int64_t, std::uint64_t, float, double, std::complex<float>,
                std::complex<double>, long double, std::complex<long double>, Int128, UInt128>();
}

static_assert(std::numeric_limits<float>::is_iec559 && sizeof(std::complex<long double>) == 32);

/// One row for each operation, in the order of wire::AtomicOp.
constexpr std::array<Row, wire::kAtomicOps> kTable = {
    row(kMin),
    row(kMax),
    row(kSum),
    row(kProd),
    row(kLogicalOr),
    row(kLogicalAnd),
    row(kBitOr),
    row(kBitAnd),
    row(kLogicalXor),
    row(kBitXor),
    row(kRead),
    row(kWrite),
    row(kSwapIf<std::equal_to<>>),
    row(kSwapIf<std::not_equal_to<>>),
    row(kSwapIf<std::less_equal<>>),
    row(kSwapIf<std::less<>>),
    row(kSwapIf<std::greater_equal<>>),
    row(kSwapIf<std::greater<>>),
    row(kSwapMasked),
};

const ElementFunctions& entry(wire::AtomicOp op, wire::AtomicType type) {
  return kTable[static_cast<std::size_t>(op)][static_cast<std::size_t>(type)];
}

}  // namespace

bool supported(wire::AtomicOp op, wire::AtomicType type) { return entry(op, type).perform != nullptr; }

void perform(const wire::AtomicCode& code, const AtomicPart& part) {
  entry(code.op, code.type).perform(part);
}

void combine(wire::AtomicOp op, wire::AtomicType type, std::byte* target, ConstBytes source) {
  entry(op, type).combine(target, source);
}

}  // namespace cluster::protocol
