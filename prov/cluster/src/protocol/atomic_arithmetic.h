// The arithmetic of remote atomics: every operation on every type that supports it, element by element, at
// any alignment.
//
// The caller holds the lock of the region table, which excludes every other access of this provider to
// registered memory of the domain. For aligned elements of up to eight bytes the code uses the processor's
// atomic instructions. So these elements are also atomic for the application's instructions, and for other
// processes that have mapped the memory.
#pragma once

#include <cstddef>

#include "base/bytes.h"
#include "wire/atomic.h"

namespace cluster::protocol {

/// True if the type has this operation. Bit operations and masks need integers; complex numbers have no
/// order.
bool supported(wire::AtomicOp op, wire::AtomicType type);

/// One part of a supported operation: `bytes` of `target`, a multiple of the element's size. `operands` and
/// `comparands` have the same length if the operation uses them. The previous values go to `before`.
struct AtomicPart {
  std::byte* target;
  const std::byte* operands;
  const std::byte* comparands;
  std::byte* before;
  std::size_t bytes;
};
void perform(const wire::AtomicCode& code, const AtomicPart& part);

/// True for the operations that combine two values into one, in any order: min to bxor.
inline bool combines(wire::AtomicOp op) { return op <= wire::AtomicOp::bxor; }
/// Computes `target` op= `source`, element by element, for an operation that combines(). Uses no atomic
/// instructions, so the memory must belong to the caller alone.
void combine(wire::AtomicOp op, wire::AtomicType type, std::byte* target, ConstBytes source);

}  // namespace cluster::protocol
