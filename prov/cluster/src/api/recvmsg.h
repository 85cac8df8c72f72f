// fi_recvmsg and fi_trecvmsg: receives with flags of their own. The flags may make them peeks, claims or
// multi-receive buffers.
#pragma once

#include "api/endpoint.h"

namespace cluster::api {

/// Posts `op`, in which the caller has set source, tag and context, with the buffers of `vector`. `flags` are
/// those of the call, which replace the endpoint's.
ssize_t receive_message(Endpoint& endpoint, const iovec* vector, std::size_t count, std::uint64_t flags,
                        protocol::RecvOp op) noexcept;

}  // namespace cluster::api
