#include "api/errno_map.h"

#include <rdma/fi_errno.h>

#include <new>

namespace cluster::api {

int fi_errno_of(Status status) {
  switch (status) {
    case Status::ok: return 0;
    case Status::again: return FI_EAGAIN;
    case Status::too_big: return FI_EMSGSIZE;
    case Status::bad_address: return FI_EINVAL;
    case Status::truncated: return FI_ETRUNC;
    case Status::canceled: return FI_ECANCELED;
    case Status::no_message: return FI_ENOMSG;
    case Status::unreachable: return FI_EHOSTUNREACH;
    case Status::refused: return FI_ECONNREFUSED;
    case Status::reset:
    case Status::ended: return FI_ECONNRESET;
    case Status::exhausted: return FI_ENOBUFS;
    case Status::no_memory: return FI_ENOMEM;
    case Status::stuck: return FI_ETIMEDOUT;
    case Status::unknown_source: return FI_EADDRNOTAVAIL;
    case Status::access: return FI_EACCES;
  }
  return FI_EOTHER;
}

int fi_errno_of_exception() noexcept {
  try {
    throw;
  } catch (const std::bad_alloc&) {
    return FI_ENOMEM;
  } catch (...) {
    return FI_EOTHER;
  }
}

}  // namespace cluster::api
