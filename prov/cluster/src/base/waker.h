// How a room that produces something wakes whoever sleeps until there is some: an argument, like time
// and chance, since sleeping is a matter of the operating system.
#pragma once

namespace cluster {

class Waker {
 public:
  virtual ~Waker() = default;
  /// Sleep ends, or does not begin, until rest() is called.
  virtual void wake() = 0;
  virtual void rest() = 0;
};

}  // namespace cluster
