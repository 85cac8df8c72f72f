// The UDP port under which frames travel, and what stands on it. The kernel's IP input looks at each
// frame after the packet socket; what it finds there decides what that second look costs.
#pragma once

#include "wire_choice.h"
#include "wire_headers.h"

namespace perf {

class WirePort {
 public:
  /// A port of `own` that is free; sets it there.
  WirePort(const WireChoice& choice, WireAddress& own);
  WirePort(const WirePort&) = delete;
  WirePort& operator=(const WirePort&) = delete;
  ~WirePort();

  /// The other side is known now.
  void meet(const WireChoice& choice, const WireAddress& other);

 private:
  int socket_ = -1;
};

}  // namespace perf
