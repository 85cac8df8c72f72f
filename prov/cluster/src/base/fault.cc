#include "base/fault.h"

namespace cluster {

const char* describe(Fault fault) {
  switch (fault) {
    case Fault::none: return "no fault";
    case Fault::again: return "no room now";
    case Fault::too_big: return "message too long";
    case Fault::bad_address: return "address handle names nobody";
    case Fault::truncated: return "message truncated";
    case Fault::canceled: return "canceled";
    case Fault::no_message: return "no such message";
    case Fault::unreachable: return "peer unreachable";
    case Fault::refused: return "endpoint not there";
    case Fault::stranger: return "sender is in no address vector";
    case Fault::access: return "remote memory is not registered for that";
    case Fault::reset: return "peer went away";
  }
  return "unknown fault";
}

}  // namespace cluster
