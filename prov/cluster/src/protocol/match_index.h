// When a message matches a receive, and indices of many receives and of many messages. The key under which both are looked up is
// equal for messages and receives that match under one mask: an index needs one lookup per mask.
#pragma once

#include <array>
#include <cstdint>
#include <optional>

#include "base/list.h"
#include "protocol/incoming_request.h"

namespace cluster::protocol {

inline bool fits(const Channel* wanted, std::uint64_t wanted_tag, std::uint64_t ignore,
                 const Channel* channel, std::uint64_t tag) {
  return ((wanted_tag ^ tag) & ~ignore) == 0 && (wanted == nullptr || wanted == channel);
}

/// `channel` null: from any sender. Equal for all that match each other under one `ignore`.
inline std::uint64_t match_key(const Channel* channel, std::uint64_t tag, std::uint64_t ignore) {
  // Channels lie far apart, so their low bits carry no information, and tags are small numbers.
  return (tag & ~ignore) ^ (static_cast<std::uint64_t>(reinterpret_cast<std::uintptr_t>(channel)) << 20);
}

/// Many posted receives. Programs use a handful of masks (exact, any tag, any source, their own bits): receives with one mask
/// form a view, and a message is looked up twice in each view under its masked tag, once with its sender and once for any
/// sender. Of the matches, the receive posted first wins: every receive has a number. Masks beyond kViews share a list that is
/// walked.
class PostedIndex {
 public:
  /// True while there is anything in it.
  bool in_use() const { return size_ > 0; }
  /// In the order of posting.
  void add(RecvRequest& receive);
  void remove(RecvRequest& receive);
  /// The first that matches such a message; stays.
  RecvRequest* find(const Channel* channel, std::uint64_t tag);

 private:
  static constexpr std::size_t kViews = 4;

  struct KeyOf {
    std::uint64_t operator()(const RecvRequest& receive) const {
      return match_key(receive.from, receive.tag, receive.ignore);
    }
  };
  struct View {
    std::uint64_t ignore = 0;
    HashedLists<RecvRequest, &RecvRequest::bucket, KeyOf> receives{KeyOf{}};
  };

  /// The view for that mask; null if there are too many masks.
  View* view_for(std::uint64_t ignore);

  std::array<View, kViews> views_;
  List<RecvRequest, &RecvRequest::bucket> others_;
  std::uint64_t next_number_ = 0;
  std::size_t size_ = 0;
};

/// Many unexpected messages. A receive may look for a message under any mask, so that there is no key before receives show
/// which masks they use. The last two kinds of lookup (one sender or any, and the mask) that caused long walks twice in a row
/// have a view each; programs with more kinds of lookup go on walking.
class UnexpectedIndex {
 public:
  UnexpectedIndex() = default;
  UnexpectedIndex(const UnexpectedIndex&) = delete;  // the views' keys point into them

  void add(UnexpectedMessage& message);
  void remove(UnexpectedMessage& message);

  struct Result {
    bool known = false;                    ///< false: no view for this kind of lookup, walk
    UnexpectedMessage* message = nullptr;  ///< the first that is available and matches
  };
  Result find(const Channel* from, std::uint64_t tag, std::uint64_t ignore);
  /// A lookup of this kind walked far; `first`: the stored messages in the order of arrival.
  void walked(bool directed, std::uint64_t ignore, UnexpectedMessage* first);

 private:
  struct Lookup {
    bool directed = false;
    std::uint64_t ignore = 0;
    friend bool operator==(const Lookup&, const Lookup&) = default;
  };
  struct KeyOf {
    const Lookup* lookup;
    std::uint64_t operator()(const UnexpectedMessage& message) const {
      return match_key(lookup->directed ? message.channel : nullptr, message.tag, lookup->ignore);
    }
  };
  template <Hook<UnexpectedMessage> UnexpectedMessage::*hook>
  struct View {
    Lookup lookup;
    bool used = false;
    HashedLists<UnexpectedMessage, hook, KeyOf> messages{KeyOf{&lookup}};

    UnexpectedMessage* find(const Channel* from, std::uint64_t tag, std::uint64_t ignore);
    void add(UnexpectedMessage& message);
    void remove(UnexpectedMessage& message);
    void begin(const Lookup& new_lookup, UnexpectedMessage* first);
  };

  View<&UnexpectedMessage::first_bucket> first_;
  View<&UnexpectedMessage::second_bucket> second_;
  std::optional<Lookup> walked_before_;
  bool first_is_older_ = true;
};

}  // namespace cluster::protocol
