#include "seal/group_seal.h"

#include <algorithm>
#include <cstring>
#include <utility>

#include "link/link.h"
#include "seal/association.h"

namespace cluster::seal {
namespace {

/// Describes the group as the receiver. A group has no salt, and leaves the choice of the cipher to the
/// sender.
Party receivers_of(const SocketAddress& group) { return {{}, {group}, true}; }

/// Describes this endpoint as the sender, with a new random salt.
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

/// Makes space for one more sender. Returns false if all places are taken and no known sender has been silent
/// for kSilent.
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

/// Opens a frame of an unknown sender. Tries each key of the job that fits the id in the frame.
Association::Verdict GroupOpener::open_first(Time now, Bytes frame, const Name& name, const Party& sender) {
  for (const std::shared_ptr<const JobKey>& key : credentials_.keys) {
    if (sender_id(name.salt, key->id()) != name.id || !trials_->take(now)) continue;
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

namespace {

class SealedReceiver final : public link::MulticastReceiver {
 public:
  SealedReceiver(std::unique_ptr<link::MulticastReceiver> inner, GroupOpener opener,
                 const SocketAddress& name, const Environment& environment)
      : inner_(std::move(inner)), opener_(std::move(opener)), name_(name), environment_(environment) {}

  /// Returns as many arrivals as the inner receiver, so that the caller knows whether the socket is empty. If
  /// no frame of an arrival opens, that arrival has no bytes.
  std::size_t receive_burst(std::span<link::InFrame> frames) override {
    const std::size_t count = inner_->receive_burst(frames);
    for (link::InFrame& frame : frames.first(count)) {
      frame.bytes = frame.from.to == name_ ? frame.bytes.first(0) : open_all(frame);
      frame.segment = 0;  // the header of each opened frame contains its length
    }
    return count;
  }
  int descriptor() const override { return inner_->descriptor(); }

 private:
  /// Opens the frames of one arrival. Moves each opened frame towards the front of the arrival, directly
  /// after the previous one. Returns all opened frames.
  Bytes open_all(const link::InFrame& arrival) {
    std::size_t kept = 0;
    for (link::ArrivalWalk walk(arrival); !walk.done();) {
      const Bytes opened = open_next(walk, arrival.from.to);
      if (!opened.empty()) std::memmove(arrival.bytes.data() + kept, opened.data(), opened.size());
      kept += opened.size();
    }
    return arrival.bytes.first(kept);
  }

  /// Opens the next frame of the walk. Returns nothing if the frame does not open.
  Bytes open_next(link::ArrivalWalk& walk, const SocketAddress& from) {
    Counters& counters = environment_.counters;
    wire::FrameHeader header;
    const Bytes frame = first_frame(walk.datagram(), header);
    const bool sealed = !frame.empty() && (header.flags & wire::frame_flag::kSealed) != 0;
    const Bytes opened =
        sealed ? opener_.open(environment_.clock.now(), frame, from, counters) : frame.first(0);
    if (!sealed) ++(frame.empty() ? counters.refused_malformed : counters.refused_unsealed);
    if (opened.empty()) ++counters.refused_multicast;
    if (frame.empty()) {
      walk.pass_datagram();
    } else if (opened.empty()) {
      walk.pass_refused(frame.size());
    } else {
      walk.pass(1, frame.size());
    }
    return opened;
  }

  std::unique_ptr<link::MulticastReceiver> inner_;
  GroupOpener opener_;
  const SocketAddress name_;
  Environment environment_;
};

}  // namespace

std::unique_ptr<link::MulticastReceiver> SealedGroups::join(const SocketAddress& group,
                                                            std::span<const SocketAddress> members,
                                                            std::string& reason) {
  std::unique_ptr<link::MulticastReceiver> plain = inner_->join(group, members, reason);
  if (plain == nullptr) return nullptr;
  return std::make_unique<SealedReceiver>(
      std::move(plain), GroupOpener(credentials_, without_scope(group), trials_), name_, environment_);
}

}  // namespace cluster::seal
