#include "protocol/posted_index.h"

#include "base/end_of_memory.h"

namespace cluster::protocol {

PostedIndex::View* PostedIndex::view_for(std::uint64_t ignore) {
  View* free = nullptr;
  for (View& view : views_) {
    if (view.receives.size() == 0) {
      if (free == nullptr) free = &view;
    } else if (view.ignore == ignore) {
      return &view;
    }
  }
  if (free != nullptr) free->ignore = ignore;
  return free;
}

void PostedIndex::add(RecvRequest& receive) {
  receive.number = next_number_++;
  ++size_;
  View* view = view_for(receive.ignore);
  receive.indexed = view != nullptr && insert(*view, receive);
  if (!receive.indexed) others_.push_back(receive);
}

/// False if there is no memory for it.
bool PostedIndex::insert(View& view, RecvRequest& receive) {
  return enough_memory_for([&] { view.receives.insert(receive); });
}

void PostedIndex::remove(RecvRequest& receive) {
  --size_;
  if (receive.indexed) {
    view_for(receive.ignore)->receives.remove(receive);
  } else {
    others_.remove(receive);
  }
}

RecvRequest* PostedIndex::find(const Channel* channel, std::uint64_t tag) {
  RecvRequest* best = nullptr;
  // In any list the first that fits was posted first.
  const auto consider = [&](RecvRequest* receive, auto&& after) {
    for (; receive != nullptr && (best == nullptr || receive->number < best->number);
         receive = after(*receive)) {
      if (fits(receive->from, receive->tag, receive->ignore, channel, tag)) best = receive;
    }
  };
  const auto after_in_view = [](const RecvRequest& receive) {
    return decltype(View::receives)::after(receive);
  };
  for (View& view : views_) {
    if (view.receives.size() == 0) continue;
    consider(view.receives.first(match_key(channel, tag, view.ignore)), after_in_view);
    consider(view.receives.first(match_key(nullptr, tag, view.ignore)), after_in_view);
  }
  consider(others_.front(), [](const RecvRequest& receive) {
    return List<RecvRequest, &RecvRequest::bucket>::after(receive);
  });
  return best;
}

}  // namespace cluster::protocol
