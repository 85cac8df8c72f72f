// What collective operations ask of their endpoint: messages to members and from them, of a matching of their own.
// Outcomes come back through protocol::CollectiveListener.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "base/address.h"
#include "base/status.h"
#include "protocol/ops.h"

namespace cluster::collective {

class Transport {
 public:
  virtual ~Transport() = default;
  /// Sends to all members of a group at once are possible: the same at all endpoints that can reach each other.
  virtual bool multicasts() const = 0;
  /// A group of these, of which this endpoint is one. Its handle, which is set at once, is a destination of sends when
  /// CollectiveListener::group_joined() has been called.
  virtual Status join_group(std::uint64_t key, const std::vector<SocketAddress>& roster, std::uint64_t& handle) = 0;
  virtual void leave_group(std::uint64_t handle) = 0;
  /// ok: taken, its outcome goes to the CollectiveListener; again: repeat after progress; else refused.
  virtual Status send(const protocol::SendOp& op) = 0;
  virtual Status receive(const protocol::RecvOp& op) = 0;
  /// A receive that no message has matched yet ends with Status::canceled.
  virtual void cancel(const void* context) = 0;
  /// Throws away stored messages whose tag matches; how many there were.
  virtual std::size_t discard(std::uint64_t tag, std::uint64_t ignore) = 0;
};

}  // namespace cluster::collective
