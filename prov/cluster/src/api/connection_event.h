// Helpers for the events and the private data of connections (FI_EP_MSG).
#pragma once

#include <rdma/fi_eq.h>

#include <cstddef>
#include <vector>

#include "base/bytes.h"

namespace cluster::api {

/// Returns the private data that the application passes to its peer. Drops the bytes beyond
/// connection::kPrivateDataMax, as fi_cm(3) says.
ConstBytes private_data(const void* data, std::size_t size);
/// Returns the bytes of an fi_eq_cm_entry, with the peer's private data behind it.
std::vector<std::byte> connection_event(struct fid& object, fi_info* info, ConstBytes data);

}  // namespace cluster::api
