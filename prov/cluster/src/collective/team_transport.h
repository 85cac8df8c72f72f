// What collective operations ask of their endpoint: messages to members and from them, of a matching of their own.
// Outcomes come back through protocol::CollectiveListener.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "base/address.h"
#include "protocol/ops.h"

namespace cluster::collective {

class TeamTransport {
 public:
  virtual ~TeamTransport() = default;
  /// Nodes can be reached by multicast.
  virtual bool has_multicast() const = 0;
  /// A group of these members, one of which is this one; `key` is the same at all of them. Returns its address.
  virtual std::uint64_t open_group(const std::vector<SocketAddress>& members, std::uint64_t key) = 0;
  /// All of them have joined it: until then nothing is sent to it.
  virtual bool group_joined(std::uint64_t group) const = 0;
  /// One more operation waits for something of it; it is over with end_wait().
  virtual void expect(std::uint64_t group) = 0;
  virtual void end_wait(std::uint64_t group) = 0;
  /// What was sent to it still arrives.
  virtual void close_group(std::uint64_t group) = 0;
  /// ok: taken, its outcome goes to the CollectiveListener; again: repeat after progress; else refused.
  virtual Status send(const protocol::SendOp& op) = 0;
  virtual Status receive(const protocol::RecvOp& op) = 0;
  /// A receive that no message has matched yet ends with Status::canceled.
  virtual void cancel(const void* context) = 0;
  /// Throws away stored messages whose tag matches; how many there were.
  virtual std::size_t discard(std::uint64_t tag, std::uint64_t ignore) = 0;
};

}  // namespace cluster::collective
