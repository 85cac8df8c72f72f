// The one background thread of the process. It runs the clients that were handed to it: every engine, so
// that acknowledgements leave and peers are served while the application computes; every keep-alive responder
// (os/keep_alive_responder.h), so that peers see a live process; every report server. A client is one function.
// Each call of it does what can be done now and returns when it wants the next one.
//
// The thread answers keep-alives for the whole process, so no client may block: an engine whose lock is taken
// asks to be run again later. The thread is started with the first client, and may still run while static
// destructors do, so nothing it touches is ever destroyed. A forked child has no such thread: handles of
// the parent are dropped there without effect, and the first client of its own starts its own thread.
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

/// Runs `run` on the background thread until the handle is dropped, which waits for a call in progress.
/// Null if there can be no thread; `error` is then an errno.
std::shared_ptr<void> start_progress_client(std::function<NextWake()> run, int& error);

}  // namespace cluster::os
