// The endpoints of one domain of this process, by name. Programs open several over one address vector, and give their
// peers the name of only one: no peer has heard of the endpoint of an OpenSHMEM context. A peer that knows one endpoint
// of a process trusts another one if the first confirms it (network/sibling_check.h). The first looks it up here.
//
// Engines of several threads use the roster, so every function locks.
#pragma once

#include <memory>
#include <mutex>
#include <vector>

#include "base/address.h"
#include "wire/opening.h"

namespace cluster::network {

class EndpointRoster {
 public:
  /// An endpoint is on the roster as long as its entry exists. The engine outlives the entry.
  class Entry {
   public:
    /// `roster` may be null.
    Entry(std::shared_ptr<EndpointRoster> roster, const SocketAddress& name);
    ~Entry();
    Entry(const Entry&) = delete;
    Entry& operator=(const Entry&) = delete;
    /// The application has asked for its name, and may have given it to peers.
    void set_published();

   private:
    std::shared_ptr<EndpointRoster> roster_;
    SocketAddress name_;
  };

  /// The endpoint that peers of `name` probably know: the first whose name the application has asked for, or else the first
  /// that was opened. Empty if that is `name` itself.
  SocketAddress sibling_of(const SocketAddress& name) const;
  /// True if an endpoint has the name, which is compared as it lies on the wire.
  bool contains(const wire::RailBlock& name) const;

 private:
  struct Listed {
    SocketAddress name;
    bool published = false;
  };

  mutable std::mutex mutex_;
  std::vector<Listed> listed_;  ///< in the order in which they were opened
};

}  // namespace cluster::network
