// Judges the order of matching without knowing when messages arrived. A process has sent message m1 before
// message m2 to another process, where receive r1 took m1, and receive r2 took m2. If r2 was posted before
// r1, and would have taken m1, too, the matching was out of order. For if r2 was posted when m1 arrived, m1
// should have matched r2. If m1 arrived before r2 was posted, r2 should have found m1 before m2.
#pragma once

#include <cstdint>
#include <unordered_map>
#include <vector>

namespace cluster::sim {

/// Which messages of one sender and kind a receive accepts.
struct MatchCriteria {
  bool sender = true;  ///< accepts messages of this sender at all
  std::uint64_t tag = 0;
  std::uint64_t ignore = 0;

  bool accepts(std::uint64_t message_tag) const { return sender && ((tag ^ message_tag) & ~ignore) == 0; }
};

class MatchOrder {
 public:
  struct Match {
    std::uint32_t message;   ///< position of the message in its lane
    std::uint64_t position;  ///< position of the receive at its host
    std::uint64_t tag;       ///< of the message
    MatchCriteria criteria;  ///< of the receive
  };

  /// Notes a match. If it is out of order with an earlier match, returns false and sets `other` to that
  /// match. `lane` identifies sender, receiver, their incarnations and the kind of message.
  bool note(std::uint64_t lane, const Match& match, Match& other);

 private:
  std::unordered_map<std::uint64_t, std::vector<Match>> lanes_;
};

}  // namespace cluster::sim
