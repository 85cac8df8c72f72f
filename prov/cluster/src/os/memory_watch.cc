#include "os/memory_watch.h"

#include <fcntl.h>
#include <linux/userfaultfd.h>
#include <poll.h>
#include <pthread.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/utsname.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <limits>

#include "base/process_generation.h"
#include "os/detached_thread.h"

#ifndef UFFD_USER_MODE_ONLY
#define UFFD_USER_MODE_ONLY 1
#endif

namespace cluster::os {
namespace {

constexpr std::uint64_t kFeatures = UFFD_FEATURE_PAGEFAULT_FLAG_WP | UFFD_FEATURE_EVENT_UNMAP |
                                    UFFD_FEATURE_EVENT_REMAP | UFFD_FEATURE_EVENT_REMOVE;
using ChangeKind = MemoryChange::Kind;

constexpr MemoryChange kEverything{0, std::numeric_limits<std::uintptr_t>::max(), ChangeKind::copied};

std::uintptr_t page_size() {
  static const auto size = static_cast<std::uintptr_t>(sysconf(_SC_PAGESIZE));
  return size;
}

/// Increases when this process begins to fork, and when it has forked. There is an event of forks, too. But
/// it needs privileges, and fork() would wait as long as this process can open no more descriptors.
std::atomic<unsigned> forks{0};

/// Before Linux 5.12, libibverbs excludes registered memory from forks.
bool kept_memory_survives_forks() {
  utsname kernel{};
  int major = 0, minor = 0;
  return uname(&kernel) == 0 && std::sscanf(kernel.release, "%d.%d", &major, &minor) == 2 &&
         (major > 5 || (major == 5 && minor >= 12));
}

/// The range of the pages of the memory.
uffdio_range pages_of(ConstBytes memory) {
  const std::uintptr_t mask = ~(page_size() - 1);
  const auto begin = reinterpret_cast<std::uintptr_t>(memory.data()) & mask;
  const auto end = (reinterpret_cast<std::uintptr_t>(memory.data()) + memory.size() + ~mask) & mask;
  return {begin, end - begin};
}

}  // namespace

MemoryWatch* MemoryWatch::of_process(std::string& reason) {
  struct Only {
    MemoryWatch* watch = nullptr;
    std::string reason;
    unsigned generation = ~0u;
  };
  static std::mutex lock;
  static Only only;
  const std::lock_guard guard(lock);
  if (only.generation == ~0u) pthread_atfork([] { ++forks; }, [] { ++forks; }, nullptr);
  const unsigned generation = process_generation.load(std::memory_order_relaxed);
  if (only.generation != generation) {
    // What a forked child has inherited is of no use to it, and is not destroyed.
    only = {new MemoryWatch, {}, generation};
    if (!only.watch->open(only.reason)) {
      delete only.watch;
      only.watch = nullptr;
    }
  }
  if (only.watch == nullptr) reason = only.reason;
  return only.watch;
}

bool MemoryWatch::open(std::string& reason) {
  forks_ = forks.load();
  if (!kept_memory_survives_forks()) {
    reason = "Linux before 5.12 takes registered memory away from forked children";
    return false;
  }
  if (!set_up()) {
    reason = failed("userfaultfd");
    return false;
  }
  void* const page = mmap(nullptr, page_size(), PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (page == MAP_FAILED || !add({static_cast<std::byte*>(page), page_size()})) {
    reason = failed("UFFDIO_REGISTER");
    if (page != MAP_FAILED) munmap(page, page_size());
    return false;
  }
  own_page_ = static_cast<std::byte*>(page);
  const int error = start_detached_thread(run, this);
  if (error == 0) return true;
  reason = "pthread_create: " + error_text(error);
  events_.reset();
  munmap(page, page_size());
  return false;
}

/// Without privileges, a process may only handle faults of its own code. The watch handles none.
bool MemoryWatch::set_up() {
  const long made = syscall(SYS_userfaultfd, O_CLOEXEC | O_NONBLOCK | UFFD_USER_MODE_ONLY);
  if (made < 0) return false;
  events_ = Descriptor(static_cast<int>(made));
  uffdio_api api{};
  api.api = UFFD_API;
  api.features = kFeatures;
  if (ioctl(events_.number(), UFFDIO_API, &api) == 0) return true;
  const int error = errno;
  events_.reset();
  errno = error;
  return false;
}

void* MemoryWatch::run(void* watch) {
  auto* const self = static_cast<MemoryWatch*>(watch);
  pollfd events{self->events_.number(), POLLIN, 0};
  for (;;) {
    if (poll(&events, 1, -1) < 0 && errno != EINTR) return nullptr;
    const std::lock_guard guard(self->events_lock_);
    self->read_events();
  }
}

/// The lock of the events is held, so whoever takes the changes later misses none that was read.
void MemoryWatch::read_events() {
  uffd_msg event;
  while (read(events_.number(), &event, sizeof event) == static_cast<ssize_t>(sizeof event)) {
    switch (event.event) {
      case UFFD_EVENT_UNMAP: note({event.arg.remove.start, event.arg.remove.end}); break;
      case UFFD_EVENT_REMOVE:
        note({event.arg.remove.start, event.arg.remove.end, ChangeKind::emptied});
        break;
      case UFFD_EVENT_REMAP: note({event.arg.remap.from, event.arg.remap.from + event.arg.remap.len}); break;
      default: break;
    }
  }
  const unsigned now = forks.load();
  if (now != forks_) note(kEverything);
  forks_ = now;
}

void MemoryWatch::note(const MemoryChange& change) { changes_[count_++ % kChangesMax] = change; }

bool MemoryWatch::add(ConstBytes memory) {
  uffdio_register wanted{};
  wanted.range = pages_of(memory);
  wanted.mode = UFFDIO_REGISTER_MODE_WP;
  const std::lock_guard guard(ranges_lock_);
  if (ioctl(events_.number(), UFFDIO_REGISTER, &wanted) != 0) return false;
  ranges_.emplace(wanted.range.start, wanted.range.start + wanted.range.len);
  return true;
}

void MemoryWatch::remove(ConstBytes memory, bool gone) {
  uffdio_range range = pages_of(memory);
  const std::uintptr_t begin = range.start, end = range.start + range.len;
  const std::lock_guard guard(ranges_lock_);
  const auto [first, last] = ranges_.equal_range(begin);
  const auto its = std::find_if(first, last, [=](const auto& each) { return each.second == end; });
  if (its == last) return;
  ranges_.erase(its);
  const bool shared = std::any_of(ranges_.begin(), ranges_.end(),
                                  [=](const auto& each) { return each.first < end && begin < each.second; });
  if (!gone && !shared) ioctl(events_.number(), UFFDIO_UNREGISTER, &range);
}

std::uint64_t MemoryWatch::count() {
  const std::lock_guard guard(events_lock_);
  read_events();
  return count_;
}

std::size_t MemoryWatch::take(std::uint64_t& seen, Changes& changes) {
  const std::lock_guard guard(events_lock_);
  read_events();
  const std::uint64_t since = count_ - seen;
  if (since > kChangesMax) {
    changes[0] = {kEverything.begin, kEverything.end, ChangeKind::emptied};
    seen = count_;
    return 1;
  }
  for (std::size_t i = 0; i < since; ++i) changes[i] = changes_[(seen + i) % kChangesMax];
  seen = count_;
  return since;
}

/// The kernel refuses this call, which does nothing, from the moment at which addresses become free until the
/// event has been read.
bool MemoryWatch::changing() const {
  uffdio_writeprotect nothing{};
  nothing.range = {reinterpret_cast<std::uintptr_t>(own_page_), page_size()};
  return ioctl(events_.number(), UFFDIO_WRITEPROTECT, &nothing) != 0;
}

}  // namespace cluster::os
