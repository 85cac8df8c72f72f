// An index of many posted receives. Programs use a handful of masks (exact, any tag, any source, their own
// bits): receives with one mask form a view, and a message is looked up twice in each view under its masked
// tag, once with its sender and once for any sender. Of the matches, the receive posted first wins: every
// receive has a number. Masks beyond kViews share a list that is walked.
#pragma once

#include <array>
#include <cstdint>
#include <optional>

#include "base/list.h"
#include "protocol/incoming_request.h"
#include "protocol/match_key.h"

namespace cluster::protocol {

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
  static bool insert(View& view, RecvRequest& receive);

  std::array<View, kViews> views_;
  List<RecvRequest, &RecvRequest::bucket> others_;
  std::uint64_t next_number_ = 0;
  std::size_t size_ = 0;
};

}  // namespace cluster::protocol
