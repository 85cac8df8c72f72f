// Answers the keep-alives of an endpoint with a key, as seal/keep_alive_seal.h does, and also those that come
// through a relay. The answer to such a keep-alive repeats the RelayTag, which names the same peer in both
// directions.
#pragma once

#include <cstddef>
#include <span>

#include "base/address.h"
#include "seal/job_key.h"

namespace cluster::relay {

/// Writes the answer to a datagram that has arrived at `asked`, an address of the endpoint with this name.
/// Returns its length, or 0 if the datagram is no keep-alive of the job. `out` needs kAnswerMax bytes.
std::size_t answer_keep_alive(const seal::Credentials& credentials, ConstBytes datagram,
                              const SocketAddress& name, const SocketAddress& asked, Bytes out);
inline constexpr std::size_t kAnswerMax = 96;

}  // namespace cluster::relay
