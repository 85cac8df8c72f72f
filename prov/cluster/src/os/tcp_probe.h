// The process probe (link/process_probe.h) over TCP. Each endpoint listens on the TCP port that has the number of its
// UDP port. Nothing is ever sent there: what counts is that the kernel accepts connections, and acknowledges TCP
// keep-alives on them, exactly as long as the process lives, whether it runs or not, and resets them when it has
// ended. Unlike ICMP errors these answers have no rate limit, and a forger has to guess a sequence number.
//
// The side that asks keeps one connection to a peer as long as it is suspicious. The side that is asked leaves
// connections in the kernel's queue and only takes out those that the other side has given up (keep_clear).
// A port that another program uses, and a filter on the way, mean that nothing is known.
//
// Called under the engine's lock, but for the part that the progress thread runs.
#pragma once

#include <memory>
#include <unordered_map>
#include <utility>

#include "base/log.h"
#include "link/process_probe.h"
#include "os/descriptor.h"

namespace cluster::os {

class TcpProbe final : public link::ProcessProbe {
 public:
  /// For the endpoint of this name. Without a port of its own it can still ask; the log says why it has none.
  static std::unique_ptr<TcpProbe> open(const SocketAddress& name, Log& log);

  bool answered_here() const override { return port_ != nullptr; }
  Answer ask(const SocketAddress& peer) override;
  void end(const SocketAddress& peer) override { asked_.erase(peer); }

 private:
  explicit TcpProbe(std::shared_ptr<void> port) : port_(std::move(port)) {}

  std::shared_ptr<void> port_;  ///< listens, and is kept clear; null: none
  struct Asked {
    Descriptor connection;
    bool watched = false;  ///< its kernel sends keep-alives
  };
  std::unordered_map<SocketAddress, Asked, SocketAddressHash> asked_;
};

}  // namespace cluster::os
