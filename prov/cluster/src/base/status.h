// Why something did not work: the causes that rooms below api/ can name. api/ turns them into
// libfabric's error numbers.
#pragma once

namespace cluster {

enum class Status {
  ok,
  again,           ///< no room now; works again after progress
  too_big,         ///< longer than allowed
  bad_address,     ///< the address handle names nobody
  truncated,       ///< the message was longer than the receive
  canceled,        ///< by the application
  no_message,      ///< a peek found nothing
  unreachable,     ///< nothing answers there within the bound
  refused,         ///< the host is there, the endpoint is not
  reset,           ///< the peer went away or began a new life
  unknown_source,  ///< the message is here, but its sender is in no address vector
  access,          ///< no such region there, or not so many bytes, or not for this kind of access
};

/// A few words for logs: "peer unreachable", "message truncated"...
const char* describe(Status status);

}  // namespace cluster
