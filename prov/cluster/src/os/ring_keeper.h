// Keeps the sockets of a ring group in the kernel's fanout group after their owners have left or died. The
// keeper is a datagram socket that is connected to itself. Its queue contains one message for each ring: the
// serial of the place and a copy of the ring's descriptor. All processes of the group have this socket open.
// If a process dies, the kernel closes its descriptors, but not the copies in the queue. If all processes of
// the group die, the kernel discards the queue and with it the last copies.
//
// The caller must hold the lock of the group, because all processes share the socket's position for reading.
#pragma once

#include <cstdint>
#include <span>
#include <utility>
#include <vector>

#include "os/descriptor.h"

namespace cluster::os {

class RingKeeper {
 public:
  RingKeeper() = default;
  explicit RingKeeper(Descriptor socket) : socket_(std::move(socket)) {}
  /// Opens a keeper without rings. On failure, returns an empty keeper, with an errno in `error`.
  static RingKeeper open(int& error);

  explicit operator bool() const { return static_cast<bool>(socket_); }
  const Descriptor& socket() const { return socket_; }

  /// Puts a copy of the descriptor into the queue. Returns 0 or an errno.
  int keep(std::uint64_t serial, const Descriptor& ring) const;
  /// Returns a copy of the descriptor with this serial, or an empty descriptor if the queue has none.
  Descriptor copy_of(std::uint64_t serial) const;
  /// Takes the descriptors of these serials out of the queue, and returns them. If the process dies during
  /// the call, no other descriptor is lost.
  std::vector<Descriptor> withdraw(std::span<const std::uint64_t> serials) const;

 private:
  struct Kept {
    std::uint64_t serial = 0;
    Descriptor ring;
  };

  /// Returns false if no message is at the position for reading. `flags`: MSG_PEEK or 0.
  bool receive(Kept& kept, int flags) const;
  void read_from(std::size_t message) const;

  Descriptor socket_;
};

}  // namespace cluster::os
