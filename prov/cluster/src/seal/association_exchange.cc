#include "seal/association_exchange.h"

#include <algorithm>
#include <cstring>
#include <optional>
#include <utility>

namespace cluster::seal {
namespace {

void set_tag(std::vector<std::byte>& frame, const Tag& tag) {
  std::memcpy(frame.data() + tagged_size(frame), tag.data(), tag.size());
}

bool contains(const std::vector<SocketAddress>& addresses, const SocketAddress& wanted) {
  return std::find(addresses.begin(), addresses.end(), wanted) != addresses.end();
}

}  // namespace

bool AssociationExchange::is_ours(const SocketAddress& address) const {
  return std::any_of(ours_.addresses.begin(), ours_.addresses.end(),
                     [&](const SocketAddress& own) { return without_scope(own) == without_scope(address); });
}

const std::shared_ptr<const JobKey>* AssociationExchange::key_of(const KeyId& id) const {
  for (const auto& key : credentials_.keys) {
    if (key->id() == id) return &key;
  }
  return nullptr;
}

void AssociationExchange::send(ConstBytes bytes, const link::Path& to) {
  const link::Path path = link::ip_path(to);
  link::OutFrame frame;
  frame.path = &path;
  frame.add(bytes);
  link_.send_burst({&frame, 1});
}

/// The first request uses the first key. Without an answer the next ones use all keys, since the peer may have only one of them. Keys do
/// not take turns, because the paths of a peer do: one of the keys could then always meet the path that leads nowhere.
bool AssociationExchange::request(Time now, Route& route, const link::Path& path) {
  if (now < route.next_request) return false;
  if (route.requests == 0 || now >= route.next_request + kAttemptGap) route.asked_since = now;
  if (route.current == nullptr && now >= route.asked_since + kSilenceMax)
    warn(now, Warning::silence, path.to);
  route.request_interval = route.current != nullptr ? kNoticeInterval
                                                    : std::clamp(route.request_interval * 2,
                                                                 kRequestIntervalMin, kRequestIntervalMax);
  route.next_request = now + route.request_interval;
  route.request = ++numbers_;
  const std::size_t used = route.requests++ == 0 ? 1 : credentials_.keys.size();
  for (std::size_t i = 0; i < used; ++i) send_request(*credentials_.keys[i], path);
  return true;
}

/// Every request of one turn has the same number.
void AssociationExchange::send_request(const JobKey& key, const link::Path& path) {
  AssociationFrame frame;
  frame.kind = wire::FrameKind::association_request;
  frame.key_id = key.id();
  frame.mode = credentials_.mode;
  frame.sender = ours_;
  frame.to = path.to;
  frame.number = numbers_;
  std::vector<std::byte> bytes = encode(frame);
  Tag tag;
  if (!key.authenticate(JobKey::Purpose::request, ConstBytes(bytes).first(tagged_size(bytes)), tag)) return;
  set_tag(bytes, tag);
  send(bytes, path);
}

bool AssociationExchange::has_requested(ConstBytes quoted) const {
  constexpr std::size_t kBlock = sizeof(wire::FrameHeader);
  constexpr std::size_t kSalt = kBlock + offsetof(AssociationBlock, salt);
  static_assert(kSalt + std::tuple_size_v<Salt> <= link::PathError::kQuotedMax);
  if (quoted.size() < kSalt + ours_.salt.size()) return false;
  const auto kind = static_cast<wire::FrameKind>(quoted[offsetof(wire::FrameHeader, kind)]);
  KeyId id;
  std::memcpy(id.data(), quoted.data() + kBlock + offsetof(AssociationBlock, key_id), id.size());
  return kind == wire::FrameKind::association_request && key_of(id) != nullptr &&
         std::memcmp(quoted.data() + kSalt, ours_.salt.data(), ours_.salt.size()) == 0;
}

Association* AssociationExchange::on_frame(Time now, const wire::FrameHeader& header, ConstBytes frame,
                                           const link::Path& from) {
  if (header.kind == static_cast<std::uint8_t>(wire::FrameKind::association_unknown)) {
    on_notice(now, header, from);
    return nullptr;
  }
  const std::optional<AssociationFrame> decoded = decode(frame, from.to.scope());
  const bool valid = decoded && is_ours(decoded->to) && contains(decoded->sender.addresses, from.to) &&
                     decoded->sender.salt != ours_.salt;
  if (!valid) {
    ++environment_.counters.refused_malformed;
    return nullptr;
  }
  if (key_of(decoded->key_id) == nullptr) {
    ++environment_.counters.refused_forged;
    on_other_key(now, from.to);
    return nullptr;
  }
  return decoded->kind == wire::FrameKind::association_request ? on_request(now, *decoded, frame, from)
                                                               : on_response(*decoded, frame, from);
}

/// While a job changes its key, a peer may ask with a key that this process does not have, and soon with one that it has. So the log
/// only names a peer that goes on. One peer at a time is watched, so that forged requests take no memory.
void AssociationExchange::on_other_key(Time now, const SocketAddress& peer) {
  const Route* const route = table_.find_route(peer);
  if (route != nullptr && route->current != nullptr) return;
  if (other_key_.peer == peer && now < other_key_.since + 2 * kSilenceMax) {
    if (now >= other_key_.since + kSilenceMax / 2) warn(now, Warning::other_key, peer);
  } else if (now >= other_key_.since + 2 * kSilenceMax || other_key_.peer.empty()) {
    other_key_ = {peer, now};
  }
}

/// A request with a new number for a known association says that the peer cannot open what it gets. So frames to it are sealed in
/// this association again.
Association* AssociationExchange::on_request(Time now, const AssociationFrame& frame, ConstBytes bytes,
                                             const link::Path& from) {
  Counters& counters = environment_.counters;
  const std::shared_ptr<const JobKey>& key = *key_of(frame.key_id);
  const std::size_t message = tagged_size(bytes);
  if (!key->verify(JobKey::Purpose::request, bytes.first(message), bytes.data() + message)) {
    ++counters.refused_forged;
    return nullptr;
  }
  if (frame.mode != credentials_.mode) {
    ++counters.refused_forged;
    warn(now, Warning::other_mode, from.to);
    return nullptr;
  }
  Association* association = table_.find(frame.sender.salt, frame.key_id);
  if (association != nullptr && frame.number <= association->last_request) {
    ++counters.refused_replayed;
    return nullptr;
  }
  if (!response_allowed(now)) {
    ++counters.refused_stale;
    return nullptr;
  }
  if (association == nullptr) {
    association = table_.add(std::make_unique<Association>(key, credentials_.mode, ours_, frame.sender));
    if (association == nullptr) {
      ++counters.refused_forged;
      return nullptr;
    }
  }
  association->last_request = frame.number;
  const bool restored = association->confirmed && table_.route(from.to).current != association;
  if (restored) table_.make_current(*association);
  respond(*association, frame, from);
  return restored ? association : nullptr;
}

void AssociationExchange::respond(const Association& association, const AssociationFrame& request,
                                  const link::Path& to) {
  AssociationFrame frame;
  frame.kind = wire::FrameKind::association_response;
  frame.key_id = association.key().id();
  frame.mode = credentials_.mode;
  frame.sender = ours_;
  frame.peer_salt = request.sender.salt;
  frame.to = to.to;
  frame.number = request.number;
  std::vector<std::byte> bytes = encode(frame);
  Tag tag;
  if (!association.authenticate_response(true, ConstBytes(bytes).first(tagged_size(bytes)), tag)) return;
  set_tag(bytes, tag);
  send(bytes, link::without_mac(to));
}

bool AssociationExchange::response_allowed(Time now) {
  responses_from_ = std::max(responses_from_, now - kResponseInterval * kResponsesAtOnce);
  if (responses_from_ + kResponseInterval > now) return false;
  responses_from_ += kResponseInterval;
  return true;
}

Association* AssociationExchange::on_response(const AssociationFrame& frame, ConstBytes bytes,
                                              const link::Path& from) {
  Counters& counters = environment_.counters;
  Route* const route = table_.find_route(from.to);
  const bool asked = route != nullptr && route->request != 0 && route->request == frame.number;
  if (!asked || frame.peer_salt != ours_.salt || frame.mode != credentials_.mode) {
    ++counters.refused_replayed;
    return nullptr;
  }
  Association* known = table_.find(frame.sender.salt, frame.key_id);
  std::unique_ptr<Association> made;
  if (known == nullptr) {
    made = std::make_unique<Association>(*key_of(frame.key_id), credentials_.mode, ours_, frame.sender);
  }
  const Association& judged = known != nullptr ? *known : *made;
  const std::size_t message = tagged_size(bytes);
  Tag expected;
  const bool genuine =
      judged.authenticate_response(false, bytes.first(message), expected) &&
      judged.key().cryptography().equal(expected.data(), bytes.data() + message, expected.size());
  if (!genuine) {
    ++counters.refused_forged;
    return nullptr;
  }
  if (known == nullptr) known = table_.add(std::move(made));
  if (known == nullptr) {
    ++counters.refused_forged;
    return nullptr;
  }
  table_.make_current(*known);
  return known;
}

void AssociationExchange::on_notice(Time now, const wire::FrameHeader& header, const link::Path& from) {
  Route* const route = table_.find_route(from.to);
  const bool named =
      route != nullptr && route->current != nullptr && route->current->own_id() == header.checksum;
  if (!named || !request(now, *route, link::without_mac(from))) ++environment_.counters.refused_stale;
}

void AssociationExchange::on_unknown(Time now, const wire::FrameHeader& header, const link::Path& from) {
  ++environment_.counters.refused_stale;
  notify(now, header, from);
}

/// A notice is no longer than the refused frame, and rare: a forger gains nothing by drawing notices.
void AssociationExchange::notify(Time now, const wire::FrameHeader& refused, const link::Path& to) {
  if (now < next_unknown_ || (flood_ && table_.find_route(to.to) == nullptr)) return;
  next_unknown_ = now + kUnknownInterval;
  const wire::FrameHeader notice = make_notice(refused);
  send(as_bytes(&notice, sizeof notice), link::without_mac(to));
}

void AssociationExchange::on_forged(Time now, Association& association, const wire::FrameHeader& header,
                                    const link::Path& from) {
  ++environment_.counters.refused_forged;
  if (now < association.next_notice) return;
  association.next_notice = now + kNoticeInterval;
  const wire::FrameHeader notice = make_notice(header);
  send(as_bytes(&notice, sizeof notice), link::without_mac(from));
}

void AssociationExchange::on_unsealed(Time now, const wire::FrameHeader& header, const link::Path& from) {
  ++environment_.counters.refused_unsealed;
  notify(now, header, from);
  warn(now, Warning::no_key, from.to);
}

/// Each warning comes once a minute at most, since the frame that causes it may be forged.
void AssociationExchange::warn(Time now, Warning about, const SocketAddress& peer) {
  Time& next = next_warning_[static_cast<std::size_t>(about)];
  if (now < next) return;
  next = now + kWarningInterval;
  const char* const what[] = {
      "its frames are dropped: it has another key than this process (set the same FI_CLUSTER_KEY_FILE or "
      "FI_CLUSTER_KEY on all nodes of the job)",
      "its frames are dropped: FI_CLUSTER_SECURITY is auth on one side and encrypt on the other (set the "
      "same on all nodes of the job)",
      "its frames are dropped: this process has a key and their sender has none (set "
      "FI_CLUSTER_KEY_FILE on all nodes of the job)",
      "it does not answer requests that are authenticated with the key of this process: it is gone, or its "
      "key or FI_CLUSTER_SECURITY differs (set the same on all nodes of the job)"};
  environment_.log.warn("peer %s: %s", peer.text().c_str(), what[static_cast<std::size_t>(about)]);
}

}  // namespace cluster::seal
