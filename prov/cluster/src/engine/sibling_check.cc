#include "engine/sibling_check.h"

#include <array>
#include <cstring>

#include "engine/control_frames.h"

namespace cluster::engine {
namespace {

std::uint64_t interval_at(Time now, Duration interval) {
  return static_cast<std::uint64_t>(now.time_since_epoch() / interval);
}

}  // namespace

SiblingCheck::SiblingCheck(const EngineParts& parts, PeerTable& peers)
    : parts_(parts), peers_(peers), hash_(parts.environment.random.next(), parts.environment.random.next()) {}

bool SiblingCheck::defers(Time now, const SocketAddress& caller, const wire::FrameView& call) {
  const SocketAddress sibling = wire::read_sibling(call.opening, call.rails);
  if (sibling.empty() || peers_.in_address_vector(caller) || !may_ask(sibling)) return false;
  const Question question{caller, call.opening.session, sibling};
  if (confirmed(verdict_key(question))) return false;
  ask(now, question);
  return call.transmission.value <= kCallsAwaited;
}

void SiblingCheck::note_opening(Peer& peer, const wire::FrameView& view) {
  using Claim = Peer::Sibling::Claim;
  const SocketAddress sibling = wire::read_sibling(view.opening, view.rails);
  if (sibling.empty()) return;
  const std::uint64_t key = verdict_key({peer.name(), view.opening.session, sibling});
  if (peer.contact.sibling.claim == Claim::none || peer.contact.sibling.key != key)
    peer.contact.sibling = {.name = sibling, .key = key, .claim = Claim::made};
}

void SiblingCheck::review(Time now, Peer& peer) {
  Peer::Sibling& sibling = peer.contact.sibling;
  if (confirmed(sibling.key)) {
    sibling.claim = Peer::Sibling::Claim::confirmed;
    return;
  }
  if (now < sibling.next_request) return;
  sibling.next_request = now + kRequestInterval;
  if (peers_.is_member(peer.channel) || !may_ask(sibling.name)) return;
  ask(now, {peer.name(), peer.flow->handshake().peer_session(), sibling.name});
}

bool SiblingCheck::may_ask(const SocketAddress& sibling) {
  return sibling != parts_.name && peers_.is_member_name(sibling);
}

void SiblingCheck::ask(Time now, const Question& question) {
  if (!limiter_.admits_unknown(now)) return;
  const link::Path path{question.sibling, {}, false, multipath::rail_towards(parts_.rails, question.sibling)};
  const std::uint64_t bits = challenge(interval_at(now, kInterval), question);
  send_control(*parts_.link,
               wire::ControlFrame::sibling_request(question.session, bits, wire::rail_block(question.caller)).bytes(),
               path);
}

void SiblingCheck::on_request(const wire::FrameView& view, const link::Path& from) {
  wire::RailBlock caller;
  std::memcpy(&caller, view.rails.data(), sizeof caller);
  if (parts_.roster == nullptr || !parts_.roster->contains(caller)) {
    ++parts_.environment.counters.refused_stale;
    return;
  }
  send_control(*parts_.link, wire::ControlFrame::sibling_response(view).bytes(), from);
}

/// The source is the sibling that was asked, or the 64 bits are wrong.
void SiblingCheck::on_response(Time now, const wire::FrameView& view, const SocketAddress& from) {
  const SocketAddress caller = wire::read_rails(view.rails).front();
  const Question question{caller, view.sequence.value, from};
  const std::uint64_t at = interval_at(now, kInterval);
  if (view.challenge() != challenge(at, question) && view.challenge() != challenge(at - 1, question)) {
    ++parts_.environment.counters.refused_stale;
    return;
  }
  if (verdicts_.empty()) verdicts_.resize(kVerdicts);
  const std::uint64_t key = verdict_key(question);
  if (confirmed(key)) return;
  verdicts_[key % kVerdicts] = key;
  ++parts_.environment.counters.siblings_confirmed;
}

/// Without the scopes of the names, which no frame about siblings carries.
std::uint64_t SiblingCheck::hash(const Question& question, std::uint64_t purpose) const {
  std::array<std::uint64_t, 7> words{};
  const ConstBytes caller = question.caller.ip();
  const ConstBytes sibling = question.sibling.ip();
  std::memcpy(&words[0], caller.data(), caller.size());
  std::memcpy(&words[2], sibling.data(), sibling.size());
  words[4] = std::uint64_t{question.caller.port()} << 48 | std::uint64_t{question.sibling.port()} << 32 | question.session;
  words[5] = std::uint64_t{static_cast<std::uint8_t>(question.caller.family())} << 8 |
             static_cast<std::uint8_t>(question.sibling.family());
  words[6] = purpose;
  return hash_(words);
}

/// No challenge is one: intervals are smaller.
std::uint64_t SiblingCheck::verdict_key(const Question& question) const { return hash(question, ~std::uint64_t{0}); }

std::uint64_t SiblingCheck::challenge(std::uint64_t interval, const Question& question) const {
  return hash(question, interval);
}

}  // namespace cluster::engine
