// Seals keep-alives and their answers. Both are sealed with a key of the job, because the keep-alive
// responder does not have the associations of the endpoint.
//
// The tag is an HMAC over the mode, the header, the counter, and the address to which the keep-alive is sent.
// A process answers only a keep-alive whose tag fits its own address. So no other process of the job answers
// a keep-alive that somebody has diverted to it. The answer repeats the counter of the keep-alive. Each
// keep-alive has a new counter, so a recorded answer is useless. The tag does not cover the padding, which
// nobody reads.
#pragma once

#include <array>
#include <cstdint>
#include <span>

#include "base/address.h"
#include "seal/job_key.h"
#include "wire/frame.h"

namespace cluster::seal {

/// Seals a keep-alive or its answer. `asked`: address to which the keep-alive is sent. Sets the tag in
/// `trailer`. The caller must have set the counter in `trailer`.
void seal_keep_alive(const JobKey& key, Mode mode, const wire::FrameHeader& header,
                     const SocketAddress& asked, wire::SealTrailer& trailer);
bool verify_keep_alive(const JobKey& key, Mode mode, const wire::FrameHeader& header,
                       const SocketAddress& asked, const wire::SealTrailer& trailer);

using KeepAliveAnswer = std::array<std::byte, sizeof(wire::FrameHeader) + sizeof(wire::SealTrailer)>;

/// Creates the answer to `frame`, which has arrived at our address `asked`. Returns false if the frame is not
/// a keep-alive of the job.
bool answer_keep_alive(const Credentials& credentials, ConstBytes frame, const SocketAddress& asked,
                       KeepAliveAnswer& answer);

}  // namespace cluster::seal
