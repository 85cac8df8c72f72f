#include "base/status.h"

namespace cluster {

const char* describe(Status status) {
  switch (status) {
    case Status::ok: return "success";
    case Status::again: return "no resources now";
    case Status::too_big: return "message too long";
    case Status::bad_address: return "handle not in the address vector";
    case Status::truncated: return "message truncated";
    case Status::canceled: return "canceled";
    case Status::no_message: return "no such message";
    case Status::unreachable: return "peer unreachable";
    case Status::refused: return "no endpoint has that port";
    case Status::prohibited: return "a firewall refuses UDP to the peer";
    case Status::translated: return "a router between the nodes changes this node's address";
    case Status::unknown_source: return "sender not in the address vector";
    case Status::access: return "remote memory not registered for this access";
    case Status::reset: return "peer closed or restarted";
    case Status::ended: return "peer's process has ended";
    case Status::exhausted: return "peer's process has no free file descriptor";
    case Status::no_memory: return "this process has no memory for the peer or the operation";
    case Status::overrun: return "completions lost, because this process has no memory for them";
    case Status::stuck: return "peer's process exists, but its endpoint does not answer";
  }
  return "unknown status";
}

}  // namespace cluster
