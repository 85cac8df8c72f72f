// What an endpoint has under way, for cluster-info: each operation with its peer, its age and what it waits for.
//
// Operations are not dated when they are posted, which would cost each message something. note() dates all that it
// has not seen before, each time the engine looks for idle peers (some times a second while anything is under
// way); so an age is that much too short, and an operation younger than that has none. The lists are in the order
// of posting, so note() looks at new ones only.
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
  std::size_t length = 0;  ///< of a receive without a message: of its buffer
  std::size_t done = 0;    ///< bytes that have left, or arrived
  bool tagged = false;
  std::uint64_t tag = 0;
  Time noted{};                ///< Time{}: it is new
  const char* waits_for = "";  ///< what the peer is to do: "to answer it"
};

/// A message that no receive has matched.
struct StoredMessage {
  SocketAddress peer;
  std::size_t length = 0;
  bool tagged = false;
  std::uint64_t tag = 0;
};

/// The first of them, at most so many.
void collect(const Matcher& matcher, std::vector<StoredMessage>& into, std::size_t most);
/// Receives that have no message yet.
void note(const Matcher& matcher, Time now);
void collect(const Matcher& matcher, std::vector<PendingOperation>& into);
/// Everything else that is under way with one peer.
void note(Channel& channel, Time now);
void collect(const Channel& channel, std::vector<PendingOperation>& into);

}  // namespace cluster::protocol
