#include "os/pin_cache.h"

#include <algorithm>

#include "base/end_of_memory.h"

namespace cluster::os {
namespace {

bool contains(ConstBytes outer, ConstBytes inner) {
  return outer.data() <= inner.data() && inner.data() + inner.size() <= outer.data() + outer.size();
}

bool same(ConstBytes one, ConstBytes other) {
  return one.data() == other.data() && one.size() == other.size();
}

}  // namespace

PinCache::PinCache(Pinner& pinner, MemoryWatch* watch, const Limits& limits)
    : pinner_(pinner), watch_(watch), limits_(limits), seen_(watch != nullptr ? watch->count() : 0) {}

PinCache::~PinCache() {
  while (!pins_.empty()) end(pins_.begin(), false);
}

/// Some pins may be in use, and end later.
void PinCache::tidy() {
  if (watch_ == nullptr) return;
  MemoryWatch::Changes changes;
  const std::size_t count = watch_->take(seen_, changes);
  for (std::size_t i = 0; i < count; ++i) {
    const MemoryChange& change = changes[i];
    if (change.kind == MemoryChange::Kind::emptied)
      keep_from_ = std::chrono::steady_clock::now() + limits_.settle;
    for (auto pin = pins_.begin(); pin != pins_.end();) {
      const Handle each = pin++;
      const auto begin = reinterpret_cast<std::uintptr_t>(each->memory.data());
      if (each->stale || !change.overlaps(begin, begin + each->memory.size())) continue;
      ++statistics_.dropped;
      each->stale = true;
      if (change.kind == MemoryChange::Kind::unmapped && each->watched) {
        watch_->remove(each->memory, true);
        each->watched = false;
      }
      if (each->users == 0) end(each, false);
    }
  }
}

PinCache::Handle PinCache::find(std::uint64_t owner, ConstBytes memory, PinUse use) {
  return std::find_if(pins_.begin(), pins_.end(), [&](const Pin& pin) {
    if (pin.stale || pin.owner != owner || (pin.users != 0 && pin.use != use)) return false;
    return use == PinUse::exposed ? same(pin.memory, memory) : pin.writable && contains(pin.memory, memory);
  });
}

std::optional<PinCache::Handle> PinCache::take(std::uint64_t owner, ConstBytes memory, PinUse use) {
  tidy();
  Handle pin = watch_ != nullptr && !watch_->changing() ? find(owner, memory, use) : pins_.end();
  if (pin != pins_.end() && pin->use != use) {
    if (pinner_.change_use(*pin, use)) {
      pin->use = use;
    } else {
      exposes_ = false;
      end(pin, false);
      pin = pins_.end();
    }
  }
  if (pin != pins_.end()) {
    ++statistics_.hits;
    ++pin->users;
    pins_.splice(pins_.begin(), pins_, pin);
    return pin;
  }
  ++statistics_.misses;
  if (!enough_memory_for([&] { pins_.emplace_front(); })) return std::nullopt;
  pin = pins_.begin();
  pin->owner = owner;
  pin->memory = memory;
  pin->use = use;
  pin->users = 1;
  if (this->pin(*pin)) return pin;
  pins_.erase(pin);
  return std::nullopt;
}

/// Registers the memory. It is kept only if nothing has changed since the watch began.
bool PinCache::pin(Pin& pin) {
  const bool keep = watch_ != nullptr && (pin.use == PinUse::local || exposes_) &&
                    std::chrono::steady_clock::now() >= keep_from_ && make_place(pin.memory.size());
  if (keep) enough_memory_for([&] { pin.watched = watch_->add(pin.memory); });
  if (!pinner_.pin(pin) && (!drop_idle() || !pinner_.pin(pin))) {
    if (pin.watched) watch_->remove(pin.memory, false);
    return false;
  }
  statistics_.bytes += pin.memory.size();
  pin.stale = !pin.watched || watch_->changing();
  return true;
}

/// Returns false if the limits do not permit to keep so many bytes more.
bool PinCache::make_place(std::size_t bytes) {
  if (bytes > limits_.bytes || limits_.entries == 0) return false;
  for (auto pin = pins_.end(); pin != pins_.begin();) {
    if (pins_.size() <= limits_.entries && statistics_.bytes + bytes <= limits_.bytes) return true;
    const Handle each = --pin;
    if (each->users != 0) continue;
    ++pin;
    end(each, false);
  }
  return pins_.size() <= limits_.entries && statistics_.bytes + bytes <= limits_.bytes;
}

/// Ends all registrations that are not in use. Returns false if there are none.
bool PinCache::drop_idle() {
  bool any = false;
  for (auto pin = pins_.begin(); pin != pins_.end();) {
    const Handle each = pin++;
    if (each->users != 0) continue;
    end(each, false);
    any = true;
  }
  return any;
}

void PinCache::give_back(Handle pin) {
  if (--pin->users != 0) return;
  if (!pin->stale && pin->use == PinUse::exposed) {
    if (pinner_.change_use(*pin, PinUse::local)) {
      pin->use = PinUse::local;
    } else {
      exposes_ = false;
      pin->stale = true;
    }
  }
  if (pin->stale) end(pin, false);
}

void PinCache::drop_owner(std::uint64_t owner) {
  for (auto pin = pins_.begin(); pin != pins_.end();) {
    const Handle each = pin++;
    if (each->owner == owner) end(each, false);
  }
}

void PinCache::end(Handle pin, bool gone) {
  pinner_.unpin(*pin);
  statistics_.bytes -= pin->memory.size();
  if (pin->watched) watch_->remove(pin->memory, gone);
  pins_.erase(pin);
}

}  // namespace cluster::os
