// The way down: choose which frames go, seal them, hand them to the link, remember what went.
#include <algorithm>
#include <cassert>
#include <utility>

#include "reliability/flow_rooms.h"

namespace cluster::reliability {

using namespace wire::frame_flag;

bool Flow::Rooms::post(const wire::Segment& segment, const Gather& payload, carrier::PayloadMode hold,
                       carrier::Token token) {
  if (!alive() || frames.queued() >= kQueuedMax || !frames.room(FrameBuilder::kFramesMax)) return false;
  const std::size_t room = handshake.room();
  assert(segment.length == payload.length);
  if (wire::encoded_size(segment) + payload.length > room) return false;
  builder.add(segment, payload, hold, token, room);
  return true;
}

void Flow::Rooms::transmit(Time now, link::Link& link) {
  if (!alive()) return;
  retry_at = resume_at = kNever;
  detect_losses(now);
  const std::size_t rails_before = rails.size();
  if (handshake.peer_has_opening()) join_paths();
  const Sequence before = transmission;
  Word word(now, acks, arrivals);
  if (std::exchange(asks_again, false)) ask_again(now, link, word);
  Word::Said told = Word::Said::nothing;
  bool taken = true;
  rails.turn_begins();
  for (bool more = true; more;) {
    if (transmission != before) {  // who lost the processor meanwhile would take that for the network's doing
      now = environment.clock.now();
      word.date(now, acks);
    }
    const multipath::PathManager::Turn turn = next_turn(now);
    Choice choice;
    choice.rail = turn.rail;
    choose(choice, std::min(turn.frames, burst_limit()));
    if (choice.count == 0 && choice.more) resume_at = rails.resume(now);
    if (choice.count == 0) break;
    more = choice.more;
    if (send(now, link, choice, word, told)) continue;
    taken = false;
    rails[turn.rail].full = true;  // others may have room
    if (rails.size() == 1 || urgent) break;
    more = true;
  }
  if (rails.size() > 1 && (transmission != before || rails.size() != rails_before))
    challenge_paths(now, link);
  if (handshake.ethertype_negotiated() && transmission != before) challenge_ethertype_paths(now, link);
  const bool alone = told == Word::Said::nothing;
  if (alone && taken && acks.due(now)) {
    const Label label{wire::FrameKind::flow, 0, frames.next(), transmission};
    const auto said = send_bare(label, rails.reply(), link, word);
    taken = said.has_value();
    told = said.value_or(told);
    if (taken) ++environment.counters.acks_sent;
  }
  if (told != Word::Said::nothing) acks.sent(now, alone);
  if (told == Word::Said::all) acks.set_spurious_reported(word.spurious());
  if (!taken) retry_at = now + kRetryLink;
  liveness.expect(now, !drained());
}

/// The first of many frames go in short bursts: the peer takes in one while the next is made ready. Once
/// it has its hands full long ones are cheaper.
std::size_t Flow::Rooms::burst_limit() const {
  return frames.in_flight() < kLead ? kShortBurst : link::kBurstMax;
}

/// What got no answer goes by another rail than before.
multipath::PathManager::Turn Flow::Rooms::next_turn(Time now) {
  if (urgent && frames.is_outstanding(*urgent))
    return rails.select_other(now, frames.at(*urgent).rail, frames);
  return rails.next(now, frames);
}

/// Once it is known what the peer is called and how long its frames may be.
void Flow::Rooms::join_paths() {
  const std::size_t longest = handshake.longest();
  if (path_size.wants_probe(longest)) probe_path();
  if (path_size.settled(longest)) rails.join(handshake.peer_addresses());
}

/// A rail has to carry what the flow sends: so the question is as long as its longest frame. Of one that has
/// worked before it is enough that anybody is there.
void Flow::Rooms::challenge_paths(Time now, link::Link& link) {
  while (const std::optional<std::size_t> rail = rails.path_to_challenge(now)) {
    const link::Path path = rails.challenge_path(*rail);
    FrameBody padding(wire::kSegmentHeaderMax);
    pad(padding, 0);
    pad(padding, handshake.frame_max() - sizeof(wire::FrameHeader) - padding.filled);
    link::OutFrame out;
    out.path = &path;
    const std::uint32_t nonce = handshake.ours().session;
    const bool proven = rails[*rail].validator.proven();
    seal_question(proven ? Question{wire::FrameKind::probe, 0, nonce}
                         : Question{wire::FrameKind::trial, handshake.peer_session(), nonce},
                  padding, out);
    link.send_burst({&out, 1});
    rails.asked(now, *rail);
  }
}

/// What answers is the peer's engine, and it answers by the shortcut: so both directions are seen to work.
/// Not before the path's size is known, lest the frame that asks for that takes the shortcut.
void Flow::Rooms::challenge_ethertype_paths(Time now, link::Link& link) {
  if (tally.sent < kFramesBeforeEthertype || !path_size.settled(handshake.longest())) return;
  while (const std::optional<std::size_t> rail = rails.ethertype_to_challenge(now)) {
    link::Path path = rails[*rail].path;
    path.ethertype = true;
    link::OutFrame out;
    out.path = &path;
    seal_question({wire::FrameKind::trial, handshake.peer_session(), handshake.ours().session}, bare, out);
    link.send_burst({&out, 1});
    rails.ethertype_challenged(now, *rail);
  }
}

void Flow::Rooms::pad(FrameBody& body, std::size_t length) {
  static constexpr std::array<std::byte, wire::kFrameMax / kPayloadPiecesMax + 1> blank{};
  wire::Segment segment;
  segment.kind = wire::SegmentKind::padding;
  segment.length = static_cast<std::uint32_t>(length);
  body.reset();
  body.filled = wire::encode(segment, body.segments());
  for (std::size_t left = length; left > 0; left -= body.payload[body.payload_pieces - 1].size()) {
    body.refer_to(ConstBytes(blank).first(std::min(left, blank.size())));
  }
}

void Flow::Rooms::probe_path() {
  if (!frames.room(FrameBuilder::kFramesMax + 1)) return;
  std::unique_ptr<FrameBody> body = bodies.take_slim();
  pad(*body, 0);
  pad(*body, handshake.longest() - sizeof(wire::FrameHeader) - body->filled);
  path_size.sent(frames.end());
  frames.push(std::move(body));
}

void Flow::Rooms::choose(Choice& choice, std::size_t limit) {
  const auto pick = [&choice](Sequence s) {
    choice.picks[choice.count++] = {s, true};
    choice.repairs = true;
  };
  if (urgent && frames.is_outstanding(*urgent)) pick(*urgent);
  limit = std::min(limit, choice.picks.size());
  while (frames.has_lost() && choice.count < limit) {
    const Sequence s = frames.pop_lost();
    if (urgent != s) pick(s);
  }
  urgent.reset();
  choose_new(choice, limit);
  choice.awaited = choice.awaited || frames.awaited();
}

void Flow::Rooms::choose_new(Choice& choice, std::size_t limit) {
  const Sequence beyond = frames.first() + static_cast<std::uint32_t>(handshake.window());
  Sequence s = frames.next();
  while (s.before(beyond) && choice.count < limit) {
    if (s == frames.end()) builder.close();
    if (s == frames.end()) break;
    if (!frames.at(s).body->tokens.empty()) choice.awaited = true;
    choice.picks[choice.count++] = {s, false};
    ++s;
  }
  choice.more = s != frames.end() || builder.open() || frames.has_lost();
}

bool Flow::Rooms::ack_wanted(const Choice& choice) const {
  if (!handshake.peer_has_opening() || choice.repairs) return true;
  // With more to send, acknowledgements come by number of frames, unless the window is too small.
  return choice.more ? rails[choice.rail].congestion.window() < kSmallWindow : choice.awaited;
}

bool Flow::Rooms::send(Time now, link::Link& link, const Choice& choice, const Word& word, Word::Said& told) {
  multipath::PathState& rail = rails[choice.rail];
  const bool alone = choice.count == 1 && !choice.repairs && rail.keeps_order();
  const link::Path& way = alone ? rail.lone_frame_path() : rail.path;
  Burst burst;
  std::array<Word::Said, link::kBurstMax> says;
  for (std::size_t i = 0; i < choice.count; ++i) {
    FrameBody& body = *frames.at(choice.picks[i].sequence).body;
    if (choice.picks[i].repair && path_size.is_probe(choice.picks[i].sequence)) {
      path_size.lost();
      pad(body, 0);
    }
    Label label{wire::FrameKind::flow, kSequenced, choice.picks[i].sequence,
                transmission + static_cast<std::uint32_t>(i + 1)};
    if (body.ordered) label.flags |= kOrdered;
    if (i + 1 == choice.count && ack_wanted(choice)) label.flags |= kAckNow;
    link::OutFrame& out = burst.add();
    out.path = &way;
    says[i] = seal(label, handshake, word, body, out);
  }
  const std::size_t taken = link.send_burst(burst.frames());
  for (std::size_t i = 0; i < choice.count; ++i) {
    const Pick& pick = choice.picks[i];
    if (i < taken) {
      gone_out(now, pick, choice.rail);
      told = std::max(told, says[i]);
    } else if (pick.repair && frames.at(pick.sequence).state == Flight::State::lost) {
      frames.requeue_lost(pick.sequence);
    } else if (pick.repair) {
      urgent = pick.sequence;
    }
  }
  if (choice.count > 1 || choice.repairs) rail.last_burst_end = transmission;
  environment.counters.frames_sent += taken;
  tally.sent += taken;
  return taken == choice.count;
}

void Flow::Rooms::gone_out(Time now, const Pick& pick, std::size_t rail) {
  ++transmission;
  if (pick.repair) {
    ++environment.counters.frames_retransmitted;
    ++tally.retransmitted;
    rails[frames.at(pick.sequence).rail].congestion.repaired();
  }
  frames.sent(pick.sequence, transmission, now, static_cast<std::uint8_t>(rail));
  rails.sent(now, rail, transmission, pick.sequence, frames);
  timer.sent(now);
}

std::optional<Word::Said> Flow::Rooms::send_bare(const Label& label, const link::Path& path, link::Link& link,
                                                 const Word& word) {
  link::OutFrame out;
  out.path = &path;
  const Word::Said said = seal(label, handshake, word, bare, out);
  if (link.send_burst({&out, 1}) == 0) return std::nullopt;
  ++environment.counters.frames_sent;
  ++tally.sent;
  return said;
}

void Flow::Rooms::ask_again(Time now, link::Link& link, const Word& word) {
  FrameBody padding{wire::kSegmentHeaderMax};
  pad(padding, 0);
  const Label label{wire::FrameKind::flow, kSequenced, frames.next() + ~std::uint32_t{0}, transmission + 1};
  link::OutFrame out;
  out.path = &rails.next_validated();
  seal(label, handshake, word, padding, out);
  if (link.send_burst({&out, 1}) == 0) return;
  asked = ++transmission;
  ++environment.counters.frames_sent;
  ++tally.sent;
  timer.sent(now);
}

void Flow::Rooms::accept_opening(const wire::FrameView& opening, link::Link& link) {
  if (!handshake.knows_peer()) ++environment.counters.sessions_opened;
  if (handshake.accept(opening)) greet(handshake, rails.reply(), link);
}

void Flow::Rooms::answer_opening(const wire::FrameView& call, const link::Path& way_back, link::Link& link) {
  Handshake towards_caller(handshake.ours(), {handshake.further().begin(), handshake.further().end()});
  if (!alive() || !towards_caller.accept(call)) return;
  liveness.called();
  greet(towards_caller, way_back, link);
}

void Flow::Rooms::greet(const Handshake& whom, const link::Path& path, link::Link& link) {
  link::OutFrame out;
  out.path = &path;
  seal({wire::FrameKind::flow, 0, frames.next(), transmission}, whom, {Time{}, acks, arrivals}, bare, out);
  const std::size_t sent = link.send_burst({&out, 1});
  environment.counters.frames_sent += sent;
  tally.sent += sent;
}

void Flow::Rooms::close(Time now, link::Link& link) {
  if (!alive()) return;
  // A peer that was never spoken to has nothing to be told. The others would hear of it anyway when
  // they send something, but not as gently: so it is said more than once.
  if (handshake.knows_peer() || transmission.value != 0) {
    const Word word(now, acks, arrivals);
    for (std::size_t i = 0; i < kFinCopies; ++i) {
      const Label label{wire::FrameKind::fin, 0, frames.next(), transmission};
      if (!send_bare(label, rails.next_validated(), link, word)) break;
    }
  }
  status = Status::canceled;
}

}  // namespace cluster::reliability
