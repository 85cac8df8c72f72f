#include "api/key_ring.h"

#include <rdma/fi_errno.h>

#include <algorithm>
#include <cstring>

namespace cluster::api {

int KeyRing::insert(const void* key, std::size_t size, fi_addr_t& handle) {
  const auto* const bytes = static_cast<const std::uint8_t*>(key);
  if (size == 0 || !AuthKey::allowed(bytes, size)) return -FI_EINVAL;
  auto next = std::make_unique<AuthKey>(bytes, size);
  const std::lock_guard guard(lock_);
  const auto same = [&](const Entry& entry) {
    return entry.key != nullptr && std::ranges::equal(entry.key->bytes(), next->bytes());
  };
  auto place = std::ranges::find_if(entries_, same);
  if (place == entries_.end()) {
    for (std::size_t i = 0; i < kKeysMax && place == entries_.end(); ++i) {
      const std::size_t at = (next_ + i) % kKeysMax;
      if (entries_[at].key == nullptr) place = entries_.begin() + static_cast<std::ptrdiff_t>(at);
    }
    if (place == entries_.end()) return -FI_ENOSPC;
    next_ = static_cast<std::size_t>(place - entries_.begin()) + 1;
    place->key = std::move(next);
  }
  ++place->inserted;
  handle = handle_of(static_cast<std::uint8_t>(place - entries_.begin() + 1));
  return 0;
}

int KeyRing::remove(fi_addr_t handle) {
  const std::lock_guard guard(lock_);
  const fi_addr_t realm = handle - kHandles;
  if (realm == 0 || realm > kKeysMax || entries_[realm - 1].key == nullptr) return -FI_EINVAL;
  Entry& entry = entries_[realm - 1];
  if (entry.inserted == 1 && (entry.peers != 0 || entry.holds != 0)) return -FI_EBUSY;
  if (--entry.inserted == 0) entry.key.reset();
  return 0;
}

const KeyRing::Entry* KeyRing::entry(std::uint8_t realm) const {
  const bool there = realm != 0 && realm <= kKeysMax && entries_[realm - 1u].key != nullptr;
  return there ? &entries_[realm - 1u] : nullptr;
}

std::uint8_t KeyRing::present(fi_addr_t handle) const {
  const fi_addr_t realm = handle - kHandles;
  return realm <= kKeysMax && entry(static_cast<std::uint8_t>(realm)) != nullptr ? static_cast<std::uint8_t>(realm) : 0;
}

std::uint8_t KeyRing::realm_of(fi_addr_t handle) const {
  const std::lock_guard guard(lock_);
  return present(handle);
}

bool KeyRing::copy(std::uint8_t realm, void* key, std::size_t& size) const {
  const std::lock_guard guard(lock_);
  const Entry* const found = entry(realm);
  if (found == nullptr) return false;
  const ConstBytes bytes = found->key->bytes();
  if (key != nullptr) std::memcpy(key, bytes.data(), std::min(size, bytes.size()));
  size = bytes.size();
  return true;
}

std::uint8_t KeyRing::add_peer(fi_addr_t handle) {
  const std::lock_guard guard(lock_);
  const std::uint8_t realm = present(handle);
  if (realm != 0) ++entries_[realm - 1u].peers;
  return realm;
}

void KeyRing::drop_peer(std::uint8_t realm) {
  const std::lock_guard guard(lock_);
  --entries_[realm - 1u].peers;
}

std::unique_ptr<KeyRing::Hold> KeyRing::hold(std::uint8_t realm) {
  const std::lock_guard guard(lock_);
  std::uint32_t realms = 0;
  for (std::uint8_t each = 1; each <= kKeysMax; ++each) {
    if (entry(each) != nullptr && (realm == 0 || realm == each)) realms |= bit(each);
  }
  if (realms == 0) return nullptr;
  auto made = std::make_unique<Hold>(*this, realms);
  for (std::size_t i = 0; i < entries_.size(); ++i) entries_[i].holds += (realms & bit(i + 1)) != 0;
  return made;
}

void KeyRing::release(std::uint32_t realms) {
  const std::lock_guard guard(lock_);
  for (std::size_t i = 0; i < entries_.size(); ++i) entries_[i].holds -= (realms & bit(i + 1)) != 0;
}

std::vector<RealmKey> KeyRing::keys(std::uint32_t realms) const {
  const std::lock_guard guard(lock_);
  std::vector<RealmKey> keys;
  for (std::uint8_t each = 1; each <= kKeysMax; ++each) {
    if ((realms & bit(each)) != 0) keys.push_back({each, entries_[each - 1u].key->bytes()});
  }
  return keys;
}

}  // namespace cluster::api
