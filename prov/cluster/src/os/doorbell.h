// The doorbell of an endpoint: one datagram socket (AF_UNIX) under an abstract name. Any number of peers on this node ring it by a byte,
// and none of them needs a connection. An endpoint with a thousand peers has one descriptor to ring all their doorbells, and one
// to ask the kernel whether they exist, which it connects to one after the other.
//
// A ring does not say which process rang, and processes of other users can ring: it means nothing but "look". A socket whose queue is
// full is readable already, so a ring may be lost there.
#pragma once

#include <sys/socket.h>
#include <sys/un.h>

#include <memory>
#include <string>
#include <string_view>

#include "os/descriptor.h"

namespace cluster::os {

/// An abstract name: its first byte is zero, and its length counts.
struct LocalName {
  explicit LocalName(std::string_view name);

  const sockaddr* get() const { return reinterpret_cast<const sockaddr*>(&address); }

  sockaddr_un address{};
  socklen_t size;
};

class Doorbell {
 public:
  /// Null if another socket has the name, or there is no descriptor; `reason` says why.
  static std::shared_ptr<Doorbell> open(const LocalName& name, std::string& reason);

  /// Readable once a peer has rung, until clear().
  int descriptor() const { return socket_.number(); }
  void clear() const;

  /// Makes the peer's doorbell readable, if it is not already.
  void ring(const LocalName& peer) const;
  /// False once no socket has this name: the peer's process has ended or executes another program. Rings the peer if this process has no
  /// free descriptor. Not for two threads at once.
  bool exists(const LocalName& peer) const;

 private:
  explicit Doorbell(Descriptor socket) : socket_(std::move(socket)) {}

  Descriptor socket_;
  mutable Descriptor asking_;  ///< on first use
};

}  // namespace cluster::os
