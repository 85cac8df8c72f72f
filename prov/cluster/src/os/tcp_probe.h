// The process probe (link/process_probe.h) over TCP. Each endpoint listens on the TCP port that has the number of its
// UDP port. Nothing is ever sent there: what counts is that the kernel accepts connections, and acknowledges TCP
// keep-alives on them, exactly as long as the process lives, whether it runs or not, and resets them when it has
// ended. Unlike ICMP errors these answers have no rate limit, and a forger has to guess a sequence number.
//
// The side that asks keeps one connection to a peer as long as it is suspicious. The side that is asked leaves
// connections in the kernel's queue and only takes out those that the other side has given up (keep_clear), or whose host has vanished:
// the kernel asks for that by keep-alives of its own. Any host can fill such a queue, and a process that is stopped takes nothing out:
// so there are two listeners, one for the hosts of members, which the kernel tells by their addresses, and one for all others.
// A port that another program uses, and a filter on the way, mean that nothing is known.
//
// Called under the engine's lock, but for the part that the progress thread runs.
#pragma once

#include <cstdint>
#include <memory>
#include <unordered_map>
#include <utility>

#include "base/log.h"
#include "link/process_probe.h"
#include "os/descriptor.h"

namespace cluster::os {

struct ProbePort;

class TcpProbe final : public link::ProcessProbe {
 public:
  /// For the endpoint of this name. Without a port of its own it can still ask; the log says why it has none.
  static std::unique_ptr<TcpProbe> open(const SocketAddress& name, Log& log);

  bool answered_here() const override { return port_ != nullptr; }
  Answer ask(const SocketAddress& peer) override;
  void set_members(std::span<const SocketAddress> hosts) override;
  void end(const SocketAddress& peer) override { asked_.erase(peer); }

 private:
  TcpProbe(const SocketAddress& name, std::shared_ptr<ProbePort> port, std::uint64_t secret)
      : name_(name), port_(std::move(port)), secret_(secret) {}

  SocketAddress name_;
  std::shared_ptr<ProbePort> port_;  ///< listens, and is kept clear; null: none
  std::uint64_t secret_;             ///< of steering_by_host()
  struct Asked {
    Descriptor connection;
    bool watched = false;  ///< its kernel sends keep-alives
  };
  std::unordered_map<SocketAddress, Asked, SocketAddressHash> asked_;
};

}  // namespace cluster::os
