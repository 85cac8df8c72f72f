#include "os/guard_page.h"

#include <sys/mman.h>

#include <cstddef>

namespace cluster::os {
namespace {

constexpr std::size_t kPageBytes = 4096;
constexpr int kAttempts = 16;
#ifdef __SANITIZE_THREAD__
constexpr std::uint64_t kRangeBegin = 0x7f0000000000;  // ThreadSanitizer has taken the range for itself
constexpr std::uint64_t kRangePages = std::uint64_t{1} << 27;
#else
/// Between the places of programs and heaps and those of libraries and stacks.
constexpr std::uint64_t kRangeBegin = std::uint64_t{1} << 45;
constexpr std::uint64_t kRangePages = std::uint64_t{1} << 33;
#endif

}  // namespace

GuardPage GuardPage::open(Random& random) {
  for (int i = 0; i < kAttempts; ++i) {
    const std::uint64_t address = kRangeBegin + random.next() % kRangePages * kPageBytes;
    void* const wanted = reinterpret_cast<void*>(address);
    void* const page = ::mmap(wanted, kPageBytes, PROT_READ | PROT_WRITE,
                              MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED_NOREPLACE, -1, 0);
    if (page == MAP_FAILED) continue;
    // A kernel that does not know the flag places it where it likes.
    if (page != wanted || ::madvise(page, kPageBytes, MADV_DONTFORK) != 0) {
      ::munmap(page, kPageBytes);
      continue;
    }
    const GuardMark mark{address, random.next() | 1};
    *static_cast<std::uint64_t*>(page) = mark.value;
    return GuardPage(mark);
  }
  return {};
}

GuardPage::~GuardPage() {
  if (mark_.address != 0) ::munmap(reinterpret_cast<void*>(mark_.address), kPageBytes);
}

}  // namespace cluster::os
