// Answers keep-alives ("is this process alive?") for one endpoint while its application computes. Without a
// responder, peers would mistake a busy process for a dead process. The kernel steers keep-alives to a
// separate socket (os/udp_port.h). The background thread (os/progress_thread.h) answers these keep-alives
// without the endpoint's engine.
#pragma once

#include <array>
#include <functional>
#include <memory>

#include "base/log.h"
#include "os/udp_port.h"

namespace cluster::os {

/// The space for an answer.
inline constexpr std::size_t kKeepAliveAnswerMax = 96;
/// Writes to `answer`, which has kKeepAliveAnswerMax bytes, the answer to a frame that a peer sent to
/// `asked`, an address of this endpoint. Returns the length of the answer, or 0 if the frame is not a
/// keep-alive. The background thread calls this function.
using KeepAliveAnswerer =
    std::function<std::size_t(ConstBytes frame, const SocketAddress& asked, Bytes answer)>;
/// A KeepAliveAnswerer for keep-alives that carry a checksum and no seal.
std::size_t answer_plain_keep_alive(ConstBytes frame, const SocketAddress& asked, Bytes answer);

/// Makes the background thread answer the keep-alives of the port until the caller drops the returned handle.
/// If that is not possible, returns null and writes the reason to the log. The endpoint works without a
/// responder, but its peers consider the endpoint dead if the application makes no call for longer than the
/// peers' timeout.
std::shared_ptr<void> start_keep_alive_responder(std::shared_ptr<UdpPort> port, Log& log,
                                                 KeepAliveAnswerer answerer = answer_plain_keep_alive);

}  // namespace cluster::os
