#include "engine/sleeper.h"

namespace cluster::engine {

std::unique_ptr<Sleeper> Sleeper::open() {
  std::unique_ptr<os::WaitSet> set = os::WaitSet::open();
  std::unique_ptr<os::Signal> signal = os::Signal::open();
  if (set == nullptr || signal == nullptr || !set->add(signal->descriptor(), signal.get())) return nullptr;
  return std::unique_ptr<Sleeper>(new Sleeper(std::move(set), std::move(signal)));
}

/// An engine that cannot be slept on is never armed either, so nobody relies on it.
void Sleeper::add(Engine& engine) {
  const int descriptor = engine.descriptor();
  if (descriptor >= 0) set_->add(descriptor, &engine);
}

void Sleeper::remove(Engine& engine) {
  const int descriptor = engine.descriptor();
  if (descriptor >= 0) set_->remove(descriptor);
}

Sleeper::Wake Sleeper::wait(std::chrono::milliseconds limit) const {
  switch (limit == kForever ? set_->sleep(std::nullopt) : set_->sleep(limit)) {
    case os::WaitSet::Wake::timeout: return Wake::timeout;
    case os::WaitSet::Wake::interrupted: return Wake::interrupted;
    case os::WaitSet::Wake::event: break;
  }
  return Wake::event;
}

}  // namespace cluster::engine
