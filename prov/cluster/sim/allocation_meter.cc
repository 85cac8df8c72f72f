#include "sim/allocation_meter.h"

#include <cstdint>
#include <cstdlib>
#include <new>

namespace {

cluster::sim::AllocationMeter* current = nullptr;

/// In front of every allocation; keeps the alignment that operator new promises.
struct alignas(std::max_align_t) Label {
  cluster::sim::AllocationMeter* owner;
  std::size_t size;
};

void* allocate(std::size_t size) {
  auto* label = static_cast<Label*>(std::malloc(sizeof(Label) + size));
  if (label == nullptr) throw std::bad_alloc();
  *label = {current, size};
  if (current != nullptr) current->add(size);
  return label + 1;
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
void operator delete(void* memory) noexcept { release(memory); }
void operator delete[](void* memory) noexcept { release(memory); }
void operator delete(void* memory, std::size_t) noexcept { release(memory); }
void operator delete[](void* memory, std::size_t) noexcept { release(memory); }

namespace cluster::sim {

AllocationMeter::Scope::Scope(AllocationMeter* memory) : before_(current) { current = memory; }
AllocationMeter::Scope::~Scope() { current = before_; }

}  // namespace cluster::sim
