// Many stored messages, found by what a receive looks for. A message can be looked for under any mask, so
// there is nothing to index it by until it is known how receives look. The last two ways in which long walks
// were made twice running (from one sender or from any, and under which mask) have a view each; programs
// that look in more ways than that go on walking.
#pragma once

#include <array>
#include <cstdint>
#include <optional>

#include "base/hashed_lists.h"
#include "protocol/match_key.h"
#include "protocol/recv_requests.h"

namespace cluster::protocol {

class UnexpectedIndex {
 public:
  UnexpectedIndex() = default;
  UnexpectedIndex(const UnexpectedIndex&) = delete;  // the views' keys point into them

  void add(UnexpectedMessage& message);
  void remove(UnexpectedMessage& message);

  struct Answer {
    bool known = false;                    ///< false: no view of this kind, walk
    UnexpectedMessage* message = nullptr;  ///< the first that is available and fits
  };
  Answer find(const Channel* from, std::uint64_t tag, std::uint64_t ignore);
  /// A long walk in that way was made; `first`: the stored messages in the order they arrived.
  void walked(bool directed, std::uint64_t ignore, UnexpectedMessage* first);

 private:
  struct Way {
    bool directed = false;
    std::uint64_t ignore = 0;
    friend bool operator==(const Way&, const Way&) = default;
  };
  struct KeyOf {
    const Way* way;
    std::uint64_t operator()(const UnexpectedMessage& message) const {
      return match_key(way->directed ? message.channel : nullptr, message.tag, way->ignore);
    }
  };
  template <Hook<UnexpectedMessage> UnexpectedMessage::*hook>
  struct View {
    Way way;
    bool used = false;
    HashedLists<UnexpectedMessage, hook, KeyOf> messages{KeyOf{&way}};

    UnexpectedMessage* find(const Channel* from, std::uint64_t tag, std::uint64_t ignore);
    void remove(UnexpectedMessage& message);
    void begin(const Way& new_way, UnexpectedMessage* first);
  };

  View<&UnexpectedMessage::first_bucket> first_;
  View<&UnexpectedMessage::second_bucket> second_;
  std::optional<Way> walked_before_;
  bool first_is_older_ = true;
};

}  // namespace cluster::protocol
