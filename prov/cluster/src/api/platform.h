// What the api needs from whoever assembled the process: provider/ implements it over the real
// machine; conformance tests may implement it over a simulated one.
#pragma once

#include <memory>

#include "base/address.h"
#include "base/environment.h"
#include "engine/engine.h"
#include "engine/sleeper.h"

namespace cluster::api {

class Platform {
 public:
  virtual ~Platform() = default;
  virtual Log& log() = 0;
  virtual Clock& clock() = 0;
  /// For locks that are nearly always taken by one thread; null: they do without.
  virtual ThreadFence fence() { return nullptr; }
  /// The version of the libfabric that loaded us, FI_VERSION(major, minor).
  virtual std::uint32_t core_version() const = 0;
  /// Builds an engine of this service bound to `wanted` (port 0: any; empty: the best interface). On failure
  /// returns null and sets `error` to a positive libfabric error number, after one warning line that names
  /// cause and cure.
  virtual std::unique_ptr<engine::Engine> build_engine(const SocketAddress& wanted,
                                                       engine::EndpointType service, int& error) = 0;
  /// What a queue can sleep on; null if there is nothing to be had: then waiting means looking.
  virtual std::unique_ptr<engine::Sleeper> open_sleeper() { return nullptr; }
  /// What a node and a service (null: none, or the node names one) are called on the network in this
  /// family (none: in any); empty if there is no such name, or no resolver here.
  virtual SocketAddress resolve(const char* node, const char* service, SocketAddress::Family family) {
    static_cast<void>(node);
    static_cast<void>(service);
    static_cast<void>(family);
    return {};
  }
};

}  // namespace cluster::api
