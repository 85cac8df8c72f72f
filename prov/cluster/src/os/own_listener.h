// Abstract names have no owner: any user of a node can hold one before the process that it is meant for. So a listener
// whose name another user's process holds takes an alternative, the name with a random end; and a process that connects, and finds
// another user behind the name, looks for alternatives in the kernel's table of sockets and takes the first whose
// listener is of its own user. The kernel says whose each is.
//
// A user that holds names and alternatives in masses costs others time: at most kAlternativesMax connections for each
// peer that is met, then the peer is reached otherwise. A name that a process of the same user holds is in use.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

#include "os/local_socket.h"

namespace cluster::os {

inline constexpr std::size_t kAlternativesMax = 1024;

/// A listener under the name or an alternative; on failure an empty one, and `reason` says why.
LocalSocket listen_as_own(std::string_view name, std::string& reason);
/// A connection to the listener of this process's user; on failure an empty one, and `reason` says why. `expected`: a
/// process of this node has that name, so that another user may hold it without listening; else where no process listens
/// there is no alternative. `full`: one that is expected may be a listener whose queue has no place now, which any user can bring about.
LocalSocket connect_to_own(std::string_view name, bool expected, std::string& reason, bool* full = nullptr);

}  // namespace cluster::os
