// Seals keep-alives and their answers. The keep-alive responder knows no associations of the endpoint: it has
// only the keys of the job.
//
// The tag is an HMAC over mode, header, counter, and the address that was asked. So only the process that was
// asked can answer, and only if this side's frame has reached it. The answer repeats the counter of the
// question, which is new each time, so a recorded answer is worthless. The tag does not cover the padding,
// and nothing reads the padding.
#pragma once

#include <array>
#include <cstdint>
#include <span>

#include "base/address.h"
#include "seal/job_key.h"
#include "wire/frame.h"

namespace cluster::seal {

/// `asked` is the address of the endpoint that the keep-alive asks.
void seal_keep_alive(const JobKey& key, Mode mode, const wire::FrameHeader& header,
                     const SocketAddress& asked, wire::SealTrailer& trailer);
bool verify_keep_alive(const JobKey& key, Mode mode, const wire::FrameHeader& header,
                       const SocketAddress& asked, const wire::SealTrailer& trailer);

using KeepAliveAnswer = std::array<std::byte, sizeof(wire::FrameHeader) + sizeof(wire::SealTrailer)>;

/// Makes the answer to `frame`, which came to our address `asked`. Returns false if the frame is not a
/// keep-alive of the job.
bool answer_keep_alive(const Credentials& credentials, ConstBytes frame, const SocketAddress& asked,
                       KeepAliveAnswer& answer);

}  // namespace cluster::seal
