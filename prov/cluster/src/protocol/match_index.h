// Decides whether a message matches a receive, and indexes large numbers of receives and messages. Under the
// receive's mask, a receive and each message that it matches have the same key (match_key). To find a
// receive, an index needs two lookups for each mask: one with the message's sender, and one for receives from
// any sender.
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

/// Returns the key of a message or a receive under the mask `ignore`. `channel`: the sender, or null for any
/// sender. Equal senders and equal masked tags give equal keys.
inline std::uint64_t match_key(const Channel* channel, std::uint64_t tag, std::uint64_t ignore) {
  // Most tags are small numbers. The shift keeps the address out of the low bits, in which such tags differ.
  // Therefore two messages with different senders or tags rarely get the same key.
  return (tag & ~ignore) ^ (static_cast<std::uint64_t>(reinterpret_cast<std::uintptr_t>(channel)) << 20);
}

/// An index of many posted receives. Programs use only a few masks: the exact tag, any tag, or some bits of
/// the tag. All receives with the same mask form a view. In each view, find() makes two lookups with the
/// masked tag of the message: one with the message's sender, and one for any sender. Receives are numbered in
/// the order of posting, and the match with the lowest number wins. Receives that fit into no view share a
/// list, which find() walks. A receive fits into no view if there are more than kViews masks, or if there is
/// no memory.
class PostedIndex {
 public:
  /// Returns true while the index contains a receive.
  bool in_use() const { return size_ > 0; }
  /// Adds a receive. Receives must be added in the order of posting.
  void add(RecvRequest& receive);
  void remove(RecvRequest& receive);
  /// Returns the oldest receive that matches, or null. The receive stays in the index.
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

  /// Returns the view for this mask, or null if there are too many masks.
  View* view_for(std::uint64_t ignore);

  std::array<View, kViews> views_;
  List<RecvRequest, &RecvRequest::bucket> others_;
  std::uint64_t next_number_ = 0;
  std::size_t size_ = 0;
};

/// An index of many unexpected messages. A receive may look for a message under any mask, so the keys are not
/// known until receives show which masks they use. A lookup has a mask, and asks for one sender or for any
/// sender. These two properties are the kind of the lookup. If two long walks in a row belong to lookups of
/// the same kind, this kind gets a view. There are two views, and a new view replaces the older of them.
/// Lookups of other kinds walk the list of stored messages.
class UnexpectedIndex {
 public:
  UnexpectedIndex() = default;
  UnexpectedIndex(const UnexpectedIndex&) = delete;  // the views contain pointers to themselves

  void add(UnexpectedMessage& message);
  void remove(UnexpectedMessage& message);

  struct Result {
    bool known = false;  ///< false: this kind of lookup has no view, so the caller must walk the list
    UnexpectedMessage* message = nullptr;  ///< the first match that is available
  };
  Result find(const Channel* from, std::uint64_t tag, std::uint64_t ignore);
  /// Called after a lookup of the kind (`directed`, `ignore`) has walked far along the list of stored
  /// messages. `first`: the head of this list.
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
