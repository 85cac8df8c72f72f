// What the tests of waiting share: options of objects with a wait object, and the limit of a wait. A test
// that reaches the limit has lost a wake.
#pragma once

#include "fabric.h"

namespace conformance {

inline constexpr int kWaitTimeoutMs = 20000;  ///< ms; nothing takes a tenth of it

inline Options options_with_wait(fi_wait_obj wait) {
  Options options;
  options.wait = wait;
  return options;
}

inline int wait_descriptor(fid* object) {
  int descriptor = -1;
  EXPECT_EQ(fi_control(object, FI_GETWAIT, &descriptor), 0);
  EXPECT_GE(descriptor, 0);
  return descriptor;
}

}  // namespace conformance
