#include "sim/group_oracle.h"

#include <string>

#include "sim/failure.h"

namespace cluster::sim {
namespace {

std::string text_of(Membership receiver, Membership sender) {
  return "member " + std::to_string(receiver) + " from member " + std::to_string(sender);
}

}  // namespace

MessageNumber GroupOracle::posted(Membership sender, std::size_t size) {
  messages_.push_back({sender, size, sent_[sender]++});
  return messages_.size();
}

void GroupOracle::taken(Membership receiver, Membership sender, ConstBytes bytes) {
  const std::string what = text_of(receiver, sender);
  if (bytes.size() < kNumberedFrom) throw SafetyFailure(what + ": a message that is too short");
  const MessageNumber number = number_in(bytes);
  if (number == 0 || number > messages_.size()) throw SafetyFailure(what + ": a message that was never sent");
  const Sent& sent = messages_[number - 1];
  if (sent.sender != sender)
    throw SafetyFailure(what + ": a message of member " + std::to_string(sent.sender));
  if (sent.size != bytes.size()) throw SafetyFailure(what + ": a message of a wrong length");
  if (first_wrong_byte(number, bytes) != bytes.size()) throw SafetyFailure(what + ": wrong bytes");
  Pair& pair = pairs_[{receiver, sender}];
  if (pair.begun && sent.place != pair.next) {
    throw SafetyFailure(what + ": message " + std::to_string(sent.place) + " in place of " +
                        std::to_string(pair.next));
  }
  pair = {true, sent.place + 1};
  bytes_ += bytes.size();
}

void GroupOracle::met(Membership receiver, Membership sender) {
  met_.try_emplace({receiver, sender}, sent_[sender]);
}

void GroupOracle::delivered(Membership sender, MessageNumber number) {
  const Sent& sent = messages_.at(number - 1);
  for (const auto& [name, posted_before] : met_) {
    if (name.second != sender || excused(name) || posted_before > sent.place) continue;
    const auto pair = pairs_.find(name);
    if (pair == pairs_.end() || pair->second.next <= sent.place) {
      throw SafetyFailure(text_of(name.first, sender) + ": message " + std::to_string(sent.place) +
                          " counts as delivered and is not");
    }
  }
}

void GroupOracle::check_complete() const {
  for (const auto& [name, posted_before] : met_) {
    if (excused(name)) continue;
    const std::uint64_t sent = sent_.at(name.second);
    const auto pair = pairs_.find(name);
    const std::uint64_t has = pair != pairs_.end() ? pair->second.next : posted_before;
    if (has != sent) {
      throw LivenessFailure(text_of(name.first, name.second) + ": has " + std::to_string(has) + " of " +
                            std::to_string(sent) + " messages");
    }
  }
}

}  // namespace cluster::sim
