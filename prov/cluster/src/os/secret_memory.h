// Memory for keys: left out of core dumps, and kept from the swap device where the limits of the process allow it.
#pragma once

#include <cstddef>
#include <new>

namespace cluster::os {

/// Whole pages; null if there is no memory.
void* allocate_secret(std::size_t size);
/// Wipes the pages before it releases them.
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

}  // namespace cluster::os
