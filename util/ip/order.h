// Messages of one peer in the order of their numbers.
//
// The provider matches messages in the order in which they were sent. Over several rails, though, the last part of one
// may arrive before that of its predecessor, and it is complete first. TCP takes packets in the wrong order for losses. So
// a message that comes too early waits for its predecessors, in the buffer where it is.
//
// After a failure a predecessor may never come. A failure is followed by a greeting, whose number is where they go on.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <utility>

namespace cluster::ip {

template <typename Held>
class Order {
 public:
  /// Returns true if the message may be delivered now: it is the next one, or is late. Otherwise keeps it.
  bool is_due(std::uint32_t number, const Held& message) {
    if (!next_) next_ = number;
    if (number != *next_) {
      const bool late = static_cast<std::int32_t>(number - *next_) < 0;
      if (!late) held_.emplace(number, message);
      return late;
    }
    ++*next_;
    return true;
  }
  /// The next message that is due among those kept.
  std::optional<Held> take_due() {
    const auto found = next_ ? held_.find(*next_) : held_.end();
    if (found == held_.end()) return std::nullopt;
    ++*next_;
    return take(found);
  }
  /// Gives up on messages that are missing: the lowest number of those kept is due now.
  void skip() {
    if (!held_.empty()) next_ = held_.begin()->first;
  }
  bool empty() const { return held_.empty(); }
  /// The next number is `number`. Nothing may be kept.
  void restart(std::uint32_t number) { next_ = number; }

 private:
  using Messages = std::map<std::uint32_t, Held>;

  Held take(typename Messages::iterator found) {
    Held message = found->second;
    held_.erase(found);
    return message;
  }

  std::optional<std::uint32_t> next_;  ///< none before the first message
  Messages held_;  ///< fewer than half of all numbers apart, so the lowest is the oldest but where they wrap
};

}  // namespace cluster::ip
