// Learns when memory of the application is unmapped, moved, or given back to the kernel (userfaultfd(2)), and
// when the process forks. A cache of registrations needs to know (pin_cache.h): a device that has pinned a
// page goes on using this page, whatever is at its address now.
//
// A system call that changes watched memory, such as munmap(), waits until this object has read the event. So
// whoever calls take() after that system call has returned gets the change. A thread of the process reads the
// events. It allocates nothing, and takes no lock that is held during an allocation, because an allocation
// may be such a system call.
//
// One window remains. The kernel gives addresses free a moment before it queues the event, and another thread
// may map other memory there. changing() returns true in this window.
//
// The watch never makes a thread wait for a page: it asks for write protection, and protects nothing.
#pragma once

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <map>
#include <mutex>
#include <string>

#include "base/bytes.h"
#include "os/descriptor.h"

namespace cluster::os {

/// A part of the address space that is not what it was.
struct MemoryChange {
  enum class Kind : std::uint8_t {
    unmapped,  ///< nothing, or other memory, is at the addresses
    emptied,   ///< the kernel is about to take the pages; it has not taken them yet
    copied,    ///< after a fork, some pages may be copies
  };

  std::uintptr_t begin = 0;
  std::uintptr_t end = 0;
  Kind kind = Kind::unmapped;

  bool overlaps(std::uintptr_t from, std::uintptr_t to) const { return begin < to && from < end; }
};

class MemoryWatch {
 public:
  /// More changes are reported as a change of all memory.
  static constexpr std::size_t kChangesMax = 64;
  using Changes = std::array<MemoryChange, kChangesMax>;

  /// Returns the watch of this process, which is never destroyed. If the kernel refuses to watch, returns
  /// null and sets `reason`.
  static MemoryWatch* of_process(std::string& reason);

  MemoryWatch(const MemoryWatch&) = delete;
  MemoryWatch& operator=(const MemoryWatch&) = delete;

  /// Watches the pages of the memory. Returns false if the kernel cannot watch them, for example because a
  /// file is mapped there.
  bool add(ConstBytes memory);
  /// Undoes one add(). `gone`: the memory is not mapped there any more.
  void remove(ConstBytes memory, bool gone);
  /// Returns the number of changes so far, from which a new user begins.
  std::uint64_t count();
  /// Writes the changes since number `seen`, increments `seen` by them, and returns how many they are.
  std::size_t take(std::uint64_t& seen, Changes& changes);
  /// Returns true if watched memory may be changing at this moment.
  bool changing() const;

 private:
  MemoryWatch() = default;
  bool open(std::string& reason);
  bool set_up();
  static void* run(void* watch);
  void read_events();
  void note(const MemoryChange& change);

  Descriptor events_;
  std::byte* own_page_ = nullptr;  ///< a watched page, which never changes
  unsigned forks_ = 0;             ///< that are noted
  std::mutex events_lock_;         ///< for the next two; nothing is allocated under it
  Changes changes_;                ///< the last ones, by number
  std::uint64_t count_ = 0;
  std::mutex ranges_lock_;
  std::multimap<std::uintptr_t, std::uintptr_t> ranges_;  ///< watched ranges: begin and end
};

}  // namespace cluster::os
