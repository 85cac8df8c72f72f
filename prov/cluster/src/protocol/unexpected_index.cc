#include "protocol/unexpected_index.h"

namespace cluster::protocol {

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
  used = messages.size() > 0;  // the next flood may be looked through in other ways
}

template <Hook<UnexpectedMessage> UnexpectedMessage::*hook>
void UnexpectedIndex::View<hook>::begin(const Way& new_way, UnexpectedMessage* first) {
  messages.clear();
  way = new_way;
  used = true;
  for (; first != nullptr; first = List<UnexpectedMessage, &UnexpectedMessage::queue>::after(*first))
    messages.insert(*first);
}

void UnexpectedIndex::add(UnexpectedMessage& message) {
  if (first_.used) first_.messages.insert(message);
  if (second_.used) second_.messages.insert(message);
}

void UnexpectedIndex::remove(UnexpectedMessage& message) {
  first_.remove(message);
  second_.remove(message);
}

UnexpectedIndex::Answer UnexpectedIndex::find(const Channel* from, std::uint64_t tag, std::uint64_t ignore) {
  const Way way{from != nullptr, ignore};
  if (first_.used && first_.way == way) return {true, first_.find(from, tag, ignore)};
  if (second_.used && second_.way == way) return {true, second_.find(from, tag, ignore)};
  return {};
}

void UnexpectedIndex::walked(bool directed, std::uint64_t ignore, UnexpectedMessage* first) {
  const Way way{directed, ignore};
  if (walked_before_ != way) {
    walked_before_ = way;
    return;
  }
  if (first_is_older_) {
    first_.begin(way, first);
  } else {
    second_.begin(way, first);
  }
  first_is_older_ = !first_is_older_;
  walked_before_.reset();
}

}  // namespace cluster::protocol
