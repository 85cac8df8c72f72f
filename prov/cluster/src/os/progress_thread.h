// The one thread that the provider keeps running in the background. It runs clients while the application
// computes. The client of an engine, for example, sends acknowledgements and serves peers. The client of a
// keep-alive responder (os/keep_alive_responder.h) shows peers that the process is alive. A client is one
// function. Each call of the function does the work that is possible without waiting, and returns the time of
// the next call.
//
// No client may block, because the thread answers keep-alives for the whole process. If another thread holds
// the lock of an engine, the engine's client returns at once and runs again later. The first client starts
// the thread. The thread may still run while static destructors run, so no object that it uses is ever
// destroyed. A forked child does not have this thread. Dropping handles of the parent has no effect in the
// child, and the first client of the child starts a new thread.
#pragma once

#include <functional>
#include <memory>

#include "base/log.h"
#include "base/units.h"

namespace cluster::os {

/// When a client must run again: after a time, or as soon as a descriptor is readable.
struct NextWake {
  static constexpr Duration kUntilReadable = Duration::max();

  Duration after = kUntilReadable;
  int descriptor = -1;  ///< must stay open until the next call of the client; -1 if only the time matters
};

/// Runs `run` on the background thread until the caller drops the returned handle. Dropping the handle waits
/// until a running call has returned. If the thread cannot start, returns null and sets `error` to an errno.
std::shared_ptr<void> start_progress_client(std::function<NextWake()> run, int& error);

/// Makes the background thread run a client now, before the client is due. `client` is the pointer in the
/// client's handle. The handle must exist until this function returns. Never waits for a running client, so a
/// client or an engine may call it. Does nothing in a forked child.
void hurry_progress_client(void* client);

}  // namespace cluster::os
