#include "api/faults.h"

#include <rdma/fi_errno.h>

namespace cluster::api {

int error_of(Fault fault) {
  switch (fault) {
    case Fault::none: return 0;
    case Fault::again: return FI_EAGAIN;
    case Fault::too_big: return FI_EMSGSIZE;
    case Fault::bad_address: return FI_EINVAL;
    case Fault::truncated: return FI_ETRUNC;
    case Fault::canceled: return FI_ECANCELED;
    case Fault::no_message: return FI_ENOMSG;
    case Fault::unreachable: return FI_EHOSTUNREACH;
    case Fault::refused: return FI_ECONNREFUSED;
    case Fault::reset: return FI_ECONNRESET;
    case Fault::stranger: return FI_EADDRNOTAVAIL;
    case Fault::access: return FI_EACCES;
  }
  return FI_EOTHER;
}

}  // namespace cluster::api
