#include "relay/relayed_link.h"

#include <algorithm>
#include <cstring>
#include <utility>

#include "seal/association.h"
#include "seal/keep_alive_seal.h"

namespace cluster::relay {
namespace {

using wire::FrameKind;

bool has_kind(ConstBytes frame, FrameKind kind) {
  constexpr std::size_t at = offsetof(wire::FrameHeader, kind);
  return frame.size() > at && frame[at] == static_cast<std::byte>(kind);
}

/// Returns true if a stranger may have chosen where the frame goes.
bool may_be_for_stranger(const link::OutFrame& frame) {
  const ConstBytes front = frame.pieces[0];
  return has_kind(front, FrameKind::association_response) ||
         has_kind(front, FrameKind::association_unknown) || has_kind(front, FrameKind::keep_alive);
}

}  // namespace

RelayedLink::RelayedLink(std::unique_ptr<link::Link> inner, RelayedSetup setup,
                         const Environment& environment)
    : inner_(std::move(inner)),
      credentials_(std::move(setup.credentials)),
      keys_(relay_keys(credentials_.keys)),
      name_(setup.name),
      links_(setup.links),
      rejoin_after_(setup.rejoin_after),
      environment_(environment),
      keep_alives_(environment.random.next()) {
  for (const SocketAddress& relay : setup.relays) memberships_.emplace_back(relay, keys_);
}

RelayedLink::Peer* RelayedLink::find_peer(const SocketAddress& address) const {
  const auto known = peers_.find(address);
  return known != peers_.end() ? known->second.get() : nullptr;
}

/// Returns the peer at this address. Makes a new one only if there are fewer than `peers_max`, and otherwise
/// returns null.
RelayedLink::Peer* RelayedLink::peer_at(Time now, const SocketAddress& address, std::size_t peers_max) {
  if (Peer* const known = find_peer(address)) return known;
  if (peers_.size() >= peers_max && now >= next_forget_) forget_idle_peers(now);
  if (peers_.size() >= peers_max) return nullptr;
  return (peers_[address] = std::make_unique<Peer>(address, memberships_.size())).get();
}

void RelayedLink::forget_idle_peers(Time now) {
  next_forget_ = now + kForgetInterval;
  std::erase_if(peers_, [&](const auto& each) {
    return !each.second->tended && now >= each.second->sent_at + kIdleAfter;
  });
}

std::size_t RelayedLink::way_of(const SocketAddress& source) const {
  for (std::size_t i = 0; i < memberships_.size(); ++i) {
    if (memberships_[i].relay() == source) return i + 1;
  }
  return Ways::kDirect;
}

SocketAddress RelayedLink::relay_to(const SocketAddress& address) const {
  const auto known = peers_.find(address);
  const std::size_t way = known != peers_.end() ? known->second->ways.used() : Ways::kDirect;
  return way == Ways::kDirect ? SocketAddress{} : memberships_[way - 1].relay();
}

// --- sending ---

std::size_t RelayedLink::send_burst(std::span<const link::OutFrame> frames) {
  for (std::size_t done = 0; done < frames.size();) {
    const link::Path& path = *frames[done].path;
    std::size_t end = done + 1;
    while (end < frames.size() && (frames[end].path == &path || frames[end].path->to == path.to)) ++end;
    const std::span<const link::OutFrame> run = frames.subspan(done, end - done);
    std::size_t way = Ways::kDirect;
    if (!path.to.multicast() && !path.to.verbs()) {
      const Time now = environment_.clock.now();
      const bool stranger = may_be_for_stranger(run[0]);
      if (Peer* const peer = stranger ? find_peer(path.to) : peer_at(now, path.to, kPeersMax)) {
        if (!stranger || peer->sent_at != Time{}) before_sending(now, *peer, path);
        way = peer->ways.used();
      }
    }
    const std::size_t taken =
        way == Ways::kDirect ? inner_->send_burst(run) : send_tagged(run, path.to, memberships_[way - 1]);
    done += taken;
    if (taken < run.size()) return done;
  }
  return frames.size();
}

std::size_t RelayedLink::send_tagged(std::span<const link::OutFrame> frames, const SocketAddress& peer,
                                     const Membership& by) {
  wire::RelayTag tag{};
  tag.magic = wire::kRelayMagic;
  tag.hops = wire::kRelayHops;
  tag.member = by.member();
  tag.peer = wire::rail_block(peer);
  for (std::size_t done = 0; done < frames.size();) {
    const std::size_t count = std::min(frames.size() - done, tagged_.size());
    for (std::size_t i = 0; i < count; ++i) {
      tagged_[i] = frames[done + i];
      tagged_[i].path = &by.path();
      tagged_[i].add(as_bytes(&tag, sizeof tag));
    }
    const std::size_t taken = inner_->send_burst(std::span(tagged_).first(count));
    done += taken;
    if (taken < count) return done;
  }
  return frames.size();
}

void RelayedLink::before_sending(Time now, Peer& peer, const link::Path& path) {
  peer.sent_at = now;
  peer.direct = link::without_mac(path);
  if (peer.ways.round_due(now)) begin_round(now, peer);
}

void RelayedLink::begin_round(Time now, Peer& peer) {
  if (peer.ways.begin_round(now)) report_way(peer);
  for (std::size_t way = 0; way < peer.ways.size(); ++way) {
    if (!peer.ways.asks(way)) continue;
    // The relay may have begun anew, or may know a source that a router has changed.
    if (way != Ways::kDirect && !peer.ways.works(way)) join(now, memberships_[way - 1]);
    if (way == Ways::kDirect || memberships_[way - 1].joined()) ask(now, peer, way);
  }
  if (!std::exchange(peer.tended, true)) tended_.push_back(&peer);
}

/// Asks the peer's keep-alive responder on this way. The peer may have any of our keys, so it gets a question
/// for each.
void RelayedLink::ask(Time now, Peer& peer, std::size_t way) {
  const std::uint64_t question = std::max<std::uint64_t>(environment_.random.next(), 1);
  peer.ways.asked(now, way, question);
  wire::FrameHeader header{};
  header.magic = wire::kMagic;
  header.version = wire::kVersion;
  header.kind = static_cast<std::uint8_t>(FrameKind::keep_alive);
  header.flags = wire::frame_flag::kSealed;
  header.length = sizeof header + sizeof(wire::SealTrailer);
  header.sequence = mark_;  // the answer has it as its session
  wire::set_challenge(header, question);
  header.largest_acked =
      static_cast<std::uint32_t>(way == Ways::kDirect ? wire::AskedWay::direct : wire::AskedWay::relayed);
  for (const auto& key : credentials_.keys) {
    wire::SealTrailer trailer{};
    trailer.counter = ++keep_alives_;
    seal::seal_keep_alive(*key, credentials_.mode, header, peer.address, trailer);
    link::OutFrame frame;
    frame.path = &peer.direct;
    frame.add(as_bytes(&header, sizeof header));
    frame.add(as_bytes(&trailer, sizeof trailer));
    if (way == Ways::kDirect) {
      inner_->send_burst({&frame, 1});
    } else {
      send_tagged({&frame, 1}, peer.address, memberships_[way - 1]);
    }
  }
}

void RelayedLink::join(Time now, Membership& membership) {
  const unsigned before = membership.asks();
  membership.ask(now, name_, links_, *inner_, environment_.random);
  if (membership.joined() || membership.asks() != kAsksUnneeded || before == kAsksUnneeded) return;
  environment_.log.warn(
      "relay %s does not answer: no relay runs there, it has not the key of this job, or a firewall drops "
      "its "
      "frames (FI_CLUSTER_RELAYS names it)",
      membership.relay().text().c_str());
}

// --- looking after peers and relays ---

void RelayedLink::tend(Time now) {
  tend_members(now);
  std::erase_if(tended_, [&](Peer* peer) {
    const bool over = !peer->ways.waits() || now >= peer->sent_at + kTendedFor;
    if (over) peer->tended = false;
    return over;
  });
  for (std::size_t i = 0; i < tended_.size(); ++i) {
    if (tended_[i]->ways.round_due(now)) begin_round(now, *tended_[i]);
  }
}

void RelayedLink::tend_members(Time now) {
  all_joined_ = true;
  for (Membership& membership : memberships_) {
    const bool old = rejoin_after_ != Duration{} && now >= membership.joined_at() + rejoin_after_;
    if (membership.joined() && !old) continue;
    if (membership.asks() >= kAsksUnneeded && !old) continue;
    all_joined_ = false;
    join(now, membership);
  }
}

void RelayedLink::report_way(const Peer& peer) {
  const std::size_t way = peer.ways.used();
  if (way == Ways::kDirect) {
    environment_.log.info("peer %s is reached without a relay", peer.address.text().c_str());
  } else {
    environment_.log.info("peer %s is reached through the relay %s (round trip %lld us)",
                          peer.address.text().c_str(), memberships_[way - 1].relay().text().c_str(),
                          static_cast<long long>(peer.ways.round_trip(way).count() / 1000));
  }
}

void RelayedLink::on_move(const MoveHandler& handler) {
  inner_->on_move([this, handler](std::uint8_t link, const SocketAddress& now) {
    if (link == 0) {
      name_ = now;
      for (Membership& membership : memberships_) membership.leave();
    }
    handler(link, now);
  });
}

// --- receiving ---

std::size_t RelayedLink::receive_burst(std::span<link::InFrame> frames) {
  if (!tended_.empty() || !all_joined_ || ++polls_ >= kPollsPerClock) {
    polls_ = 0;
    tend(environment_.clock.now());
  }
  if (arrivals_begin_ == arrivals_end_) {
    arrivals_begin_ = 0;
    arrivals_end_ =
        inner_->receive_burst(std::span(arrivals_).first(std::min(frames.size(), arrivals_.size())));
    walk_ = link::ArrivalWalk(arrivals_[0]);
  }
  std::size_t count = 0;
  while (arrivals_begin_ < arrivals_end_ && count < frames.size()) {
    const link::InFrame& arrival = arrivals_[arrivals_begin_];
    if (is_special(arrival)) {
      count += next_of(arrival, frames[count]);
      if (!walk_.done()) continue;
    } else {
      note_direct_request(arrival);
      frames[count++] = arrival;
    }
    if (++arrivals_begin_ < arrivals_end_) walk_ = link::ArrivalWalk(arrivals_[arrivals_begin_]);
  }
  return count;
}

/// Returns true if this link has to look at each datagram of the arrival.
bool RelayedLink::is_special(const link::InFrame& arrival) const {
  return has_kind(arrival.bytes, FrameKind::alive) || way_of(arrival.from.to) != Ways::kDirect;
}

/// The answer to a request goes back the way that the request came, as long as no way works.
void RelayedLink::note_direct_request(const link::InFrame& arrival) {
  if (!has_kind(arrival.bytes, FrameKind::association_request)) return;
  if (Peer* const peer = find_peer(arrival.from.to)) peer->ways.heard(Ways::kDirect);
}

/// Handles the next datagram of the arrival. Returns 1 if the user gets `out`, else 0.
std::size_t RelayedLink::next_of(const link::InFrame& arrival, link::InFrame& out) {
  if (const std::size_t way = way_of(arrival.from.to); way != Ways::kDirect)
    return next_relayed(arrival, way, out);
  wire::FrameHeader header;
  const Bytes frame = seal::first_frame(walk_.datagram(), header);
  if (!frame.empty() && take_answer(frame, arrival.from.to, Ways::kDirect)) {
    walk_.pass(1, frame.size());
    return 0;
  }
  out = arrival;
  out.bytes = walk_.datagram();
  out.segment = 0;
  walk_.pass_datagram();
  return 1;
}

std::size_t RelayedLink::next_relayed(const link::InFrame& arrival, std::size_t way, link::InFrame& out) {
  Membership& membership = memberships_[way - 1];
  const Bytes datagram = walk_.datagram();
  wire::RelayTag tag;
  const std::size_t length = wire::tagged_frame(datagram, tag);
  if (length == 0) {
    const ConstBytes frame = datagram.first(std::min(datagram.size(), wire::kRelayFrameSize));
    const Time now = environment_.clock.now();
    if (membership.on_frame(now, frame, arrival.from, *inner_))
      environment_.log.info("endpoint %s may use the relay %s", name_.text().c_str(),
                            membership.relay().text().c_str());
    walk_.pass_refused(frame.size());
    return 0;
  }
  walk_.pass(1, length + sizeof tag);
  const SocketAddress peer = wire::address_of(tag.peer, 0);
  if (tag.member != membership.member() || !membership.joined() || !wire::is_endpoint_address(peer)) {
    ++environment_.counters.refused_stale;
    // Perhaps the relay knows an earlier process with our name, whose place this one has not taken yet.
    if (!membership.joined()) join(environment_.clock.now(), membership);
    return 0;
  }
  if (take_answer(datagram.first(length), peer, way)) return 0;
  if (Peer* const known = peer_at(environment_.clock.now(), peer, kHeardMax)) known->ways.heard(way);
  out = arrival;
  out.bytes = datagram.first(length);
  out.segment = 0;
  out.from = {peer, {}, false, arrival.from.link};
  out.from.translated = true;
  return 1;
}

bool RelayedLink::take_answer(ConstBytes frame, const SocketAddress& peer, std::size_t way) {
  wire::FrameHeader header;
  wire::SealTrailer trailer;
  if (!has_kind(frame, FrameKind::alive) || frame.size() < sizeof header + sizeof trailer) return false;
  std::memcpy(&header, frame.data(), sizeof header);
  std::memcpy(&trailer, frame.data() + frame.size() - sizeof trailer, sizeof trailer);
  const std::uint64_t question = header.transmission | std::uint64_t{header.ack} << 32;
  const auto known = peers_.find(peer);
  if (known == peers_.end() || !known->second->ways.expects(way, question)) return false;
  const auto verifies = [&](const auto& key) {
    return seal::verify_keep_alive(*key, credentials_.mode, header, peer, trailer);
  };
  if (!std::ranges::any_of(credentials_.keys, verifies)) {
    ++environment_.counters.refused_forged;
    return true;
  }
  if (known->second->ways.on_answer(environment_.clock.now(), way, question)) report_way(*known->second);
  return true;
}

/// An error about the direct way to a peer says nothing about the peer while a relay leads there, or while it
/// is not known yet whether one does. The user knows no relay, so it gets no error about one.
std::size_t RelayedLink::read_path_errors(std::span<link::PathError> errors) {
  const std::size_t read = inner_->read_path_errors(errors);
  std::size_t kept = 0;
  for (const link::PathError& error : errors.first(read)) {
    if (way_of(error.peer) != Ways::kDirect) continue;
    const auto known = peers_.find(error.peer);
    const bool elsewhere = known != peers_.end() && known->second->ways.used() != Ways::kDirect;
    const bool searches = known != peers_.end() && error.status != Status::refused &&
                          !known->second->ways.works(Ways::kDirect) &&
                          known->second->ways.vain_rounds() < kRoundsTolerated;
    if (elsewhere || searches) continue;
    errors[kept++] = error;
  }
  return kept;
}

}  // namespace cluster::relay
