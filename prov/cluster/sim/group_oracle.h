// Judges messages to a group. Once a receiver has met a sender, it takes every message that the sender
// posts: once, in order and intact. This ends when the receiver leaves, when the sender removes it, or when
// one of the two dies. When a message is reported as delivered, every member that is due to receive it must
// have taken it.
#pragma once

#include <cstdint>
#include <map>
#include <set>
#include <utility>
#include <vector>

#include "base/bytes.h"
#include "sim/content.h"

namespace cluster::sim {

/// One membership of one host. If a host joins again, this is another membership.
using Membership = std::uint32_t;

class GroupOracle {
 public:
  /// A sender posts its next message. Returns the number of the message.
  MessageNumber posted(Membership sender, std::size_t size);
  /// A message is reported as delivered to all.
  void delivered(Membership sender, MessageNumber number);
  /// A receiver has taken a whole message.
  void taken(Membership receiver, Membership sender, ConstBytes bytes);
  /// The sender has removed the receiver.
  void apart(Membership receiver, Membership sender) { apart_.insert({receiver, sender}); }
  /// A member has left. It receives no more, but its own messages must still reach all others.
  void left(Membership one) { left_.insert(one); }
  void died(Membership one) { died_.insert(one); }
  /// `receiver` has met `sender`. The receiver must take what the sender posts after the first such call.
  void met(Membership receiver, Membership sender);
  /// Throws if messages are missing between members that are still together. Called at the end of a run.
  void check_complete() const;

  std::uint64_t messages() const { return messages_.size(); }
  std::uint64_t bytes() const { return bytes_; }

 private:
  struct Sent {
    Membership sender;
    std::size_t size;
    std::uint64_t place;  ///< position among the sender's messages
  };
  struct Pair {
    bool begun = false;
    std::uint64_t next = 0;  ///< place of the next message
  };
  using PairName = std::pair<Membership, Membership>;  ///< receiver, sender
  bool excused(const PairName& name) const {
    return apart_.contains(name) || left_.contains(name.first) || died_.contains(name.first) ||
           died_.contains(name.second);
  }

  std::vector<Sent> messages_;                ///< by number, from 1
  std::map<Membership, std::uint64_t> sent_;  ///< how many messages each sender has posted
  std::map<PairName, Pair> pairs_;
  std::map<PairName, std::uint64_t> met_;  ///< how many messages the sender had posted by then
  std::set<PairName> apart_;
  std::set<Membership> left_;
  std::set<Membership> died_;
  std::uint64_t bytes_ = 0;
};

}  // namespace cluster::sim
