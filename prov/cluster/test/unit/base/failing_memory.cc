#include "support/failing_memory.h"

#include <cstdlib>
#include <new>

namespace {

struct Supply {
  bool limited = false;
  std::size_t allowed = 0;
  std::size_t failures = 0;
  std::size_t failed = 0;
};

thread_local Supply supply;

bool runs_out() {
  if (!supply.limited || cluster::test::SpareMemory::used) return false;
  if (supply.allowed != 0) {
    --supply.allowed;
    return false;
  }
  if (supply.failures == 0) return false;
  --supply.failures;
  ++supply.failed;
  return true;
}

void* allocate(std::size_t size) {
  void* const memory = runs_out() ? nullptr : std::malloc(size != 0 ? size : 1);
  if (memory == nullptr) throw std::bad_alloc();
  return memory;
}

}  // namespace

void* operator new(std::size_t size) { return allocate(size); }
void* operator new[](std::size_t size) { return allocate(size); }
void* operator new(std::size_t size, const std::nothrow_t&) noexcept {
  return runs_out() ? nullptr : std::malloc(size);
}
void* operator new[](std::size_t size, const std::nothrow_t&) noexcept {
  return runs_out() ? nullptr : std::malloc(size);
}
void operator delete(void* memory) noexcept { std::free(memory); }
void operator delete[](void* memory) noexcept { std::free(memory); }
void operator delete(void* memory, std::size_t) noexcept { std::free(memory); }
void operator delete[](void* memory, std::size_t) noexcept { std::free(memory); }

namespace cluster::test {

FailingMemory::FailingMemory(std::size_t allowed, std::size_t failures) {
  supply = {.limited = true, .allowed = allowed, .failures = failures};
}
FailingMemory::~FailingMemory() { supply.limited = false; }
std::size_t FailingMemory::failed() { return supply.failed; }
std::size_t FailingMemory::left() { return supply.allowed; }

}  // namespace cluster::test
