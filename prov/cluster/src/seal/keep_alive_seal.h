// The seal of keep-alives and their answers. The keep-alive responder answers without looking at the endpoint's associations: it has only
// a key of the job.
//
// The tag is an HMAC over mode, header, counter, and the address that was asked. So no other process than the one that was asked can
// answer, and none that this side's frames can never reach. The answer repeats the counter of the question, which is new each time, so a
// recorded answer is worthless. The tag does not cover padding, and nothing reads padding.
#pragma once

#include <array>
#include <cstdint>
#include <span>

#include "base/address.h"
#include "seal/job_key.h"
#include "wire/frame.h"

namespace cluster::seal {

/// `asked`: the address of the endpoint that is asked.
void seal_keep_alive(const JobKey& key, Mode mode, const wire::FrameHeader& header,
                     const SocketAddress& asked, wire::SealTrailer& trailer);
bool verify_keep_alive(const JobKey& key, Mode mode, const wire::FrameHeader& header,
                       const SocketAddress& asked, const wire::SealTrailer& trailer);

using KeepAliveAnswer = std::array<std::byte, sizeof(wire::FrameHeader) + sizeof(wire::SealTrailer)>;

/// `frame` came to `asked`, which is ours. False: it is no keep-alive of the job.
bool answer_keep_alive(const Credentials& credentials, ConstBytes frame, const SocketAddress& asked,
                       KeepAliveAnswer& answer);

}  // namespace cluster::seal
