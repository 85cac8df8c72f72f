#include "engine/sleeper.h"

namespace cluster::engine {

std::unique_ptr<Sleeper> Sleeper::open() {
  std::unique_ptr<os::WaitSet> set = os::WaitSet::open();
  std::unique_ptr<os::Signal> signal = os::Signal::open();
  if (set == nullptr || signal == nullptr || !set->add(signal->descriptor(), signal.get())) return nullptr;
  return std::unique_ptr<Sleeper>(new Sleeper(std::move(set), std::move(signal)));
}

/// An engine without a descriptor is never armed either, so no thread sleeps while it matters.
void Sleeper::add(Engine& engine) {
  const int descriptor = engine.descriptor();
  if (descriptor >= 0) set_->add(descriptor, &engine);
}

void Sleeper::remove(Engine& engine) {
  const int descriptor = engine.descriptor();
  if (descriptor >= 0) set_->remove(descriptor);
}

}  // namespace cluster::engine
