// The process probe (link/process_probe.h) over TCP. Each endpoint listens on the TCP port that has the
// number of its UDP port. Nobody ever sends data there. As long as the process lives, running or stopped, its
// kernel accepts connections and acknowledges TCP keep-alives on them. When the process has ended, the kernel
// resets them. Unlike ICMP errors, these answers have no rate limit, and a forger has to guess a sequence
// number.
//
// The asking side keeps one connection to a peer as long as it suspects that peer. The side that is asked
// leaves connections in the kernel's queue. It takes out only those that the other side has given up
// (keep_clear), or whose host has vanished, which the kernel learns by its own keep-alives. Any host can fill
// such a queue, and a stopped process takes nothing out. So there are two listeners: one for the hosts of
// members, which the kernel recognizes by their addresses, and one for all others. If another program uses
// the port, or a filter on the way blocks the question, nothing is known.
//
// The engine calls it under its lock, except for the part that the progress thread runs.
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
  /// Opens the probe of the endpoint of this name. Without a port of its own, the probe can still ask; the
  /// log says why it has none.
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
    bool watched = false;  ///< the kernel sends keep-alives on it
  };
  std::unordered_map<SocketAddress, Asked, SocketAddressHash> asked_;
};

}  // namespace cluster::os
