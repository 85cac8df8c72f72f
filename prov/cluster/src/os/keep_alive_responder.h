// Answers keep-alives ("is this process alive?") for one endpoint while its application computes, so that
// peers do not take a busy process for a dead one. The kernel steers keep-alives to a socket of their own
// (os/udp_port.h). The background thread (os/progress_thread.h) answers them without looking at the
// endpoint's engine.
#pragma once

#include <array>
#include <functional>
#include <memory>
#include <span>

#include "base/log.h"
#include "os/udp_port.h"

namespace cluster::os {

/// Writes the answer to a frame that came to `asked`, an address of ours. Returns the length of the answer; 0
/// if the frame is no keep-alive. The background thread calls it.
using KeepAliveAnswerer =
    std::function<std::size_t(ConstBytes frame, const SocketAddress& asked, std::span<std::byte, 64> answer)>;
/// Answers keep-alives that carry a checksum.
std::size_t answer_plain_keep_alive(ConstBytes frame, const SocketAddress& asked,
                                    std::span<std::byte, 64> answer);

/// Answers the keep-alives of the port until the handle is dropped. Returns null if that is not possible; the
/// log says why. The endpoint works without it, but looks dead to its peers when its application makes no
/// call for longer than their timeout.
std::shared_ptr<void> start_keep_alive_responder(std::shared_ptr<UdpPort> port, Log& log,
                                                 KeepAliveAnswerer answerer = answer_plain_keep_alive);

}  // namespace cluster::os
