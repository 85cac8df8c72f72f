// The attendant looks after engines that nobody polls. An application may take its message and turn
// to something else for a second or an hour; the acknowledgement it owes, and whatever its peers
// have asked, must not wait so long. One thread for all engines of the process; it never waits at an
// engine's door, and does nothing but look while the application polls by itself.
#pragma once

#include <functional>
#include <memory>

#include "base/log.h"

namespace cluster::os {

/// Calls `visit` every now and then until the handle is dropped (which waits for a visit under way):
/// soon again if it returns true (something is owed), at leisure otherwise. Null if there can be no
/// thread (the log says why).
std::shared_ptr<void> start_attendant(std::function<bool()> visit, Log& log);

}  // namespace cluster::os
