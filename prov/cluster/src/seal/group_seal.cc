#include "seal/group_seal.h"

#include <algorithm>
#include <cstring>
#include <utility>

namespace cluster::seal {
namespace {

/// The group in the place of a receiver: it has no salt, and takes the cipher of its sender.
Party receivers_of(const SocketAddress& group) { return {{}, {group}, true}; }

/// It has a salt of its own for each group.
Party as_sender(const Party& ours, Random& random) { return {draw_salt(random), {ours.addresses.front()}, ours.prefers_aes}; }

}  // namespace

GroupSender::GroupSender(const Credentials& credentials, const Party& ours, const SocketAddress& group, Random& random)
    : GroupSender(credentials, as_sender(ours, random), group) {}

GroupSender::GroupSender(const Credentials& credentials, const Party& sender, const SocketAddress& group)
    : association_(credentials.keys.front(), credentials.mode, sender, receivers_of(group)) {
  std::copy(sender.salt.begin(), sender.salt.end(), block_.salt);
  block_.prefers_aes = sender.prefers_aes ? 1 : 0;
}

bool GroupOpener::trial_allowed(Time now) {
  trials_from_ = std::max(trials_from_, now - kTrialsAtOnce * kTrialInterval);
  if (trials_from_ + kTrialInterval > now) return false;
  trials_from_ += kTrialInterval;
  return true;
}

/// Under each key that the sender may mean.
Association::Verdict GroupOpener::open_first(Time now, Bytes frame, const Name& name, const Party& sender) {
  for (const std::shared_ptr<const JobKey>& key : credentials_.keys) {
    if (sender_id(name.salt, key->id()) != name.id || !trial_allowed(now)) continue;
    auto association = std::make_unique<Association>(key, credentials_.mode, receivers_of(group_), sender);
    if (association->open(frame, sizeof(GroupSealBlock), Association::Begin::anywhere) != Association::Verdict::genuine) continue;
    senders_.emplace(name, std::move(association));
    return Association::Verdict::genuine;
  }
  return Association::Verdict::forged;
}

Bytes GroupOpener::open(Time now, Bytes frame, const SocketAddress& from, Counters& counters) {
  wire::FrameHeader header;
  GroupSealBlock block;
  if (frame.size() < sizeof header + sizeof block + sizeof(wire::SealTrailer)) {
    ++counters.refused_malformed;
    return {};
  }
  std::memcpy(&header, frame.data(), sizeof header);
  std::memcpy(&block, frame.data() + sizeof header, sizeof block);
  Name name{from, {}, header.checksum};
  std::copy(std::begin(block.salt), std::end(block.salt), name.salt.begin());
  const auto known = senders_.find(name);
  const auto verdict = known != senders_.end() ? known->second->open(frame, sizeof block)
                                               : open_first(now, frame, name, {name.salt, {from}, block.prefers_aes == 1});
  if (verdict != Association::Verdict::genuine) {
    ++(verdict == Association::Verdict::replayed ? counters.refused_replayed : counters.refused_forged);
    return {};
  }
  const Bytes opened = frame.subspan(sizeof block);
  header.length = static_cast<std::uint16_t>(opened.size());
  std::memcpy(opened.data(), &header, sizeof header);
  return opened;
}

}  // namespace cluster::seal
