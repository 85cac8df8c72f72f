// The registrations that an RDMA device has of the application's memory. To register memory costs system
// calls, and the kernel pins its pages. So registrations are kept for the next use, within limits. The one
// that was used least recently goes first.
//
// A registration belongs to one owner, the queue pair for which it was made. Only one kind of use is possible
// at a time: by the device of this side (local), or by the peer's device as well (exposed). The peer's device
// loses the access at the end of each use, although the registration stays (Pinner::expose). An exposed
// registration covers exactly the bytes that the peer may read.
//
// The application may unmap the memory, move it, give its pages back to the kernel, or fork. MemoryWatch says
// so, and such a registration is not used again. Memory that cannot be watched is registered for one use. So
// is all memory for a while after pages were given back: the kernel announces this before it takes the pages,
// and a registration that is made in between would keep them.
//
// The caller holds the engine lock.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <list>
#include <optional>
#include <string>

#include "base/bytes.h"
#include "base/units.h"
#include "os/memory_watch.h"

namespace cluster::os {

/// What the device is to do with memory.
enum class PinUse : std::uint8_t { local, exposed };

/// One registration.
struct Pin {
  std::uint64_t owner = 0;
  ConstBytes memory;
  void* registration = nullptr;  ///< the Pinner's
  bool writable = false;         ///< the device may write to it
  PinUse use = PinUse::local;
  std::size_t users = 0;
  bool watched = false;
  bool stale = false;  ///< to be unpinned after the last use
};

/// Registers memory with a device.
class Pinner {
 public:
  /// Sets `pin.registration` and `pin.writable`. For PinUse::local the device must be able to write. Returns
  /// false if the device or the kernel refuses.
  virtual bool pin(Pin& pin) = 0;
  virtual void unpin(Pin& pin) = 0;
  /// Gives the peer's device access, or takes the access away (PinUse::local). Returns false if that is not
  /// possible for an existing registration.
  virtual bool change_use(Pin& pin, PinUse use) = 0;

 protected:
  ~Pinner() = default;
};

class PinCache {
 public:
  struct Limits {
    std::size_t entries = 512;
    std::size_t bytes = std::size_t{256} << 20;
    Duration settle = 100ms;  ///< for so long nothing new is kept after pages were given back
  };
  struct Statistics {
    std::uint64_t hits = 0;
    std::uint64_t misses = 0;
    std::uint64_t dropped = 0;  ///< because the application has changed the memory
    std::size_t entries = 0;
    std::size_t bytes = 0;  ///< registered now
  };

  /// `watch`: null if memory cannot be watched. Then nothing is kept.
  PinCache(Pinner& pinner, MemoryWatch* watch, const Limits& limits);
  ~PinCache();
  PinCache(const PinCache&) = delete;
  PinCache& operator=(const PinCache&) = delete;

  using Handle = std::list<Pin>::iterator;

  /// Returns a registration of the memory, which give_back() ends. Returns nothing if the memory cannot be
  /// registered.
  std::optional<Handle> take(std::uint64_t owner, ConstBytes memory, PinUse use);
  /// When this function returns, the peer's device has no access to the memory.
  void give_back(Handle pin);
  /// Ends all registrations of the owner, in use or not.
  void drop_owner(std::uint64_t owner);
  /// Ends registrations of memory that has changed. Called now and then, so that the kernel can have the
  /// pages.
  void tidy();

  const Limits& limits() const { return limits_; }
  Statistics statistics() const {
    Statistics now = statistics_;
    now.entries = pins_.size();
    return now;
  }

 private:
  Handle find(std::uint64_t owner, ConstBytes memory, PinUse use);
  bool pin(Pin& pin);
  bool make_place(std::size_t bytes);
  void end(Handle pin, bool gone);
  bool drop_idle();

  Pinner& pinner_;
  MemoryWatch* const watch_;
  const Limits limits_;
  std::list<Pin> pins_;  ///< the one that was used last is the first
  std::uint64_t seen_ = 0;
  std::chrono::steady_clock::time_point keep_from_{};
  bool exposes_ = true;  ///< change_use() has never failed
  Statistics statistics_;
};

}  // namespace cluster::os
