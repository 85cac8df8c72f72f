// Asks the kernel of a peer's node whether the peer's process still exists. A process that is stopped, or
// gets no processor time, answers no keep-alive. The kernel of its node answers in its place, and knows
// whether the process has ended. The silence of the kernel proves nothing: the node may be down, or something
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
  /// Returns true if this node's kernel answers for this process when peers ask. The openings of this process
  /// tell peers the result.
  virtual bool answered_here() const = 0;
  /// Returns what is known now. The first call begins to ask the kernel of the peer's node. As long as the
  /// peer's opening has not said that the peer's kernel answers, only the answer `exists` proves anything.
  virtual Answer ask(const SocketAddress& peer) = 0;
  /// Sets the hosts of the peers in the address vector, by their IP addresses. The probe reserves resources
  /// for its answers to these hosts. Other hosts cannot use up these resources. If there are more than
  /// kHostsMax hosts, the caller passes an empty list, and the probe treats all hosts alike.
  static constexpr std::size_t kHostsMax = 1024;
  virtual void set_members(std::span<const SocketAddress>) {}
  /// Ends the question about this peer. A later ask() asks anew.
  virtual void end(const SocketAddress& peer) = 0;
};

}  // namespace cluster::link
