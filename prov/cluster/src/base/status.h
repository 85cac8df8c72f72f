// The result of an operation, or the reason why it failed, in all components below api/. api/ turns it into
// libfabric's error numbers.
#pragma once

namespace cluster {

enum class Status {
  ok,
  again,           ///< no resources now; try again after progress
  too_big,         ///< longer than allowed
  bad_address,     ///< the handle is not in the address vector
  truncated,       ///< the message was longer than the receive
  canceled,        ///< by the application
  no_message,      ///< a peek found nothing
  unreachable,     ///< no carrier leads there, no answer within the timeout, or an ICMP error
  refused,         ///< the host answers, but no endpoint has that port
  reset,           ///< the peer closed or restarted
  ended,           ///< the peer's process has ended: its kernel says so
  exhausted,       ///< the peer, on this node, has no free descriptor for the connection
  stuck,           ///< the peer's process exists, but its endpoint does not answer
  unknown_source,  ///< a message arrived whose sender is not in the address vector
  access,          ///< the peer has no such region, or it is too short or not registered for this access
  no_memory,       ///< this process has no memory for the peer's data, or an unknown peer holds too much
};

/// A few words for logs: "peer unreachable", "message truncated"...
const char* describe(Status status);

}  // namespace cluster
