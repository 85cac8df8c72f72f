// The arithmetic of remote atomic operations: every operation on every type that has it, element by
// element, on memory that may have any alignment.
//
// Whoever calls holds the lock of the regions (regions.h), which excludes every other way in which
// this provider touches registered memory of the domain. Elements of up to eight bytes that are
// aligned are changed by the processor's own atomic instructions besides, so that they are atomic
// for the application's instructions, too, and for whoever else has the memory mapped.
#pragma once

#include <cstddef>

#include "wire/atomic.h"

namespace cluster::protocol {

/// Has the type this operation? Bits and masks are for integers, order is not for complex numbers.
bool supported(wire::AtomicOp op, wire::AtomicType type);

/// One part of an operation that is supported: `bytes` of `target`, a multiple of the element's size.
/// `operands` and `comparands` are as long if the operation has them; what was there goes to `before`.
struct AtomicPart {
  std::byte* target;
  const std::byte* operands;
  const std::byte* comparands;
  std::byte* before;
  std::size_t bytes;
};
void perform(const wire::AtomicCode& code, const AtomicPart& part);

}  // namespace cluster::protocol
