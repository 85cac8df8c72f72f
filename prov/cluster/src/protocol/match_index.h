// Says when a message matches a receive, and indexes many receives and many messages. Messages and receives
// that match under one mask have the same key under that mask, so an index needs one lookup per mask.
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

/// Returns the key. `channel` null: any sender. All that match each other under one `ignore` have equal keys.
inline std::uint64_t match_key(const Channel* channel, std::uint64_t tag, std::uint64_t ignore) {
  // Channels lie far apart, so their low bits carry no information. Tags are mostly small numbers.
  return (tag & ~ignore) ^ (static_cast<std::uint64_t>(reinterpret_cast<std::uintptr_t>(channel)) << 20);
}

/// An index of many posted receives. Programs use a handful of masks (exact, any tag, any source, their own
/// bits). Receives with one mask form a view. A message is looked up in each view under its masked tag, once
/// with its sender and once for any sender. Each receive has a number, and of all matches the one posted
/// first wins. Masks beyond kViews share a list that is walked.
class PostedIndex {
 public:
  /// True while the index contains a receive.
  bool in_use() const { return size_ > 0; }
  /// Adds a receive. Call it in the order of posting.
  void add(RecvRequest& receive);
  void remove(RecvRequest& receive);
  /// Returns the first receive that matches, which stays in the index.
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

  /// Returns the view for that mask, or null if there are too many masks.
  View* view_for(std::uint64_t ignore);

  std::array<View, kViews> views_;
  List<RecvRequest, &RecvRequest::bucket> others_;
  std::uint64_t next_number_ = 0;
  std::size_t size_ = 0;
};

/// An index of many unexpected messages. A receive may look for a message under any mask, so there is no key
/// until receives show which masks they use. A kind of lookup is the mask, with one sender or any. The last
/// two kinds that caused long walks twice in a row have a view each. Programs with more kinds go on walking.
class UnexpectedIndex {
 public:
  UnexpectedIndex() = default;
  UnexpectedIndex(const UnexpectedIndex&) = delete;  // the views' keys point into them

  void add(UnexpectedMessage& message);
  void remove(UnexpectedMessage& message);

  struct Result {
    bool known = false;                    ///< false: there is no view for this kind of lookup, so walk
    UnexpectedMessage* message = nullptr;  ///< the first match that is available
  };
  Result find(const Channel* from, std::uint64_t tag, std::uint64_t ignore);
  /// A lookup of this kind has walked far. `first`: the stored messages in the order of arrival.
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
