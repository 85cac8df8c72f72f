// Lists the operations that an endpoint has in progress, for the program cluster-info. The list says of each
// operation which peer it concerns, how old it is, and what it waits for.
//
// The functions that post operations do not read the clock, because that would slow down each message.
// Instead, note() writes the time into all operations that it has not seen before. The engine calls note() a
// few times a second while an operation is in progress. Therefore the listed age of an operation may be too
// short, by at most the time between two calls. An operation that note() has not seen has no age. Most lists
// of operations are in the order of posting. note() visits such a list from the end, and stops at the first
// operation that it has seen before.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "base/address.h"
#include "base/units.h"
#include "protocol/channel.h"
#include "protocol/matcher.h"

namespace cluster::protocol {

struct PendingOperation {
  const char* kind = "";   ///< "send", "receive", "write"...
  SocketAddress peer;      ///< empty: any
  std::size_t length = 0;  ///< for a receive without a message: length of its buffer
  std::size_t done = 0;    ///< bytes that have been posted, or have arrived
  bool tagged = false;
  std::uint64_t tag = 0;
  Time noted{};                ///< Time{}: the operation is new
  const char* waits_for = "";  ///< what the peer has to do, such as "to answer it"
};

/// A message that no receive has matched.
struct StoredMessage {
  SocketAddress peer;
  std::size_t length = 0;
  bool tagged = false;
  std::uint64_t tag = 0;
};

/// Appends messages that no receive has matched to `into`, until `into` has `most` entries. The messages are
/// in the order of arrival, one queue after the other.
void collect(const Matcher& matcher, std::vector<StoredMessage>& into, std::size_t most);
/// Sets `noted` to `now` in each posted receive that has no message yet and was not noted before.
void note(const Matcher& matcher, Time now);
void collect(const Matcher& matcher, std::vector<PendingOperation>& into);
/// These two functions do the same for all other operations in progress with one peer.
void note(Channel& channel, Time now);
void collect(const Channel& channel, std::vector<PendingOperation>& into);

}  // namespace cluster::protocol
