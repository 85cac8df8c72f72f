#include "seal/group_seal.h"

#include <algorithm>
#include <cstring>
#include <utility>

namespace cluster::seal {
namespace {

/// The group in the place of a receiver: it has no salt, and takes the cipher of its sender.
Party receivers_of(const SocketAddress& group) { return {{}, {group}, true}; }

/// It has a salt of its own for each group.
Party as_sender(const Party& ours, Random& random) {
  return {draw_salt(random), {ours.addresses.front()}, ours.prefers_aes};
}

}  // namespace

GroupSender::GroupSender(const Credentials& credentials, const Party& ours, const SocketAddress& group,
                         Random& random)
    : GroupSender(credentials, as_sender(ours, random), group) {}

GroupSender::GroupSender(const Credentials& credentials, const Party& sender, const SocketAddress& group)
    : association_(credentials.keys.front(), credentials.mode, sender, receivers_of(group)) {
  std::copy(sender.salt.begin(), sender.salt.end(), block_.salt);
  block_.prefers_aes = sender.prefers_aes ? 1 : 0;
}

bool GroupTrials::allowed(Time now) {
  from_ = std::max(from_, now - kAtOnce * kInterval);
  if (from_ + kInterval > now) return false;
  from_ += kInterval;
  return true;
}

/// False: all that are known have been heard lately.
bool GroupOpener::make_space(Time now) {
  if (senders_.size() < kSendersMax) return true;
  if (now < full_until_) return false;
  const auto oldest =
      std::ranges::min_element(senders_, {}, [](const auto& each) { return each.second.heard; });
  full_until_ = oldest->second.heard + kSilent;
  if (now < full_until_) return false;
  senders_.erase(oldest);
  return true;
}

/// Under each key that the sender may mean.
Association::Verdict GroupOpener::open_first(Time now, Bytes frame, const Name& name, const Party& sender) {
  for (const std::shared_ptr<const JobKey>& key : credentials_.keys) {
    if (sender_id(name.salt, key->id()) != name.id || !trials_->allowed(now)) continue;
    auto association = std::make_unique<Association>(key, credentials_.mode, receivers_of(group_), sender);
    if (association->open(frame, sizeof(GroupSealBlock), Association::Begin::anywhere) !=
        Association::Verdict::genuine)
      continue;
    if (!make_space(now)) break;
    senders_.emplace(name, Sender{std::move(association), now});
    return Association::Verdict::genuine;
  }
  return Association::Verdict::forged;
}

Bytes GroupOpener::open(Time now, Bytes frame, const SocketAddress& from, Counters& counters) {
  wire::FrameHeader header;
  GroupSealBlock block;
  if (frame.size() < sizeof header + sizeof block + sizeof(wire::SealTrailer)) {
    ++counters.refused_malformed;
    return frame.first(0);
  }
  std::memcpy(&header, frame.data(), sizeof header);
  std::memcpy(&block, frame.data() + sizeof header, sizeof block);
  Name name{from, {}, header.checksum};
  std::copy(std::begin(block.salt), std::end(block.salt), name.salt.begin());
  const auto known = senders_.find(name);
  const auto verdict = known != senders_.end()
                           ? known->second.association->open(frame, sizeof block)
                           : open_first(now, frame, name, {name.salt, {from}, block.prefers_aes == 1});
  if (known != senders_.end() && verdict == Association::Verdict::genuine) known->second.heard = now;
  if (verdict != Association::Verdict::genuine) {
    ++(verdict == Association::Verdict::replayed ? counters.refused_replayed : counters.refused_forged);
    return frame.first(0);
  }
  const Bytes opened = frame.subspan(sizeof block);
  header.length = static_cast<std::uint16_t>(opened.size());
  std::memcpy(opened.data(), &header, sizeof header);
  return opened;
}

}  // namespace cluster::seal
