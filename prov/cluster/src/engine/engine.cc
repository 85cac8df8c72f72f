#include "engine/engine.h"

#include "engine/core.h"

namespace cluster::engine {

Engine::Engine(Parts parts)
    : door_(parts.environment.fence), core_(std::make_unique<Core>(std::move(parts))) {}

Engine::~Engine() { attendant_.reset(); }

const SocketAddress& Engine::name() const { return core_->name(); }

void Engine::attach(const AddressBook& book, const protocol::Sinks& sinks) {
  const std::lock_guard door(door_);
  core_->attach(book, sinks);
}

Fault Engine::send(const protocol::SendOrder& order) {
  const std::lock_guard door(door_);
  return core_->send(order);
}

Fault Engine::receive(const protocol::ReceiveOrder& order) {
  const std::lock_guard door(door_);
  return core_->receive(order);
}

Fault Engine::put(const protocol::PutOrder& order) {
  const std::lock_guard door(door_);
  return core_->put(order);
}

Fault Engine::get(const protocol::GetOrder& order) {
  const std::lock_guard door(door_);
  return core_->get(order);
}

Fault Engine::atomic(const protocol::AtomicOrder& order) {
  const std::lock_guard door(door_);
  return core_->atomic(order);
}

bool Engine::cancel(void* context) {
  const std::lock_guard door(door_);
  return core_->cancel(context);
}

os::Rest Engine::attend() {
  if (core_->looked_after()) return core_->until_next_look();
  const std::unique_lock door(door_, std::try_to_lock);
  return door.owns_lock() ? core_->attend() : Core::kAfterOthers;
}

void Engine::progress_by_itself() {
  const std::lock_guard door(door_);
  core_->progress_by_itself();
}

int Engine::descriptor() {
  const std::lock_guard door(door_);
  return core_->descriptor();
}

bool Engine::arm() {
  const std::lock_guard door(door_);
  return core_->arm_for_others();
}

Time Engine::next_deadline() const {
  const std::lock_guard door(door_);
  return core_->next_deadline();
}

Counters Engine::counters() const {
  const std::lock_guard door(door_);
  return core_->counters();
}

std::size_t Engine::room_for_sends() const {
  const std::lock_guard door(door_);
  return core_->room_for_sends();
}

std::size_t Engine::unexpected_messages() const {
  const std::lock_guard door(door_);
  return core_->unexpected_messages();
}

const char* Engine::path_to(std::uint64_t handle) const {
  const std::lock_guard door(door_);
  return core_->path_to(handle);
}

std::optional<Insight> Engine::insight() const {
  const std::unique_lock door(door_, std::try_to_lock);
  if (!door.owns_lock()) return std::nullopt;
  return core_->insight();
}

bool Engine::settled() const {
  const std::lock_guard door(door_);
  return core_->settled();
}

void Engine::poll(bool wait) {
  std::unique_lock door(door_, std::defer_lock);
  if (!wait && !door.try_lock()) return;
  if (wait) door.lock();
  core_->poll(wait ? Core::Look::everywhere : Core::Look::where_due);
}

}  // namespace cluster::engine
