#include "engine/engine.h"

#include "engine/core.h"

namespace cluster::engine {

Engine::Engine(EngineParts parts)
    : door_(parts.environment.fence), core_(std::make_unique<Core>(std::move(parts))) {}

Engine::~Engine() { progress_client_.reset(); }

const SocketAddress& Engine::name() const { return core_->name(); }

void Engine::attach(const AddressTable& book, const protocol::EndpointBindings& bindings) {
  const std::lock_guard door(door_);
  core_->attach(book, bindings);
}

Status Engine::send(const protocol::SendOp& order) {
  const std::lock_guard door(door_);
  return core_->send(order);
}

Status Engine::receive(const protocol::RecvOp& order) {
  const std::lock_guard door(door_);
  return core_->receive(order);
}

Status Engine::put(const protocol::WriteOp& order) {
  const std::lock_guard door(door_);
  return core_->put(order);
}

Status Engine::get(const protocol::ReadOp& order) {
  const std::lock_guard door(door_);
  return core_->get(order);
}

Status Engine::atomic(const protocol::AtomicRmaOp& order) {
  const std::lock_guard door(door_);
  return core_->atomic(order);
}

bool Engine::cancel(void* context) {
  const std::lock_guard door(door_);
  return core_->cancel(context);
}

os::NextWake Engine::run_in_background() {
  if (core_->looked_after()) return core_->until_next_look();
  const std::unique_lock door(door_, std::try_to_lock);
  return door.owns_lock() ? core_->run_in_background() : Core::kAfterOthers;
}

void Engine::enable_auto_progress() {
  const std::lock_guard door(door_);
  core_->enable_auto_progress();
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

std::size_t Engine::tx_size_left() const {
  const std::lock_guard door(door_);
  return core_->tx_size_left();
}

std::size_t Engine::unexpected_messages() const {
  const std::lock_guard door(door_);
  return core_->unexpected_messages();
}

const char* Engine::path_to(std::uint64_t handle) const {
  const std::lock_guard door(door_);
  return core_->path_to(handle);
}

std::optional<EndpointStats> Engine::stats() const {
  const std::unique_lock door(door_, std::try_to_lock);
  if (!door.owns_lock()) return std::nullopt;
  return core_->stats();
}

bool Engine::quiescent() const {
  const std::lock_guard door(door_);
  return core_->quiescent();
}

void Engine::poll(bool wait) {
  std::unique_lock door(door_, std::defer_lock);
  if (!wait && !door.try_lock()) return;
  if (wait) door.lock();
  core_->poll(wait ? Core::Look::everywhere : Core::Look::where_due);
}

}  // namespace cluster::engine
