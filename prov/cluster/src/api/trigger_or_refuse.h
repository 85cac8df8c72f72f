// Handles a call with flags that data operations do not support. If FI_TRIGGER is the only such flag and the
// endpoint has the capability FI_TRIGGER, the call becomes a triggered operation. Otherwise the call fails.
#pragma once

#include "api/call_copy.h"
#include "api/endpoint.h"

namespace cluster::api {

/// `unsupported`: those flags of the call that are not supported. The other arguments are those of CallCopy,
/// and the last of them must be the flags.
template <typename... Arguments>
[[gnu::cold, gnu::noinline]] ssize_t trigger_or_refuse(Endpoint& endpoint, std::uint64_t unsupported,
                                                       CallCopy::Kind kind,
                                                       const Arguments&... arguments) noexcept {
  if (unsupported != FI_TRIGGER || !(endpoint.options().caps() & FI_TRIGGER)) return -FI_EBADFLAGS;
  return guarded([&] { return endpoint.trigger(CallCopy(kind, arguments...)); });
}

}  // namespace cluster::api
