// Asks the kernel of a peer's node whether the peer's process still exists. A process that computes, starves
// or is stopped answers no keep-alive. Its kernel answers for it, and can tell it from a process that has
// ended. Silence proves nothing: the node may be down, or something on the way filters the question.
#pragma once

#include <cstddef>
#include <span>

#include "base/address.h"

namespace cluster::link {

class ProcessProbe {
 public:
  enum class Answer : unsigned char { none, exists, ended };

  virtual ~ProcessProbe() = default;
  /// Returns true if the kernel answers for this process when peers ask. The openings that this process sends
  /// say so.
  virtual bool answered_here() const = 0;
  /// Returns what is known now; the first call begins to ask. Unless the peer has said that its kernel
  /// answers, only `exists` counts.
  virtual Answer ask(const SocketAddress& peer) = 0;
  /// Sets the hosts of members, by their IP addresses. Other hosts cannot use up the resources for answering
  /// these hosts. If the list is empty or longer than kHostsMax, all hosts are treated alike.
  static constexpr std::size_t kHostsMax = 1024;
  virtual void set_members(std::span<const SocketAddress>) {}
  virtual void end(const SocketAddress& peer) = 0;
};

}  // namespace cluster::link
