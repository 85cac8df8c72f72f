// The seal of keep-alives and their answers, which the keep-alive responder gives without looking at the
// endpoint's associations: it holds nothing but a key of the job.
//
// The tag is an HMAC over mode, header, counter, and the address that was asked: so no answer comes from another
// process than the one asked, nor from one that this side's frames can never reach. The answer repeats the counter of the question, which is new with each: so a
// recorded answer is worth nothing. Padding is not covered, and nothing reads it.
#pragma once

#include <array>
#include <cstdint>
#include <span>

#include "base/address.h"
#include "seal/job_key.h"
#include "wire/frame.h"

namespace cluster::seal {

/// `asked`: the address of the endpoint that is asked.
bool seal_keep_alive(const JobKey& key, Mode mode, const wire::FrameHeader& header,
                     const SocketAddress& asked, wire::SealTrailer& trailer);
bool verify_keep_alive(const JobKey& key, Mode mode, const wire::FrameHeader& header,
                       const SocketAddress& asked, const wire::SealTrailer& trailer);

using KeepAliveAnswer = std::array<std::byte, sizeof(wire::FrameHeader) + sizeof(wire::SealTrailer)>;

/// `frame` came to `asked`, which is ours. False: it is no keep-alive of the job.
bool answer_keep_alive(const Credentials& credentials, ConstBytes frame, const SocketAddress& asked,
                       KeepAliveAnswer& answer);

}  // namespace cluster::seal
