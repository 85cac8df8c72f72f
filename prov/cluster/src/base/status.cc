#include "base/status.h"

namespace cluster {

const char* describe(Status status) {
  switch (status) {
    case Status::ok: return "no status";
    case Status::again: return "no room now";
    case Status::too_big: return "message too long";
    case Status::bad_address: return "address handle names nobody";
    case Status::truncated: return "message truncated";
    case Status::canceled: return "canceled";
    case Status::no_message: return "no such message";
    case Status::unreachable: return "peer unreachable";
    case Status::refused: return "endpoint not there";
    case Status::unknown_source: return "sender is in no address vector";
    case Status::access: return "remote memory is not registered for that";
    case Status::reset: return "peer went away";
  }
  return "unknown status";
}

}  // namespace cluster
