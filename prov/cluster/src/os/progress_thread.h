// The progress thread looks after engines that nobody polls. An application may take its message and turn to
// something else for a second or an hour; the acknowledgement it owes, and whatever its peers have
// asked, must not wait so long. One thread for all engines of the process. It never waits at an engine's
// door, and keeps out of the way while the application polls by itself: each visit says when the next one
// is due, and whether the engine's descriptor may call it earlier.
#pragma once

#include <functional>
#include <memory>

#include "base/log.h"
#include "base/units.h"

namespace cluster::os {

/// What a visit finds: how long the progress thread may stay away.
struct NextWake {
  Duration length;
  bool listening = false;  ///< it comes at once when the engine's descriptor becomes readable

  static constexpr Duration kUntilReadable = Duration::max();
};

struct Client {
  std::function<NextWake()> visit;
  std::function<int()> descriptor;  ///< asked when a visit wants to listen; -1 if there is none
};

/// Visits until the handle is dropped (which waits for a visit under way). Null if there can be no thread
/// (the log says why).
std::shared_ptr<void> start_progress_client(Client ward, Log& log);

}  // namespace cluster::os
