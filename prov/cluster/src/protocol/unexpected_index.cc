#include "protocol/unexpected_index.h"

#include "base/end_of_memory.h"

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
  used = messages.size() > 0;  // the next messages may be looked up in other ways
}

template <Hook<UnexpectedMessage> UnexpectedMessage::*hook>
void UnexpectedIndex::View<hook>::begin(const Lookup& new_lookup, UnexpectedMessage* first) {
  messages.clear();
  lookup = new_lookup;
  used = false;  // as it stays if there is no memory for the first message
  for (; first != nullptr; first = List<UnexpectedMessage, &UnexpectedMessage::queue>::after(*first))
    messages.insert(*first);
  used = true;
}

/// Without memory the next lookups walk.
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
