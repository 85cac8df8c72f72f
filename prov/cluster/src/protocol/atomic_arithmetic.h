// The arithmetic of remote atomic operations: every operation on every type that has it, element by
// element, on memory that may have any alignment.
//
// The caller holds the lock of the region table, which excludes every other access of this provider to
// registered memory of the domain. Aligned elements of up to eight bytes are also changed by the processor's
// atomic instructions, so that they are atomic for the application's instructions and for other processes
// that have the memory mapped.
#pragma once

#include <cstddef>

#include "base/bytes.h"
#include "wire/atomic.h"

namespace cluster::protocol {

/// True if the type has this operation: bits and masks are for integers, order is not for complex numbers.
bool supported(wire::AtomicOp op, wire::AtomicType type);

/// One part of an operation that is supported: `bytes` of `target`, a multiple of the element's size.
/// `operands` and `comparands` are as long if the operation has them; the previous values go to `before`.
struct AtomicPart {
  std::byte* target;
  const std::byte* operands;
  const std::byte* comparands;
  std::byte* before;
  std::size_t bytes;
};
void perform(const wire::AtomicCode& code, const AtomicPart& part);

/// True for the operations that make one value of two, in any order: min to bxor.
inline bool combines(wire::AtomicOp op) { return op <= wire::AtomicOp::bxor; }
/// `target` op= `source`, element by element, of an operation that combines(), on memory that is the caller's
/// alone: without the processor's atomic instructions.
void combine(wire::AtomicOp op, wire::AtomicType type, std::byte* target, ConstBytes source);

}  // namespace cluster::protocol
