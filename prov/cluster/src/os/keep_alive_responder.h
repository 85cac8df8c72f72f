// Answers keep-alives ("is this process alive?") for one endpoint while its application computes, so that a
// busy peer is not taken for a dead one. Keep-alives are steered to a socket of their own (os/udp_port.h); the
// background thread (os/progress_thread.h) answers them without looking at the endpoint's engine.
#pragma once

#include <array>
#include <functional>
#include <memory>
#include <span>

#include "base/log.h"
#include "os/udp_port.h"

namespace cluster::os {

/// Writes the answer to a frame that came to `asked`, an address of ours, and returns how long it is; 0: the
/// frame is no keep-alive. Called by the background thread.
using KeepAliveAnswerer =
    std::function<std::size_t(ConstBytes frame, const SocketAddress& asked, std::span<std::byte, 64> answer)>;
/// Answers what carries a checksum.
std::size_t answer_plain_keep_alive(ConstBytes frame, const SocketAddress& asked,
                                    std::span<std::byte, 64> answer);

/// Keep-alives of the port are answered until the handle is dropped. Null if that is not possible (the log
/// says why): the endpoint works without, but looks dead to its peers when its application makes no call
/// for longer than their timeout.
std::shared_ptr<void> start_keep_alive_responder(std::shared_ptr<UdpPort> port, Log& log,
                                                 KeepAliveAnswerer answerer = answer_plain_keep_alive);

}  // namespace cluster::os
