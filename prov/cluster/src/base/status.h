// A Status is the result of an operation: success, or the reason for the failure. api/ translates a Status to
// libfabric's error numbers.
#pragma once

namespace cluster {

enum class Status {
  ok,
  again,        ///< there are no resources now; try again after progress
  too_big,      ///< the message is longer than allowed
  bad_address,  ///< the handle is not in the address vector
  /// The message was longer than the receive, or did not have the length that a collective operation expects.
  truncated,
  canceled,    ///< canceled by the application, or because a connection, group or team has ended
  no_message,  ///< a peek or a claim found no message
  /// No transport reaches the peer, the peer did not answer within the timeout, an ICMP error says that the
  /// peer's host or network is unreachable, or a group lacks multicast.
  unreachable,
  refused,         ///< no endpoint has that port, or the peer has refused the connection or message
  prohibited,      ///< a firewall, of this host or another, refuses frames to the peer
  translated,      ///< the peer refuses this endpoint, because a router has changed this endpoint's address
  reset,           ///< the peer has closed or restarted, or its ring is broken
  ended,           ///< the kernel on the peer's node reports that the peer's process has ended
  exhausted,       ///< the peer, on this node, has no free file descriptor for the ring
  stuck,           ///< the endpoint of an existing process, or a member of a group, does not answer
  unknown_source,  ///< a message arrived whose sender is not in the address vector
  /// The peer has no such region, or the region is too short or not registered for this access.
  access,
  /// This process has no memory for the operation or for the peer's data, or a peer outside the address
  /// vector uses too much memory.
  no_memory,
  overrun,  ///< completions were lost because there was no memory for them
};

/// Returns a few words for the log, such as "peer unreachable" or "message truncated".
const char* describe(Status status);

}  // namespace cluster
