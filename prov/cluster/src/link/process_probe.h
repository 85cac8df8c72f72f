// Asks the kernel of a peer's node whether the peer's process still exists. A process that gets no processor
// time or is stopped answers no keep-alive. The kernel of its node answers in its place, and knows whether
// the process has ended. Silence of the kernel proves nothing, because the node may be down, or something
// between the nodes may filter the question.
#pragma once

#include <cstddef>
#include <span>

#include "base/address.h"

namespace cluster::link {

class ProcessProbe {
 public:
  enum class Answer : unsigned char { none, exists, ended };

  virtual ~ProcessProbe() = default;
  /// Returns true if this node's kernel answers for this process when peers ask. In its openings, this
  /// process tells peers whether the kernel does so.
  virtual bool answered_here() const = 0;
  /// Returns what is known now. The first call begins to ask the kernel. Unless the peer's opening has said
  /// that its kernel answers, only the answer `exists` counts.
  virtual Answer ask(const SocketAddress& peer) = 0;
  /// Sets the hosts of the peers in the address vector, by their IP addresses. Resources are reserved for
  /// answering these hosts, and other hosts cannot use them up. If the list is empty or longer than
  /// kHostsMax, all hosts are treated alike.
  static constexpr std::size_t kHostsMax = 1024;
  virtual void set_members(std::span<const SocketAddress>) {}
  virtual void end(const SocketAddress& peer) = 0;
};

}  // namespace cluster::link
