// The keys of the endpoints of this process, for what serves several endpoints (a domain's registered memory): by the
// endpoint's name, from its opening to its end. For all threads.
#pragma once

#include <memory>
#include <mutex>
#include <unordered_map>

#include "base/address.h"
#include "seal/job_key.h"

namespace cluster::provider {

class EndpointKeys {
 public:
  /// Until the handle is dropped.
  std::shared_ptr<void> add(const SocketAddress& name, const seal::JobKeys& keys) {
    // Where there is no memory for the handle, or behind it, its end takes the lock.
    std::shared_ptr<void> handle{this, [name](EndpointKeys* all) { all->remove(name); }};
    const std::lock_guard guard(lock_);
    keys_[name] = keys;
    return handle;
  }
  /// Empty: the endpoint has none.
  seal::JobKeys of(const SocketAddress& name) {
    const std::lock_guard guard(lock_);
    const auto found = keys_.find(name);
    return found != keys_.end() ? found->second : seal::JobKeys{};
  }

 private:
  void remove(const SocketAddress& name) {
    const std::lock_guard guard(lock_);
    keys_.erase(name);
  }

  std::mutex lock_;
  std::unordered_map<SocketAddress, seal::JobKeys, SocketAddressHash> keys_;
};

}  // namespace cluster::provider
