#include "seal/sealed_link.h"

#include <algorithm>
#include <bit>
#include <cstddef>
#include <cstring>
#include <new>
#include <utility>

#include "seal/association.h"
#include "seal/keep_alive_seal.h"

namespace cluster::seal {
namespace {

using wire::FrameKind;

bool is(const wire::FrameHeader& header, FrameKind kind) {
  return header.kind == static_cast<std::uint8_t>(kind);
}

bool is_keep_alive(const link::OutFrame& frame) {
  return frame.pieces[0][offsetof(wire::FrameHeader, kind)] == static_cast<std::byte>(FrameKind::keep_alive);
}

/// Copies the frame to `to`, with `block` after the header. Sets the length in the header to the length of
/// the sealed frame.
void copy_frame(const link::OutFrame& frame, ConstBytes block, Bytes to) {
  constexpr std::size_t header_size = sizeof(wire::FrameHeader);
  const ConstBytes front = frame.pieces[0];
  std::memcpy(to.data(), front.data(), header_size);
  std::launder(reinterpret_cast<wire::FrameHeader*>(to.data()))->length =
      static_cast<std::uint16_t>(to.size());
  std::byte* end = std::copy(block.begin(), block.end(), to.data() + header_size);
  end = std::copy(front.begin() + header_size, front.end(), end);
  for (std::size_t i = 1; i < frame.count; ++i)
    end = std::copy(frame.pieces[i].begin(), frame.pieces[i].end(), end);
}

/// Sealing a frame takes about as long as fetching a frame from memory, so the frame after the next is
/// prefetched.
constexpr std::size_t kFramesAhead = 2;

void prefetch_frame(const link::OutFrame& frame) {
  for (std::size_t i = 0; i < frame.count; ++i) prefetch(frame.pieces[i]);
}

}  // namespace

SealedLink::SealedLink(std::unique_ptr<link::Link> inner, Credentials credentials,
                       std::vector<SocketAddress> addresses, const Environment& environment)
    : inner_(std::move(inner)),
      credentials_(std::move(credentials)),
      ours_{draw_salt(environment.random), std::move(addresses),
            credentials_.keys.front()->cryptography().prefers_aes()},
      environment_(environment),
      translation_(credentials_, ours_, table_, *inner_, environment_),
      exchange_(credentials_, ours_, table_, translation_, *inner_, environment_),
      keep_alives_(environment.random.next()) {}

std::size_t SealedLink::frame_max() const {
  return std::min(inner_->frame_max(), wire::kFrameMax) - sizeof(wire::SealTrailer);
}

std::size_t SealedLink::send_burst(std::span<const link::OutFrame> frames) {
  for (std::size_t done = 0; done < frames.size();) {
    if (is_keep_alive(frames[done])) {
      send_keep_alive(frames[done++]);
      continue;
    }
    const SocketAddress& to = frames[done].path->to;
    GroupSender* const group = to.multicast() ? &group_sender(to) : nullptr;
    const Route* const route = group == nullptr ? table_.find_route(to.verbs() ? owner_of(to) : to) : nullptr;
    if (group == nullptr && (route == nullptr || route->current == nullptr)) {
      if (!to.verbs()) wait_for_association(frames[done]);
      ++done;
      continue;
    }
    std::size_t end = done + 1;
    while (end < frames.size() && (frames[end].path == frames[done].path || frames[end].path->to == to) &&
           !is_keep_alive(frames[end])) {
      ++end;
    }
    const std::span<const link::OutFrame> run = frames.subspan(done, end - done);
    const std::size_t taken = group != nullptr ? send_sealed(run, group->association(), group->block())
                                               : send_sealed(run, *route->current);
    done += taken;
    if (done < end) return done;
  }
  return frames.size();
}

/// Ends all associations with peers and groups, because an association belongs to the addresses of both
/// sides. This side then begins new ones with new salts, as a restarted process would.
void SealedLink::readdress(std::uint8_t link, const SocketAddress& now) {
  ours_.salt = draw_salt(environment_.random);
  ours_.addresses.at(link) = now;
  table_ = {};
  groups_.clear();
}

/// Returns the IP address of the peer to which the queue pair belongs, or an empty address if that is
/// unknown.
const SocketAddress& SealedLink::owner_of(const SocketAddress& queue_pair) const {
  static const SocketAddress unknown;
  const auto found = queue_pairs_.find(queue_pair);
  return found != queue_pairs_.end() ? found->second : unknown;
}

/// Returns the sender for a group. The sender is kept even if the endpoint leaves the group. So if the
/// endpoint joins the group again, no counter is used twice.
GroupSender& SealedLink::group_sender(const SocketAddress& address) {
  const SocketAddress group = without_scope(address);
  std::unique_ptr<GroupSender>& place = groups_[group];
  if (place == nullptr)
    place = std::make_unique<GroupSender>(credentials_, ours_, group, environment_.random);
  return *place;
}

/// Seals and sends frames to one peer or group. Returns how many of them the inner link has taken.
std::size_t SealedLink::send_sealed(std::span<const link::OutFrame> frames, Association& association,
                                    ConstBytes block) {
  for (std::size_t done = 0; done < frames.size();) {
    const std::span<const link::OutFrame> sealed = seal(frames.subspan(done), association, block);
    const std::size_t taken = inner_->send_burst(sealed);
    done += taken;
    if (taken < sealed.size()) return done;
  }
  return frames.size();
}

/// Seals as many of `frames` as there is space for, beginning with the first. Inserts `block` after the
/// header of each; `block` is not encrypted in any mode. Copies each frame to the end of the previous one and
/// seals it there. The copy saves time: the cryptographic library seals a frame in one piece faster, and a
/// link sends it faster.
std::span<const link::OutFrame> SealedLink::seal(std::span<const link::OutFrame> frames,
                                                 Association& association, ConstBytes block) {
  frames = frames.first(std::min(frames.size(), sealed_.size()));
  Bytes space(staging_.get(), kStagingBytes);
  std::size_t count = 0;
  const bool translated = association.sources.any_used();
  for (; count < frames.size(); ++count) {
    const link::OutFrame& frame = frames[count];
    const std::size_t size = frame.size + block.size() + sizeof(wire::SealTrailer);
    if (size > space.size()) break;
    const Bytes place = space.first(size);
    copy_frame(frame, block, place);
    if (count + kFramesAhead < frames.size()) prefetch_frame(frames[count + kFramesAhead]);
    association.seal(place, block.size());
    link::OutFrame& sealed = sealed_[count];
    sealed.path = frame.path;
    if (translated) [[unlikely]] {
      const bool as_before = count != 0 && frames[count - 1].path == frame.path;
      sealed.path = as_before ? sealed_[count - 1].path
                              : &(outward_[count] = translation_.outward(association, *frame.path));
    }
    sealed.count = sealed.size = 0;
    sealed.add(place);
    space = space.subspan(size);
  }
  return std::span(sealed_).first(count);
}

/// Sends a keep-alive. If there is no association yet, the peer may have any of our keys. So the peer gets
/// one keep-alive for each key, as with requests (association_exchange.h).
void SealedLink::send_keep_alive(const link::OutFrame& frame) {
  Route& route = table_.route(frame.path->to);
  if (route.current != nullptr) return send_keep_alive(frame, route, route.current->key());
  for (const auto& key : credentials_.keys) send_keep_alive(frame, route, *key);
}

void SealedLink::send_keep_alive(const link::OutFrame& frame, Route& route, const JobKey& key) {
  wire::FrameHeader header;
  wire::SealTrailer trailer;
  std::memcpy(&header, frame.pieces[0].data(), sizeof header);
  header.flags = wire::frame_flag::kSealed;
  header.checksum = sender_id(ours_.salt, key.id());
  header.length = static_cast<std::uint16_t>(frame.size + sizeof trailer);
  trailer.counter = ++keep_alives_;
  seal_keep_alive(key, credentials_.mode, header, frame.path->to, trailer);
  route.keep_alives[route.next_keep_alive++ % route.keep_alives.size()] = keep_alives_;
  asked_[keep_alives_ % asked_.size()] = {keep_alives_, frame.path->to};
  const link::Path path =
      route.current != nullptr ? translation_.outward(*route.current, *frame.path) : *frame.path;
  link::OutFrame sealed;
  sealed.path = &path;
  sealed.add(as_bytes(&header, sizeof header));
  sealed.add(frame.pieces[0].subspan(sizeof header));
  for (std::size_t i = 1; i < frame.count; ++i) sealed.add(frame.pieces[i]);
  sealed.add(as_bytes(&trailer, sizeof trailer));
  inner_->send_burst({&sealed, 1});
}

void SealedLink::wait_for_association(const link::OutFrame& frame) {
  const Time time = now();
  Route& route = table_.route(frame.path->to);
  if (time >= route.waiting_since + kWaitingLongest) route.waiting.clear();
  if (route.waiting.empty()) route.waiting_since = time;
  if (route.waiting.size() < kWaitingMax) {
    WaitingFrame& waiting = route.waiting.emplace_back();
    waiting.path = *frame.path;
    waiting.bytes.reserve(frame.size);
    for (std::size_t i = 0; i < frame.count; ++i) {
      waiting.bytes.insert(waiting.bytes.end(), frame.pieces[i].begin(), frame.pieces[i].end());
    }
  }
  exchange_.request(time, route, *frame.path);
}

void SealedLink::send_waiting(Association& association) {
  const Time time = now();
  for (const SocketAddress& address : association.peer().addresses) {
    Route& route = table_.route(address);
    if (route.current != &association) continue;
    const std::vector<WaitingFrame> waiting = std::exchange(route.waiting, {});
    if (time >= route.waiting_since + kWaitingLongest) continue;
    for (const WaitingFrame& each : waiting) {
      link::OutFrame frame;
      frame.path = &each.path;
      frame.add(each.bytes);
      send_sealed({&frame, 1}, association);
    }
  }
}

std::size_t SealedLink::receive_burst(std::span<link::InFrame> frames) {
  std::size_t count = 0;
  if (arrivals_begin_ == arrivals_end_) {
    arrivals_begin_ = 0;
    arrivals_end_ =
        inner_->receive_burst(std::span(arrivals_).first(std::min(frames.size(), arrivals_.size())));
    walk_ = link::ArrivalWalk(arrivals_[0]);
  }
  while (arrivals_begin_ < arrivals_end_ && count < frames.size()) {
    count += next_genuine(arrivals_[arrivals_begin_], frames[count]);
    if (walk_.done() && ++arrivals_begin_ < arrivals_end_)
      walk_ = link::ArrivalWalk(arrivals_[arrivals_begin_]);
  }
  return count;
}

/// Handles the next frames of the arrival up to the first refused one, which is dropped. Sets `out` to the
/// genuine frames before it. Returns 1 if there are any, else 0.
std::size_t SealedLink::next_genuine(const link::InFrame& arrival, link::InFrame& out) {
  Bytes genuine;
  Sender sender;
  std::uint32_t first_id = 0;
  while (!walk_.done()) {
    wire::FrameHeader header;
    const Bytes frame = first_frame(walk_.datagram(), header);
    if (frame.empty()) {
      ++environment_.counters.refused_malformed;
      walk_.pass_datagram();
      break;
    }
    if (!genuine.empty() && header.checksum != first_id) break;  // its sender may be known by another address
    prefetch(walk_.behind(frame.size()));
    if (!accept(frame, header, arrival.from, sender)) {
      walk_.pass_refused(frame.size());
      break;
    }
    walk_.pass(1, frame.size());
    first_id = header.checksum;
    genuine = {genuine.empty() ? frame.data() : genuine.data(), genuine.size() + frame.size()};
  }
  if (genuine.empty()) return 0;
  out = arrival;
  if (!sender.lists_source) [[unlikely]]
    out.from = path_of(sender, arrival.from);
  out.bytes = genuine;
  out.segment = 0;  // the seal authenticates the length in each header
  return 1;
}

/// Returns the path that the user sees for a frame whose source a router seems to have replaced.
link::Path SealedLink::path_of(const Sender& sender, const link::Path& from) const {
  if (sender.association != nullptr) return translation_.known_path(*sender.association, from);
  link::Path path = link::without_mac(from);
  path.to = sender.asked;
  path.translated = true;
  return path;
}

bool SealedLink::accept(Bytes frame, const wire::FrameHeader& header, const link::Path& from, Sender& last) {
  if (from.to.verbs()) return accept_from_queue_pair(frame, header, from.to, last);
  if ((header.flags & wire::frame_flag::kSealed) == 0) {
    exchange_.on_unsealed(now(), header, from);
    return false;
  }
  if (is(header, FrameKind::keep_alive)) {  // the keep-alive responder answers these frames
    ++environment_.counters.keep_alives_ignored;
    return false;
  }
  if (header.kind >= static_cast<std::uint8_t>(FrameKind::association_request) &&
      header.kind <= static_cast<std::uint8_t>(FrameKind::association_unknown)) {
    if (Association* const current = exchange_.on_frame(now(), header, frame, from)) send_waiting(*current);
    return false;
  }
  if (is(header, FrameKind::alive)) return accept_alive(frame, header, from, last);
  if (last.association == nullptr || last.association->peer_id() != header.checksum) {
    last = {table_.find(from.to, header.checksum), true};
    if (last.association == nullptr) last = {table_.find_by_id(header.checksum), false};
  }
  if (last.association == nullptr) {
    exchange_.on_unknown(now(), header, from);
    return false;
  }
  return open(frame, header, from, last);
}

/// A frame from a queue pair changes no route and causes no notice.
bool SealedLink::accept_from_queue_pair(Bytes frame, const wire::FrameHeader& header,
                                        const SocketAddress& from, Sender& last) {
  if ((header.flags & wire::frame_flag::kSealed) == 0) {
    ++environment_.counters.refused_unsealed;
    return false;
  }
  if (last.association == nullptr || last.association->peer_id() != header.checksum)
    last = {table_.find(owner_of(from), header.checksum), true};
  if (last.association == nullptr || !last.association->listed) {
    ++environment_.counters.refused_stale;
    return false;
  }
  switch (last.association->open(frame)) {
    case Association::Verdict::genuine: return true;
    case Association::Verdict::replayed: ++environment_.counters.refused_replayed; return false;
    case Association::Verdict::forged: ++environment_.counters.refused_forged; return false;
  }
  return false;
}

bool SealedLink::open(Bytes frame, const wire::FrameHeader& header, const link::Path& from,
                      const Sender& sender) {
  Association& association = *sender.association;
  switch (association.open(frame)) {
    case Association::Verdict::genuine: break;
    case Association::Verdict::replayed: ++environment_.counters.refused_replayed; return false;
    case Association::Verdict::forged: exchange_.on_forged(now(), association, header, from); return false;
  }
  if (!sender.lists_source) [[unlikely]] {
    if (translation_.user_gets(now(), association, from, keep_alives_)) return true;
    ++environment_.counters.refused_stale;
    return false;
  }
  if (!association.listed) [[unlikely]] {
    if (!association.superseded) table_.make_current(association, from.to);
    send_waiting(association);
  }
  if (association.sources.any_used()) [[unlikely]]
    translation_.on_listed(association, from);
  return true;
}

/// Returns true if the frame is the answer to a keep-alive of ours, sealed with one of our keys.
bool SealedLink::accept_alive(ConstBytes frame, const wire::FrameHeader& header, const link::Path& from,
                              Sender& sender) {
  if (frame.size() < sizeof header + sizeof(wire::SealTrailer)) {
    ++environment_.counters.refused_malformed;
    return false;
  }
  wire::SealTrailer trailer;
  std::memcpy(&trailer, frame.data() + frame.size() - sizeof trailer, sizeof trailer);
  const std::uint64_t counter = trailer.counter;
  SocketAddress address = translation_.known_as(from.to);
  Association* const behind = translation_.asked(from.to, header, counter, address);
  const Asked& asked = asked_[counter % asked_.size()];
  if (behind == nullptr && asked.counter == counter) address = asked.address;
  Route* const route = counter != 0 && behind == nullptr ? table_.find_route(address) : nullptr;
  if (behind == nullptr && (route == nullptr || std::ranges::count(route->keep_alives, counter) == 0)) {
    ++environment_.counters.refused_replayed;
    return false;
  }
  const auto verifies = [&](const auto& key) {
    return verify_keep_alive(*key, credentials_.mode, header, address, trailer);
  };
  if (!std::ranges::any_of(credentials_.keys, verifies)) {
    ++environment_.counters.refused_forged;
    return false;
  }
  if (behind != nullptr) {
    if (translation_.prove_by(*behind, from, counter)) send_waiting(*behind);
    return false;
  }
  *std::ranges::find(route->keep_alives, counter) = 0;
  const bool known = address == translation_.known_as(from.to);
  if (address != from.to) sender = {known ? table_.behind(from.to) : nullptr, false, address};
  if (!known) ask_who_answers(*route, address, from);
  return true;
}

/// Called when a keep-alive to the address was answered from a source that this side does not know. A router
/// has replaced the source, so the process that answers may be the peer's successor. The successor's notices
/// come from such a source as well. This side cannot use them, because they do not show whose they are. An
/// association request shows it: the response names the process that answers. The first answer after a frame
/// only begins the count. A peer that computes cannot read requests, so only the counts 1, 2 and 4, and each
/// multiple of 8, cause one.
void SealedLink::ask_who_answers(Route& route, const SocketAddress& address, const link::Path& from) {
  if (route.current == nullptr) return;
  if (const std::uint64_t opened = route.current->newest_opened(); opened != route.opened) {
    route.opened = opened;
    route.answers_since_opened = 0;
    return;
  }
  const unsigned answers = ++route.answers_since_opened;
  if (!std::has_single_bit(answers) && answers % 8 != 0) return;
  link::Path path = link::without_mac(from);
  path.to = address;
  exchange_.request(now(), route, path);
}

/// Marks an ICMP error as vouched if it quotes one of our association requests. Only hosts on the path know
/// the salt in that request, so no other host can forge such an error. Names a peer behind a translator by
/// the address by which the user knows the peer. A translator has no port for the peer after it has changed
/// its translation, so an error that says so does not show that the peer's process has ended.
std::size_t SealedLink::read_path_errors(std::span<link::PathError> errors) {
  const std::size_t read = inner_->read_path_errors(errors);
  for (link::PathError& error : errors.first(read)) {
    if (error.peer.verbs()) continue;  // no other host has sent the error
    error.vouched = exchange_.has_requested(error.quote());
    const SocketAddress peer = translation_.known_as(error.peer);
    if (peer != error.peer && error.status == Status::refused) error.status = Status::unreachable;
    error.peer = peer;
  }
  return read;
}

}  // namespace cluster::seal
