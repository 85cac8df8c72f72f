// How an object that produces something wakes the threads that sleep until there is some. An argument, like
// the clock, since sleeping is a matter of the operating system.
#pragma once

namespace cluster {

class Waker {
 public:
  virtual ~Waker() = default;
  /// Threads do not sleep from now on, until clear() is called.
  virtual void wake() = 0;
  virtual void clear() = 0;
};

}  // namespace cluster
