// The process probe (link/process_probe.h) over TCP. Each endpoint listens on the TCP port with the same
// number as its UDP port. No data is ever sent to that port. As long as the process exists, even if it is
// stopped, its kernel accepts connections and acknowledges TCP keep-alives. When the process has ended, the
// kernel resets the connections. Unlike ICMP errors, these answers have no rate limit, and a forger has to
// guess a sequence number.
//
// While an endpoint suspects that a peer has died, it keeps one connection to that peer. The peer's progress
// thread accepts connections and closes those that the other side has closed (keep_clear). It also closes the
// connections that the kernel has ended. By TCP keep-alives, the kernel ends the connections of hosts that
// are no longer reachable. Any host can fill the queue of a listener, and a stopped process does not empty
// it. Therefore there are two listeners: one for the hosts in the address vector, which the kernel recognizes
// by their addresses, and one for all others. If another program uses the port, answered_here() is false, and
// the endpoint tells its peers so. If a firewall drops the connection, or rejects it with an ICMP error, the
// probe has no answer.
//
// The engine calls all methods while it holds its lock. Only keep_clear() runs on the progress thread.
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
  /// Opens the probe of the endpoint with the address `name`. If the probe cannot listen, this function
  /// writes the reason to the log. The probe can still ask about peers.
  static std::unique_ptr<TcpProbe> open(const SocketAddress& name, Log& log);

  bool answered_here() const override { return port_ != nullptr; }
  Answer ask(const SocketAddress& peer) override;
  void set_members(std::span<const SocketAddress> hosts) override;
  void end(const SocketAddress& peer) override { asked_.erase(peer); }

 private:
  TcpProbe(const SocketAddress& name, std::shared_ptr<ProbePort> port, std::uint64_t secret)
      : name_(name), port_(std::move(port)), secret_(secret) {}

  SocketAddress name_;
  std::shared_ptr<ProbePort> port_;  ///< the listeners; null if the probe cannot listen
  std::uint64_t secret_;             ///< the secret of steering_by_host()
  struct Asked {
    Descriptor connection;
    bool watched = false;  ///< the kernel sends TCP keep-alives on the connection
  };
  std::unordered_map<SocketAddress, Asked, SocketAddressHash> asked_;
};

}  // namespace cluster::os
