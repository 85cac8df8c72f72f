#include "protocol/match_index.h"

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
  receive.indexed = view != nullptr && enough_memory_for([&] { view->receives.insert(receive); });
  if (!receive.indexed) others_.push_back(receive);
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
  // Each list is in the order of posting, so the first match in a list is the oldest one.
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

template <Hook<UnexpectedMessage> UnexpectedMessage::*hook>
UnexpectedMessage* UnexpectedIndex::View<hook>::find(const Channel* from, std::uint64_t tag,
                                                     std::uint64_t ignore) {
  UnexpectedMessage* message = messages.first(match_key(from, tag, ignore));
  while (message != nullptr &&
         !(message->available() && fits(from, tag, ignore, message->channel, message->tag))) {
    message = messages.after(*message);
  }
  return message;
}

template <Hook<UnexpectedMessage> UnexpectedMessage::*hook>
void UnexpectedIndex::View<hook>::remove(UnexpectedMessage& message) {
  if (!used) return;
  messages.remove(message);
  used = messages.size() > 0;  // gives up an empty view: later lookups may be of another kind
}

template <Hook<UnexpectedMessage> UnexpectedMessage::*hook>
void UnexpectedIndex::View<hook>::begin(const Lookup& new_lookup, UnexpectedMessage* first) {
  messages.clear();
  lookup = new_lookup;
  used = false;  // stays false if there is no memory for the index
  for (; first != nullptr; first = List<UnexpectedMessage, &UnexpectedMessage::queue>::after(*first))
    messages.insert(*first);
  used = true;
}

/// If there is no memory for the message, gives up the view, and the next lookups walk the list.
template <Hook<UnexpectedMessage> UnexpectedMessage::*hook>
void UnexpectedIndex::View<hook>::add(UnexpectedMessage& message) {
  if (!used || enough_memory_for([&] { messages.insert(message); })) return;
  messages.clear();
  used = false;
}

void UnexpectedIndex::add(UnexpectedMessage& message) {
  first_.add(message);
  second_.add(message);
}

void UnexpectedIndex::remove(UnexpectedMessage& message) {
  first_.remove(message);
  second_.remove(message);
}

UnexpectedIndex::Result UnexpectedIndex::find(const Channel* from, std::uint64_t tag, std::uint64_t ignore) {
  const Lookup lookup{from != nullptr, ignore};
  if (first_.used && first_.lookup == lookup) return {true, first_.find(from, tag, ignore)};
  if (second_.used && second_.lookup == lookup) return {true, second_.find(from, tag, ignore)};
  return {};
}

void UnexpectedIndex::walked(bool directed, std::uint64_t ignore, UnexpectedMessage* first) {
  const Lookup lookup{directed, ignore};
  if (walked_before_ != lookup) {
    walked_before_ = lookup;
    return;
  }
  if (first_is_older_) {
    first_.begin(lookup, first);
  } else {
    second_.begin(lookup, first);
  }
  first_is_older_ = !first_is_older_;
  walked_before_.reset();
}

}  // namespace cluster::protocol
