#include "seal/association_exchange.h"

#include <algorithm>
#include <cstring>
#include <optional>
#include <utility>

namespace cluster::seal {
namespace {

constexpr std::size_t kFixed =
    sizeof(wire::FrameHeader) + sizeof(AssociationBlock) + sizeof(wire::SealTrailer);

/// Returns the address in the block, or an empty address if no endpoint can have that address.
SocketAddress address_in(const wire::RailBlock& block, std::uint32_t scope) {
  const SocketAddress address = wire::address_of(block, 0);
  if (!wire::is_endpoint_address(address)) return {};
  return address.link_local() ? wire::address_of(block, scope) : address;
}

wire::FrameHeader header_of(wire::FrameKind kind, std::size_t length, std::uint32_t id) {
  wire::FrameHeader header{};
  header.magic = wire::kMagic;
  header.version = wire::kVersion;
  header.kind = static_cast<std::uint8_t>(kind);
  header.flags = wire::frame_flag::kSealed;
  header.length = static_cast<std::uint16_t>(length);
  header.checksum = id;
  return header;
}

/// Decodes one whole frame, without verifying its tag. Returns nothing if the frame is malformed. `scope`:
/// scope of link-local addresses on this node.
std::optional<AssociationFrame> decode(ConstBytes bytes, std::uint32_t scope) {
  if (bytes.size() < kFixed + sizeof(wire::RailBlock)) return std::nullopt;
  wire::FrameHeader header;
  AssociationBlock block;
  wire::SealTrailer trailer;
  std::memcpy(&header, bytes.data(), sizeof header);
  std::memcpy(&block, bytes.data() + sizeof header, sizeof block);
  std::memcpy(&trailer, bytes.data() + bytes.size() - sizeof trailer, sizeof trailer);
  const std::size_t count = block.addresses;
  if (count == 0 || count > wire::kRailsMax) return std::nullopt;
  if (bytes.size() != kFixed + count * sizeof(wire::RailBlock)) return std::nullopt;
  AssociationFrame frame;
  frame.kind = static_cast<wire::FrameKind>(header.kind);
  std::copy(std::begin(block.key_id), std::end(block.key_id), frame.key_id.begin());
  std::copy(std::begin(block.salt), std::end(block.salt), frame.sender.salt.begin());
  std::copy(std::begin(block.peer_salt), std::end(block.peer_salt), frame.peer_salt.begin());
  frame.mode = static_cast<Mode>(block.mode);
  frame.sender.prefers_aes = block.prefers_aes != 0;
  frame.to = address_in(block.to, scope);
  frame.number = trailer.counter;
  const std::byte* at = bytes.data() + sizeof header + sizeof block;
  for (std::size_t i = 0; i < count; ++i, at += sizeof(wire::RailBlock)) {
    wire::RailBlock address;
    std::memcpy(&address, at, sizeof address);
    frame.sender.addresses.push_back(address_in(address, scope));
    if (frame.sender.addresses.back().empty()) return std::nullopt;
  }
  const bool valid =
      !frame.to.empty() && frame.number != 0 && header.checksum == sender_id(frame.sender.salt, frame.key_id);
  return valid ? std::optional(std::move(frame)) : std::nullopt;
}

bool contains(const std::vector<SocketAddress>& addresses, const SocketAddress& wanted) {
  return std::find(addresses.begin(), addresses.end(), wanted) != addresses.end();
}

}  // namespace

std::vector<std::byte> encode(const AssociationFrame& frame) {
  const std::vector<SocketAddress>& addresses = frame.sender.addresses;
  const std::size_t count = std::min(addresses.size(), wire::kRailsMax);
  std::vector<std::byte> bytes(kFixed + count * sizeof(wire::RailBlock));
  std::byte* at = bytes.data();
  const auto put = [&at](const auto& field) {
    std::memcpy(at, &field, sizeof field);
    at += sizeof field;
  };
  put(header_of(frame.kind, bytes.size(), sender_id(frame.sender.salt, frame.key_id)));
  AssociationBlock block{};
  std::copy(frame.key_id.begin(), frame.key_id.end(), block.key_id);
  std::copy(frame.sender.salt.begin(), frame.sender.salt.end(), block.salt);
  std::copy(frame.peer_salt.begin(), frame.peer_salt.end(), block.peer_salt);
  block.mode = static_cast<std::uint8_t>(frame.mode);
  block.prefers_aes = frame.sender.prefers_aes ? 1 : 0;
  block.addresses = static_cast<std::uint8_t>(count);
  block.to = wire::rail_block(frame.to);
  put(block);
  for (std::size_t i = 0; i < count; ++i) put(wire::rail_block(addresses[i]));
  wire::SealTrailer trailer{};
  trailer.counter = frame.number;
  put(trailer);
  return bytes;
}

wire::FrameHeader make_notice(const wire::FrameHeader& refused) {
  return header_of(wire::FrameKind::association_unknown, sizeof(wire::FrameHeader), refused.checksum);
}

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

/// The first request uses only the first key. Until the peer answers, each later request is sent once for
/// each key, because the peer may have only one of them. The keys must not alternate from request to request,
/// because the paths to a peer alternate, too. Otherwise the requests with the peer's only key might always
/// leave over a path that does not work.
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
  route.request_link = path.link;
  const std::size_t used = route.requests++ == 0 ? 1 : credentials_.keys.size();
  for (std::size_t i = 0; i < used; ++i) send_request(*credentials_.keys[i], path);
  return true;
}

/// Sends a request with this key. All requests that one call of request() sends have the same number.
void AssociationExchange::send_request(const JobKey& key, const link::Path& path) {
  AssociationFrame frame;
  frame.kind = wire::FrameKind::association_request;
  frame.key_id = key.id();
  frame.mode = credentials_.mode;
  frame.sender = ours_;
  frame.to = path.to;
  frame.number = numbers_;
  std::vector<std::byte> bytes = encode(frame);
  set_tag(bytes, key.authenticate(JobKey::Purpose::request, tagged_part(bytes)));
  const Route* const route = table_.find_route(path.to);
  const bool known = route != nullptr && route->current != nullptr;
  send(bytes, known ? translation_.outward(*route->current, path) : path);
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
  const bool for_us = decoded && is_ours(decoded->to) && decoded->sender.salt != ours_.salt;
  if (!for_us) {
    ++environment_.counters.refused_malformed;
    return nullptr;
  }
  if (key_of(decoded->key_id) == nullptr) {
    ++environment_.counters.refused_forged;
    on_other_key(now, decoded->sender.addresses.front());
    return nullptr;
  }
  return decoded->kind == wire::FrameKind::association_request ? on_request(now, *decoded, frame, from)
                                                               : on_response(*decoded, frame, from);
}

/// Called for a request or a response with a key that this process does not have. While a job changes its
/// key, a peer may first use a key that is unknown here, and a known key soon after. So this side logs a
/// warning only if the peer still uses the unknown key after kSilenceMax / 2. This side watches only one peer
/// at a time, so that forged requests do not use up memory.
void AssociationExchange::on_other_key(Time now, const SocketAddress& peer) {
  const Route* const route = table_.find_route(peer);
  if (route != nullptr && route->current != nullptr) return;
  if (other_key_.peer == peer && now < other_key_.since + 2 * kSilenceMax) {
    if (now >= other_key_.since + kSilenceMax / 2) warn(now, Warning::other_key, peer);
  } else if (now >= other_key_.since + 2 * kSilenceMax || other_key_.peer.empty()) {
    other_key_ = {peer, now};
  }
}

/// A peer that sends a request with a new number may be unable to open our frames. So if the request belongs
/// to a confirmed association, this side makes that association current again.
Association* AssociationExchange::on_request(Time now, const AssociationFrame& frame, ConstBytes bytes,
                                             const link::Path& from) {
  Counters& counters = environment_.counters;
  const std::shared_ptr<const JobKey>& key = *key_of(frame.key_id);
  const ConstBytes message = tagged_part(bytes);
  if (!key->verify(JobKey::Purpose::request, message, message.data() + message.size())) {
    ++counters.refused_forged;
    return nullptr;
  }
  if (frame.mode != credentials_.mode) {
    ++counters.refused_forged;
    warn(now, Warning::other_mode, frame.sender.addresses.front());
    return nullptr;
  }
  Association* association = table_.find(frame.sender.salt, frame.key_id);
  if (association != nullptr && frame.number <= association->last_request) {
    ++counters.refused_replayed;
    return nullptr;
  }
  if (!responses_.take(now)) {
    ++counters.refused_stale;
    return nullptr;
  }
  const bool translated = !contains(frame.sender.addresses, from.to);
  std::unique_ptr<Association> made;
  if (association == nullptr)
    made = std::make_unique<Association>(key, credentials_.mode, ours_, frame.sender);
  const Association& caller = association != nullptr ? *association : *made;
  if (translated && !may_come_from(now, caller, from)) {
    ++counters.refused_stale;
    return nullptr;
  }
  if (made != nullptr) association = table_.add(std::move(made));
  if (association == nullptr) {
    ++counters.refused_forged;
    return nullptr;
  }
  association->last_request = frame.number;
  const bool restored = !translated && association->listed && table_.route(from.to).current != association;
  if (restored) table_.make_current(*association, from.to);
  respond(*association, frame, from);
  return restored ? association : nullptr;
}

/// Returns true if a request of this peer may have this source, which the peer does not list. If another
/// process is known at the peer's name, this side asks there. Perhaps it is the peer's predecessor, and the
/// peer itself answers.
bool AssociationExchange::may_come_from(Time now, const Association& association, const link::Path& source) {
  const SocketAddress& name = association.peer().addresses.front();
  if (!translation_.may_use(association, source)) {
    warn(now, Warning::taken_address, name);
    return false;
  }
  Route* const route = table_.find_route(name);
  const Association* const known = route != nullptr ? route->current : nullptr;
  const bool taken = known != nullptr && known->keeps_its_place();
  if (!taken || known->peer().salt == association.peer().salt) return true;
  link::Path path = link::without_mac(source);
  path.to = name;
  request(now, *route, path);
  warn(now, Warning::taken_address, name);
  return false;
}

void AssociationExchange::respond(const Association& association, const AssociationFrame& request,
                                  const link::Path& to) {
  AssociationFrame frame;
  frame.kind = wire::FrameKind::association_response;
  frame.key_id = association.key().id();
  frame.mode = credentials_.mode;
  frame.sender = ours_;
  frame.peer_salt = request.sender.salt;
  // The requester knows only the addresses that it lists, whatever a router has made of them.
  frame.to = contains(request.sender.addresses, to.to) ? to.to : request.sender.addresses.front();
  frame.number = request.number;
  std::vector<std::byte> bytes = encode(frame);
  set_tag(bytes, association.authenticate_response(true, tagged_part(bytes)));
  send(bytes, link::without_mac(to));
}

/// Returns the address of the peer to which the request of this response has gone, or an empty address if
/// there is none. The peer is behind the source of the response, or the source does not matter: the response
/// shows that the peer has received the request at an address that it lists, and a router has replaced only
/// the source of the response.
SocketAddress AssociationExchange::asked_for(const AssociationFrame& response, const SocketAddress& source) {
  const auto answers = [&](const SocketAddress& address) {
    const Route* const route = table_.find_route(address);
    return route != nullptr && route->request != 0 && route->request == response.number;
  };
  const std::vector<SocketAddress>& addresses = response.sender.addresses;
  const SocketAddress known = translation_.known_as(source);
  if (contains(addresses, known)) return answers(known) ? known : SocketAddress{};
  const auto found = std::ranges::find_if(addresses, answers);
  return found != addresses.end() ? *found : SocketAddress{};
}

Association* AssociationExchange::on_response(const AssociationFrame& frame, ConstBytes bytes,
                                              const link::Path& from) {
  Counters& counters = environment_.counters;
  const SocketAddress asked = asked_for(frame, from.to);
  if (asked.empty() || frame.peer_salt != ours_.salt || frame.mode != credentials_.mode) {
    ++counters.refused_replayed;
    return nullptr;
  }
  Association* known = table_.find(frame.sender.salt, frame.key_id);
  std::unique_ptr<Association> made;
  if (known == nullptr) {
    made = std::make_unique<Association>(*key_of(frame.key_id), credentials_.mode, ours_, frame.sender);
  }
  const Association& judged = known != nullptr ? *known : *made;
  const ConstBytes message = tagged_part(bytes);
  const bool genuine =
      judged.key().equal(judged.authenticate_response(false, message), message.data() + message.size());
  if (genuine && known == nullptr) known = table_.add(std::move(made));
  if (!genuine || known == nullptr) {
    ++counters.refused_forged;
    return nullptr;
  }
  const Association* const current = table_.route(asked).current;
  if (asked != from.to && asked == translation_.known_as(from.to)) {
    translation_.prove_by_response(*known, from);
  } else if (asked != from.to && current != nullptr && current->sources.any_used()) {
    if (!translation_.succeed(*known, *current, asked, table_.route(asked).request_link)) {
      ++counters.refused_replayed;
      return nullptr;
    }
  } else {
    table_.make_current(*known, asked);
  }
  return known;
}

void AssociationExchange::on_notice(Time now, const wire::FrameHeader& header, const link::Path& from) {
  link::Path path = link::without_mac(from);
  path.to = translation_.known_as(from.to);
  Route* const route = table_.find_route(path.to);
  const bool named =
      route != nullptr && route->current != nullptr && route->current->own_id() == header.checksum;
  if (!named || !request(now, *route, path)) ++environment_.counters.refused_stale;
}

void AssociationExchange::on_unknown(Time now, const wire::FrameHeader& header, const link::Path& from) {
  ++environment_.counters.refused_stale;
  notify(now, header, from);
}

/// Sends a notice, unless one was sent recently. A forger gains nothing by causing notices, because they are
/// rare and no longer than the refused frame.
void AssociationExchange::notify(Time now, const wire::FrameHeader& refused, const link::Path& to) {
  if (now < next_unknown_ || (flood_ && table_.find_route(translation_.known_as(to.to)) == nullptr)) return;
  next_unknown_ = now + kUnknownInterval;
  send_notice(refused, to);
}

void AssociationExchange::send_notice(const wire::FrameHeader& refused, const link::Path& to) {
  const wire::FrameHeader notice = make_notice(refused);
  send(as_bytes(&notice, sizeof notice), link::without_mac(to));
}

void AssociationExchange::on_forged(Time now, Association& association, const wire::FrameHeader& header,
                                    const link::Path& from) {
  ++environment_.counters.refused_forged;
  if (now < association.next_notice) return;
  association.next_notice = now + kNoticeInterval;
  send_notice(header, from);
}

void AssociationExchange::on_unsealed(Time now, const wire::FrameHeader& header, const link::Path& from) {
  ++environment_.counters.refused_unsealed;
  notify(now, header, from);
  warn(now, Warning::no_key, from.to);
}

/// Logs each kind of warning at most once a minute, because the frame that causes it may be forged.
void AssociationExchange::warn(Time now, Warning about, const SocketAddress& peer) {
  Time& next = next_warning_[static_cast<std::size_t>(about)];
  if (now < next) return;
  next = now + kWarningInterval;
  const char* const what[] = {
      "has another key than this process, so frames of the peer are dropped (set the same "
      "FI_CLUSTER_KEY_FILE or FI_CLUSTER_KEY on all nodes of the job)",
      "has another FI_CLUSTER_SECURITY than this process (one has auth, the other encrypt), so frames of the "
      "peer are dropped (set the same value on all nodes of the job)",
      "has no key and this process has one, so frames of the peer are dropped (set FI_CLUSTER_KEY_FILE on "
      "all nodes of the job)",
      "does not answer requests that are authenticated with the key of this process: the peer is gone, or "
      "its key or FI_CLUSTER_SECURITY differs (set the same FI_CLUSTER_KEY_FILE and FI_CLUSTER_SECURITY on "
      "all nodes of the job), or the peer is behind a router that translates addresses, and has not called "
      "yet",
      "is refused: a router has replaced its address, and another process of the job is known at its address "
      "or at the router's (two networks may use the same addresses: give the nodes different ones, or "
      "connect "
      "them by a tunnel)"};
  environment_.log.warn("peer %s %s", peer.text().c_str(), what[static_cast<std::size_t>(about)]);
}

}  // namespace cluster::seal
