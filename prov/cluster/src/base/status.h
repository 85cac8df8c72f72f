// The result of an operation: success, or the reason why it failed. All components below api/ use it, and
// api/ translates it to libfabric's error numbers.
#pragma once

namespace cluster {

enum class Status {
  ok,
  again,        ///< there are no resources now; try again after progress
  too_big,      ///< the message is longer than allowed
  bad_address,  ///< the handle is not in the address vector
  truncated,    ///< the message was longer than the receive
  canceled,     ///< canceled by the application, or because a connection, group or team has ended
  no_message,   ///< a peek found nothing
  /// No transport reaches the peer, the peer did not answer within the timeout, or an ICMP error arrived.
  unreachable,
  refused,         ///< no endpoint has that port, or a passive endpoint has refused the connection
  prohibited,      ///< a firewall, of this host or another, refuses frames to the peer
  translated,      ///< the peer refuses this endpoint, because a router has changed this endpoint's address
  reset,           ///< the peer has closed or restarted
  ended,           ///< the kernel on the peer's node reports that the peer's process has ended
  exhausted,       ///< the peer, on this node, has no free file descriptor for the ring
  stuck,           ///< the peer's process exists, but its endpoint does not answer
  unknown_source,  ///< a message arrived whose sender is not in the address vector
  /// The peer has no such region, or the region is too short or not registered for this access.
  access,
  no_memory,  ///< this process has no memory for the peer's data, or an unknown peer uses too much memory
  overrun,    ///< completions were lost because there was no memory for them
};

/// Returns a few words for the log, such as "peer unreachable" or "message truncated".
const char* describe(Status status);

}  // namespace cluster
