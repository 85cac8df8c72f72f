// What messages contain: bytes that follow from the message's number, so that a receiver
// can identify a message and check that every byte is where it belongs.
#pragma once

#include <cstdint>

#include "base/bytes.h"

namespace cluster::sim {

using MessageNumber = std::uint64_t;  ///< counts from 1 through a run

/// From so many bytes on a message begins with its number.
inline constexpr std::size_t kNumberedFrom = sizeof(MessageNumber);

void fill_content(MessageNumber number, Bytes out);
/// What the first bytes say; `content` holds at least kNumberedFrom.
MessageNumber number_in(ConstBytes content);
/// The first byte that is not what it should be, or content.size(). `content` begins with byte `from` of
/// the message.
std::size_t first_wrong_byte(MessageNumber number, ConstBytes content, std::size_t from = 0);

}  // namespace cluster::sim
