// What a call does whose flags the provider does not support in an ordinary call: FI_TRIGGER alone makes it a
// triggered operation, if the endpoint has the capability; anything else is an error.
#pragma once

#include "api/call_copy.h"
#include "api/endpoint.h"

namespace cluster::api {

/// `unsupported`: those of the flags that are not supported. The rest are arguments of CallCopy, the last of
/// which is the flags.
template <typename... Arguments>
[[gnu::cold, gnu::noinline]] ssize_t trigger_or_refuse(Endpoint& endpoint, std::uint64_t unsupported,
                                                       CallCopy::Kind kind,
                                                       const Arguments&... arguments) noexcept {
  if (unsupported != FI_TRIGGER || !(endpoint.options().caps() & FI_TRIGGER)) return -FI_EBADFLAGS;
  return guarded([&] { return endpoint.trigger(CallCopy(kind, arguments...)); });
}

}  // namespace cluster::api
