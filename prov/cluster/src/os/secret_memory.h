// Memory for keys: left out of core dumps, and kept from the swap device where the limits of the process
// allow it.
#pragma once

#include <sys/mman.h>

#include <cstddef>
#include <cstring>
#include <new>

namespace cluster::os {

/// For std::allocate_shared of an object that holds keys. It gives whole pages, and wipes them before it
/// releases them.
template <typename T>
struct SecretAllocator {
  using value_type = T;
  SecretAllocator() = default;
  template <typename Other>
  SecretAllocator(const SecretAllocator<Other>&) {}  // NOLINT(google-explicit-constructor): as allocators do
  T* allocate(std::size_t count) {
    const std::size_t size = count * sizeof(T);
    void* const memory = mmap(nullptr, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (memory == MAP_FAILED) throw std::bad_alloc();
    madvise(memory, size, MADV_DONTDUMP);
    mlock(memory, size);  // the limit of locked memory may forbid it
    return static_cast<T*>(memory);
  }
  void deallocate(T* memory, std::size_t count) {
    explicit_bzero(memory, count * sizeof(T));
    munmap(memory, count * sizeof(T));
  }
  friend bool operator==(const SecretAllocator&, const SecretAllocator&) { return true; }
};

}  // namespace cluster::os
