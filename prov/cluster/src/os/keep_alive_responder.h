// Answers keep-alives ("is this process alive?") for one endpoint while its application computes, so that a
// busy peer is not taken for a dead one. Keep-alives are steered to a socket of their own (os/udp_port.h); the
// background thread (os/progress_thread.h) answers them without looking at the endpoint's engine.
#pragma once

#include <memory>

#include "base/log.h"
#include "os/udp_port.h"

namespace cluster::os {

/// Keep-alives of the port are answered until the handle is dropped. Null if that is not possible (the log
/// says why): the endpoint works without, but looks dead to its peers when its application makes no call
/// for longer than their timeout.
std::shared_ptr<void> start_keep_alive_responder(std::shared_ptr<UdpPort> port, Log& log);

}  // namespace cluster::os
