// Receives frames that hosts send to a multicast group. To send a frame to the group, pass the frame to a
// link, with a path to the group's address. As with a link, frames may be lost, duplicated, reordered or
// damaged.
#pragma once

#include <memory>
#include <span>
#include <string>

#include "base/address.h"
#include "link/link.h"

namespace cluster::link {

/// This host is a member of the group as long as the object exists.
class MulticastReceiver {
 public:
  /// The largest number of frames that one receive_burst() returns. If a call with space for kBurst frames
  /// returns fewer, the socket is empty.
  static constexpr std::size_t kBurst = 16;

  virtual ~MulticastReceiver() = default;
  /// Does what Link::receive_burst() does. The frames may include some that this endpoint has sent.
  virtual std::size_t receive_burst(std::span<InFrame> frames) = 0;
  /// Returns a descriptor that is readable when frames wait. Returns -1 if a thread that waits for frames
  /// cannot sleep.
  virtual int descriptor() const = 0;
};

class MulticastJoiner {
 public:
  virtual ~MulticastJoiner() = default;
  /// Joins a group. If the network or this host does not support multicast, returns null and sets the reason.
  /// After the call, frames to the group are sent through the interface that has the endpoint's address.
  /// `members`: the names of the other members, or empty if they are not known. If none of them is on this
  /// host, the kernel need not deliver the frames of this host on this host itself.
  virtual std::unique_ptr<MulticastReceiver> join(const SocketAddress& group,
                                                  std::span<const SocketAddress> members,
                                                  std::string& reason) = 0;
};

}  // namespace cluster::link
