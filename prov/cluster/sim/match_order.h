// Judges the order of matching without knowing when messages arrived. For messages m1, m2 that one
// process sent to another in this order, and receives r1 of m1 and r2 of m2: if r2 was posted before
// r1 and would have taken m1 too, matching was out of order. If r2 was posted when m1 arrived, m1 should have
// matched r2. If m1 arrived before r2 was posted, r2 should have found m1 before m2.
#pragma once

#include <cstdint>
#include <unordered_map>
#include <vector>

namespace cluster::sim {

/// What a receive takes, as far as messages of one sender and kind go.
struct MatchCriteria {
  bool sender = true;  ///< takes messages of this sender at all
  std::uint64_t tag = 0;
  std::uint64_t ignore = 0;

  bool accepts(std::uint64_t message_tag) const { return sender && ((tag ^ message_tag) & ~ignore) == 0; }
};

class MatchOrder {
 public:
  struct Match {
    std::uint32_t message;   ///< order of the message in its lane
    std::uint64_t position;  ///< of the receive at its host
    std::uint64_t tag;       ///< of the message
    MatchCriteria criteria;  ///< of the receive
  };

  /// False if the match is out of order with one noted before, which `other` then is. `lane` names
  /// sender, receiver, their incarnations and the kind of message.
  bool note(std::uint64_t lane, const Match& match, Match& other);

 private:
  std::unordered_map<std::uint64_t, std::vector<Match>> lanes_;
};

}  // namespace cluster::sim
