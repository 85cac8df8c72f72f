// Asks the kernel of a peer's node whether the peer's process still exists. A process that computes, starves or is stopped answers no
// keep-alive. Its kernel answers for it, and can tell it from a process that has ended. Silence proves nothing: the node may be down, or
// something on the way filters the question.
#pragma once

#include <cstddef>
#include <span>

#include "base/address.h"

namespace cluster::link {

class ProcessProbe {
 public:
  enum class Answer : unsigned char { none, exists, ended };

  virtual ~ProcessProbe() = default;
  /// True if the kernel answers for this process when peers ask: openings say so.
  virtual bool answered_here() const = 0;
  /// What is known now; the first call begins to ask. Unless the peer says that its kernel answers, only `exists` counts.
  virtual Answer ask(const SocketAddress& peer) = 0;
  /// The hosts of members, by their IP addresses: what is there to answer them others cannot use up. With more than kHostsMax of
  /// them, and an empty list, all are treated alike.
  static constexpr std::size_t kHostsMax = 1024;
  virtual void set_members(std::span<const SocketAddress>) {}
  virtual void end(const SocketAddress& peer) = 0;
};

}  // namespace cluster::link
