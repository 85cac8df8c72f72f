// The arithmetic of remote atomics: every supported() operation, element by element, at any alignment.
//
// The caller of perform() must hold the lock of the region table. The lock excludes every other access that
// this process makes to the domain's registered memory on behalf of peers. For aligned elements of up to
// eight bytes, perform() uses the processor's atomic instructions. Therefore operations on such elements are
// also atomic with respect to the application's atomic instructions, and to other processes that have mapped
// the memory.
#pragma once

#include <cstddef>

#include "base/bytes.h"
#include "wire/atomic.h"

namespace cluster::protocol {

/// Returns true if the operation exists for this type. Bitwise operations and masked swaps need integers.
/// Operations that compare by order do not exist for complex numbers.
bool supported(wire::AtomicOp op, wire::AtomicType type);

/// One part of an operation that is supported(). The part covers `bytes` bytes at `target`; `bytes` is a
/// multiple of the element's size. Each of the arrays `operands` and `comparands` has `bytes` bytes, or is
/// null if the operation does not use it. perform() stores the previous values at `before`.
struct AtomicPart {
  std::byte* target;
  const std::byte* operands;
  const std::byte* comparands;
  std::byte* before;
  std::size_t bytes;
};
void perform(const wire::AtomicCode& code, const AtomicPart& part);

/// Returns true for the operations from min to bxor. These operations combine two values into one, and the
/// order of the two values does not matter.
inline bool combines(wire::AtomicOp op) { return op <= wire::AtomicOp::bxor; }
/// Combines each element of `source` into the same element of `target`. combines(op) must be true. Uses no
/// atomic instructions, so no other thread or process must access the memory at the same time.
void combine(wire::AtomicOp op, wire::AtomicType type, std::byte* target, ConstBytes source);

}  // namespace cluster::protocol
