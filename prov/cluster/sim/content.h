// What messages contain: bytes that follow from the message's number, so that a receiver
// can identify a message and check that every byte is where it belongs.
#pragma once

#include <cstdint>

#include "base/bytes.h"

namespace cluster::sim {

using MessageNumber = std::uint64_t;  ///< counts from 1 through a run

/// A message of at least so many bytes begins with its number.
inline constexpr std::size_t kNumberedFrom = sizeof(MessageNumber);

void fill_content(MessageNumber number, Bytes out);
/// Returns the number at the beginning of `content`, which must have at least kNumberedFrom bytes.
MessageNumber number_in(ConstBytes content);
/// Returns the index of the first wrong byte in `content`, or content.size() if all are right. `content`
/// begins with byte `from` of the message.
std::size_t first_wrong_byte(MessageNumber number, ConstBytes content, std::size_t from = 0);

}  // namespace cluster::sim
