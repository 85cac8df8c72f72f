// The endpoints of one domain of this process, by name. Programs open several over one address vector, and give their
// peers the name of one alone: a context of OpenSHMEM is an endpoint of which no peer has heard. Peers that know one endpoint
// of a process may take another of them for as well known (network/sibling_check.h), if the first says so: this is where it
// looks. Beside its name nothing of an endpoint is known here.
//
// Engines of several threads use it: every function locks.
#pragma once

#include <memory>
#include <mutex>
#include <vector>

#include "base/address.h"
#include "wire/opening.h"

namespace cluster::network {

class EndpointRoster {
 public:
  /// An endpoint is on the roster as long as its entry exists, which is shorter than its engine does.
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

  /// The endpoint that peers of `name` probably know: the first whose name the application has asked for, else the first
  /// of all. Empty if that is this one.
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
