// Memory for keys. The kernel does not write it to core dumps. If the limits of the process allow it, the
// kernel does not swap this memory out either.
#pragma once

#include <sys/mman.h>

#include <cstddef>
#include <cstring>
#include <new>

namespace cluster::os {

/// An allocator for std::allocate_shared of an object that contains keys. It allocates whole pages, and
/// overwrites the object with zeros before it frees the pages.
template <typename T>
struct SecretAllocator {
  using value_type = T;
  SecretAllocator() = default;
  template <typename Other>
  SecretAllocator(const SecretAllocator<Other>&) {}  // NOLINT(google-explicit-constructor): must be implicit
  T* allocate(std::size_t count) {
    const std::size_t size = count * sizeof(T);
    void* const memory = mmap(nullptr, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (memory == MAP_FAILED) throw std::bad_alloc();
    madvise(memory, size, MADV_DONTDUMP);
    mlock(memory, size);  // fails if the limit of locked memory is reached; the memory is still usable
    return static_cast<T*>(memory);
  }
  void deallocate(T* memory, std::size_t count) {
    explicit_bzero(memory, count * sizeof(T));
    munmap(memory, count * sizeof(T));
  }
  friend bool operator==(const SecretAllocator&, const SecretAllocator&) { return true; }
};

}  // namespace cluster::os
