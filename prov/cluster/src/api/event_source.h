// A queue or a counter, as fi_trywait, poll sets and wait sets see it: something that may have events.
#pragma once

#include "api/cntr.h"
#include "api/cq.h"
#include "api/eq.h"

namespace cluster::api {

/// Calls `call` with the queue or counter. Returns -FI_EINVAL if the object is neither.
template <typename Call>
int with_event_source(fid& object, Call&& call) {
  switch (object.fclass) {
    case FI_CLASS_CQ: return call(object_of<Cq>(&object));
    case FI_CLASS_CNTR: return call(object_of<Cntr>(&object));
    case FI_CLASS_EQ: return call(object_of<Eq>(&object));
    default: return -FI_EINVAL;
  }
}

/// Makes progress. Returns true if the application would read something new.
inline bool has_events(fid& object) {
  return with_event_source(object, [](auto& source) { return source.has_events() ? 1 : 0; }) > 0;
}

}  // namespace cluster::api
