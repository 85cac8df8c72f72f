#include "sim/allocation_meter.h"

#include <cstdint>
#include <cstdlib>
#include <new>

namespace {

cluster::sim::AllocationMeter* current = nullptr;

/// Stands in front of every allocation, and keeps the alignment that operator new promises.
struct alignas(std::max_align_t) Label {
  cluster::sim::AllocationMeter* owner;
  std::size_t size;
};

/// Returns null if there is no memory.
void* try_allocate(std::size_t size) noexcept {
  auto* label = static_cast<Label*>(std::malloc(sizeof(Label) + size));
  if (label == nullptr) return nullptr;
  *label = {current, size};
  if (current != nullptr) current->add(size);
  return label + 1;
}

void* allocate(std::size_t size) {
  void* memory = try_allocate(size);
  if (memory == nullptr) throw std::bad_alloc();
  return memory;
}

void release(void* memory) {
  if (memory == nullptr) return;
  Label* label = static_cast<Label*>(memory) - 1;
  if (label->owner != nullptr) label->owner->remove(label->size);
  std::free(label);
}

}  // namespace

void* operator new(std::size_t size) { return allocate(size); }
void* operator new[](std::size_t size) { return allocate(size); }
// A sanitizer has such operators of its own, whose memory the operator delete below could not release. So
// these two replace them.
void* operator new(std::size_t size, const std::nothrow_t&) noexcept { return try_allocate(size); }
void* operator new[](std::size_t size, const std::nothrow_t&) noexcept { return try_allocate(size); }
void operator delete(void* memory) noexcept { release(memory); }
void operator delete[](void* memory) noexcept { release(memory); }
void operator delete(void* memory, std::size_t) noexcept { release(memory); }
void operator delete[](void* memory, std::size_t) noexcept { release(memory); }

namespace cluster::sim {

AllocationMeter::Scope::Scope(AllocationMeter* memory) : before_(current) { current = memory; }
AllocationMeter::Scope::~Scope() { current = before_; }

}  // namespace cluster::sim
