// Judges messages to a group. From one point on, each member receives every message of each sender, once, in
// order and intact. That ends when one of the two leaves, is removed or dies. A message reported as delivered
// must have reached every member due to receive it.
#pragma once

#include <cstdint>
#include <map>
#include <set>
#include <utility>
#include <vector>

#include "base/bytes.h"
#include "sim/content.h"

namespace cluster::sim {

/// One membership of one host: a host that joins again is another one.
using Membership = std::uint32_t;

class GroupOracle {
 public:
  /// A sender posts its next message.
  MessageNumber posted(Membership sender, std::size_t size);
  /// The first that is reported as delivered to all.
  void delivered(Membership sender, MessageNumber number);
  /// A receiver has taken a whole message.
  void taken(Membership receiver, Membership sender, ConstBytes bytes);
  /// The receiver was removed by the sender, or has lost it.
  void apart(Membership receiver, Membership sender) { apart_.insert({receiver, sender}); }
  /// It has left: it receives no more, but its own messages must still reach all.
  void left(Membership one) { left_.insert(one); }
  void died(Membership one) { died_.insert(one); }
  /// `receiver` and `sender` have met: what the sender posts from now on it takes.
  void met(Membership receiver, Membership sender);
  /// At the end: what is missing between pairs that are still together.
  void check_complete() const;

  std::uint64_t messages() const { return messages_.size(); }
  std::uint64_t bytes() const { return bytes_; }

 private:
  struct Sent {
    Membership sender;
    std::size_t size;
    std::uint64_t place;  ///< among the sender's messages
  };
  struct Pair {
    bool begun = false;
    std::uint64_t next = 0;  ///< place of the message that has to come
  };
  using PairName = std::pair<Membership, Membership>;  ///< receiver, sender
  bool excused(const PairName& name) const {
    return apart_.contains(name) || left_.contains(name.first) || died_.contains(name.first) ||
           died_.contains(name.second);
  }

  std::vector<Sent> messages_;                ///< by number, from 1
  std::map<Membership, std::uint64_t> sent_;  ///< how many
  std::map<PairName, Pair> pairs_;
  std::map<PairName, std::uint64_t> met_;  ///< how many the sender had posted by then
  std::set<PairName> apart_;
  std::set<Membership> left_;
  std::set<Membership> died_;
  std::uint64_t bytes_ = 0;
};

}  // namespace cluster::sim
