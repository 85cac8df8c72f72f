// What collective operations ask of their endpoint: messages to members and from them, of a matching of their own.
// Outcomes come back through protocol::CollectiveListener.
#pragma once

#include <cstddef>
#include <cstdint>

#include "protocol/ops.h"

namespace cluster::collective {

class Transport {
 public:
  virtual ~Transport() = default;
  /// ok: taken, its outcome goes to the CollectiveListener; again: repeat after progress; else refused.
  virtual Status send(const protocol::SendOp& op) = 0;
  virtual Status receive(const protocol::RecvOp& op) = 0;
  /// A receive that no message has matched yet ends with Status::canceled.
  virtual void cancel(const void* context) = 0;
  /// Throws away stored messages whose tag matches; how many there were.
  virtual std::size_t discard(std::uint64_t tag, std::uint64_t ignore) = 0;
};

}  // namespace cluster::collective
