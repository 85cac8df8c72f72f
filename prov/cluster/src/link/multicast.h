// Receives frames that hosts send to a multicast group. To send one, pass a link a frame whose path leads to
// the group's address. As with a link, frames may be lost, duplicated, reordered or damaged.
#pragma once

#include <memory>
#include <span>
#include <string>

#include "base/address.h"
#include "link/link.h"

namespace cluster::link {

/// This host's membership of a group's address, for as long as the object lives.
class MulticastReceiver {
 public:
  /// Most frames of one receive_burst(). If fewer come, the socket is empty.
  static constexpr std::size_t kBurst = 16;

  virtual ~MulticastReceiver() = default;
  /// Does what Link::receive_burst() does. The frames may include some that this endpoint has sent.
  virtual std::size_t receive_burst(std::span<InFrame> frames) = 0;
  /// Readable when frames wait; -1: nobody can sleep on it.
  virtual int descriptor() const = 0;
};

class MulticastJoiner {
 public:
  virtual ~MulticastJoiner() = default;
  /// Joins a group. Returns null, and the reason, if the network or this host has no multicast. Afterwards,
  /// frames for the group leave by the interface that has the endpoint's name. `members`: the names of the
  /// other members; empty if they are not known. If none of them is on this host, the kernel need not return
  /// frames for the group to it.
  virtual std::unique_ptr<MulticastReceiver> join(const SocketAddress& group,
                                                  std::span<const SocketAddress> members,
                                                  std::string& reason) = 0;
};

}  // namespace cluster::link
