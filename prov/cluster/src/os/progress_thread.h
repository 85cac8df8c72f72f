// The one background thread of the process. It runs clients: every engine, so that acknowledgements leave and
// peers are served while the application computes; every keep-alive responder (os/keep_alive_responder.h), so
// that peers see a live process; every report server. A client is one function. Each call of it does what can
// be done now, and returns the time of the next call.
//
// The thread answers keep-alives for the whole process, so no client may block: an engine whose lock is taken
// asks to be run again later. The first client starts the thread. The thread may still run while static
// destructors do, so nothing that it touches is ever destroyed. A forked child has no such thread: dropping
// handles of the parent has no effect there, and its own first client starts its own thread.
#pragma once

#include <functional>
#include <memory>

#include "base/log.h"
#include "base/units.h"

namespace cluster::os {

/// When a client wants to run again: after a time, or as soon as a descriptor is readable.
struct NextWake {
  static constexpr Duration kUntilReadable = Duration::max();

  Duration after = kUntilReadable;
  int descriptor = -1;  ///< open until the client's next call; -1: only the time counts
};

/// Runs `run` on the background thread until the handle is dropped; dropping it waits for a call in progress.
/// Returns null, with an errno in `error`, if the thread cannot start.
std::shared_ptr<void> start_progress_client(std::function<NextWake()> run, int& error);

}  // namespace cluster::os
