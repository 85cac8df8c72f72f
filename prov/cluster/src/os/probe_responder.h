// The probe responder answers "is anybody there?" while the process computes and nobody polls its endpoints,
// so that a peer lost in thought is not taken for dead. It shares no state with any engine: probes
// are steered to a socket of their own (UdpPort), answered, and that is all it does.
//
// One thread for all endpoints of the process, asleep unless a probe comes. It may be running while
// static destructors run, so everything it touches is immortal. A forked child has no such thread:
// what the child inherits it only closes.
#pragma once

#include <memory>

#include "base/log.h"
#include "os/udp_port.h"

namespace cluster::os {

/// The endpoint is answered for until the handle is dropped, which waits until the probe responder has let go
/// of it. Null if there can be no responder (the log says why): the endpoint works without, but looks
/// dead to its peers when it does not poll for longer than their timeout.
std::shared_ptr<void> start_probe_responder(std::shared_ptr<UdpPort> port, Log& log);

}  // namespace cluster::os
