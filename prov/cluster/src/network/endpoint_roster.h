// The endpoints of one domain of this process, by name. Programs open several endpoints over one address
// vector, but give their peers the name of only one. For example, no peer knows the endpoint of an OpenSHMEM
// context. If a peer knows one endpoint of a process, it trusts another endpoint once the known endpoint
// confirms that both belong to the same process (network/sibling_check.h). The known endpoint looks up the
// other one here.
//
// Engines in several threads use the roster, so every function takes the lock.
#pragma once

#include <algorithm>
#include <cstring>
#include <memory>
#include <mutex>
#include <utility>
#include <vector>

#include "base/address.h"
#include "wire/opening.h"

namespace cluster::network {

class EndpointRoster {
 public:
  /// Keeps an endpoint on the roster as long as the entry exists.
  class Entry {
   public:
    Entry(std::shared_ptr<EndpointRoster> roster, const SocketAddress& name)
        : roster_(std::move(roster)), name_(name) {
      const std::lock_guard guard(roster_->mutex_);
      roster_->listed_.push_back({name_});
    }
    ~Entry() {
      const std::lock_guard guard(roster_->mutex_);
      roster_->listed_.erase(std::ranges::find(roster_->listed_, name_, &Listed::name));
    }
    Entry(const Entry&) = delete;
    Entry& operator=(const Entry&) = delete;
    /// Records that the application has asked for the endpoint's name, and may have given it to peers.
    void set_published() {
      const std::lock_guard guard(roster_->mutex_);
      for (Listed& one : roster_->listed_) one.published |= one.name == name_;
    }

   private:
    std::shared_ptr<EndpointRoster> roster_;
    SocketAddress name_;
  };

  /// Returns the name of the endpoint that the peers of `name` probably know. That is the first endpoint
  /// whose name the application has asked for, or else the first that was opened. Returns an empty address if
  /// the known endpoint is `name` itself.
  SocketAddress sibling_of(const SocketAddress& name) const {
    const std::lock_guard guard(mutex_);
    if (listed_.empty()) return {};
    const auto published = std::ranges::find(listed_, true, &Listed::published);
    const SocketAddress& known = published != listed_.end() ? published->name : listed_.front().name;
    return known == name ? SocketAddress{} : known;
  }
  /// Returns true if an endpoint has the name. Compares names in their wire format.
  bool contains(const wire::RailBlock& name) const {
    const std::lock_guard guard(mutex_);
    return std::ranges::any_of(listed_, [&name](const Listed& one) {
      const wire::RailBlock block = wire::rail_block(one.name);
      return std::memcmp(&block, &name, sizeof block) == 0;
    });
  }

 private:
  struct Listed {
    SocketAddress name;
    bool published = false;
  };

  mutable std::mutex mutex_;
  std::vector<Listed> listed_;  ///< the endpoints, in the order in which they were opened
};

}  // namespace cluster::network
