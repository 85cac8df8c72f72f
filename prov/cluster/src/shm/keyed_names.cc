#include "shm/keyed_names.h"

#include <utility>

#include "os/local_socket.h"
#include "seal/local_proof.h"

namespace cluster::shm {

std::vector<KeyedName> keyed_names(const std::string& plain, const seal::JobKeys& keys) {
  std::vector<KeyedName> names;
  if (keys.empty()) names.push_back({plain, nullptr});
  for (const auto& key : keys) {
    std::string hidden = seal::hidden_socket_name(*key, plain);
    if (!hidden.empty()) names.push_back({std::move(hidden), key});
  }
  return names;
}

KeyedSocket connect_to(const std::vector<KeyedName>& names, bool expected, std::string& reason, bool* full) {
  reason = "the key cannot be used";
  bool any_full = false;
  for (const KeyedName& name : names) {
    bool its = false;
    if (os::LocalSocket socket = os::connect_to_own(name.socket, expected, reason, &its))
      return {std::move(socket), name.key};
    any_full |= its;
  }
  if (full != nullptr) *full = any_full;
  return {};
}

KeyedListener KeyedListener::listen(const std::vector<KeyedName>& names, std::string& reason) {
  KeyedListener all;
  if (names.size() > 1) all.wait_set_ = os::WaitSet::open();
  if (names.empty()) reason = "the key cannot be used";
  for (const KeyedName& name : names) {
    os::LocalSocket socket = os::listen_as_own(name.socket, reason);
    if (!socket) return {};
    if (names.size() > 1 && (all.wait_set_ == nullptr || !all.wait_set_->add(socket.descriptor(), nullptr))) {
      reason = "there are no descriptors left";
      return {};
    }
    all.sockets_.push_back({std::move(socket), name.key});
  }
  return all;
}

KeyedSocket KeyedListener::accept(std::string& reason, bool* exhausted) const {
  for (const KeyedSocket& each : sockets_) {
    os::LocalSocket socket = each.socket.accept(reason, exhausted);
    if (socket || !reason.empty()) return {std::move(socket), each.key};
  }
  return {};
}

}  // namespace cluster::shm
