// Memory for keys: left out of core dumps, kept from the swap device where the limits of the process allow it.
// And a word by which a forked child is known.
#pragma once

#include <cstddef>
#include <cstdint>
#include <new>

namespace cluster::os {

/// Whole pages; null if there is no memory.
void* allocate_secret(std::size_t size);
/// Wipes them, too.
void release_secret(void* memory, std::size_t size);

/// For std::allocate_shared of an object that holds keys.
template <typename T>
struct SecretAllocator {
  using value_type = T;
  SecretAllocator() = default;
  template <typename Other>
  SecretAllocator(const SecretAllocator<Other>&) {}  // NOLINT(google-explicit-constructor): as allocators do
  T* allocate(std::size_t count) {
    void* const memory = allocate_secret(count * sizeof(T));
    if (memory == nullptr) throw std::bad_alloc();
    return static_cast<T*>(memory);
  }
  void deallocate(T* memory, std::size_t count) { release_secret(memory, count * sizeof(T)); }
  friend bool operator==(const SecretAllocator&, const SecretAllocator&) { return true; }
};

/// A word that is 1 in this process and 0 in every process that is forked from it later (MADV_WIPEONFORK);
/// null if the kernel has no such memory.
const volatile std::uint32_t* fork_mark();

}  // namespace cluster::os
