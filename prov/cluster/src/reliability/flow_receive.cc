// The way up: whose frame it is, what it acknowledges, what it brings; and what time brings.
#include <algorithm>

#include "reliability/flow_rooms.h"

namespace cluster::reliability {

Flow::ReceiveResult Flow::Rooms::receive(Time now, const wire::FrameView& view, const link::Path& from,
                                         Time arrived) {
  const bool mine = view.kind == wire::FrameKind::flow || view.kind == wire::FrameKind::fin;
  const bool knew_peer = handshake.knows_peer();
  if (!alive() || !mine || !handshake.accept(view)) {
    ++environment.counters.refused_stale;
    return ReceiveResult::refused;
  }
  if (!knew_peer) ++environment.counters.sessions_opened;
  if (view.session == 0 && view.sequenced() && view.sequence.value >= Handshake::kFramesBeforeAnswer) {
    ++environment.counters.refused_window;
    return ReceiveResult::refused;
  }
  if (view.acknowledges()) {
    const bool plausible = frames.plausible(view.ack, view.has_ranges ? &view.ranges : nullptr) &&
                           !view.newest.after(transmission);
    if (!plausible) {
      ++environment.counters.refused_window;
      return ReceiveResult::refused;
    }
    take_acknowledgement(now, view, arrived);
  }
  heard(now, from);
  // What was sent before has not been taken, and will be now: so it is after an introduction, and where the
  // first thing we asked for was not for strangers.
  if (!knew_peer && !view.sequenced() && frames.first().value == 0) timer.hurry(now);
  const ReceiveResult verdict =
      view.sequenced() ? take_frame(now, view, arrived) : ReceiveResult::nothing_new;
  // The way back is believed from who has been told the session, not from who only calls.
  if (verdict != ReceiveResult::refused && view.session != 0) rails.learn(from, view.sequenced());
  if (view.kind == wire::FrameKind::fin) take_fin(now, view.sequence);
  liveness.expect(now, !drained());
  return verdict;
}

/// Something that was acknowledged comes again: did that not come through? Who was away finds the frame and
/// its repair, answers the one and takes in the other: what came within a round trip left before the answer
/// was there.
bool Flow::Rooms::unheard(Time repair) const {
  return !acks.owed() && repair - acks.said_at() >= rails.min_reply_delay();
}

Flow::ReceiveResult Flow::Rooms::take_frame(Time now, const wire::FrameView& view, Time arrived_here) {
  using Urgency = AckScheduler::Urgency;
  const bool gap_before = arrivals.has_gap();
  switch (arrivals.arrive(view.sequence, view.transmission, view.in_order(), view.segments)) {
    case ReceiveWindow::Arrival::outside:
      ++environment.counters.refused_window;
      return ReceiveResult::refused;
    case ReceiveWindow::Arrival::held:
    case ReceiveWindow::Arrival::duplicate:
      ++environment.counters.frames_duplicate;
      if (unheard(arrived_here)) rails.suspect_ethertype_paths(now);
      acks.arrived(now, arrived_here, view.transmission, view.in_order(), Urgency::now);
      return ReceiveResult::nothing_new;
    case ReceiveWindow::Arrival::fresh: break;
  }
  const bool news = (gap_before || arrivals.has_gap()) && !rails.reordering_expected();
  acks.arrived(now, arrived_here, view.transmission, view.in_order(),
               news             ? Urgency::now
               : view.ack_now() ? Urgency::soon
                                : Urgency::none);
  return ReceiveResult::accepted;
}

void Flow::Rooms::take_acknowledgement(Time now, const wire::FrameView& view, Time arrived_here) {
  const wire::Ack* ranges = view.has_ranges ? &view.ranges : nullptr;
  // A peer that only sends says the same with each frame.
  const Heard said{view.ack, view.newest, ranges == nullptr};
  if (said.plain && last_word == said) return;
  last_word = said;
  const Sequence complete_before = frames.first();
  std::size_t arrived = 0;
  rails.word_begins(frames);
  frames.acknowledge(view.ack, ranges, [&](Sequence s, Flight& flight) {
    ++arrived;
    rails.arrived(s, flight);
    report(s, *flight.body, view.ack);
    if (path_size.is_probe(s)) probe_arrived();
    bodies.give(std::move(flight.body));
  });
  if (!withheld.empty()) report_withheld();
  // A block that is full may have left out what lies behind its last range.
  const bool partial = ranges != nullptr && ranges->count == wire::kAckRangesMax;
  const Sequence known_end = partial ? ranges->ranges[ranges->count - 1].end : frames.next();
  multipath::PathManager::Word word{view.newest, known_end, transmission + 1, arrived_here, std::nullopt, 0};
  if (view.knows_ack_delay()) word.delay = Duration(view.ack_delay_ns);
  if (ranges != nullptr && static_cast<std::int32_t>(ranges->duplicates - spurious) > 0) {
    word.spurious = ranges->duplicates - spurious;
    spurious = ranges->duplicates;
  }
  rails.word_ends(now, word);
  if (arrived == 0 && frames.first() == complete_before) return;
  timer.progress(now, frames.first() != frames.next());
}

/// The peer has a frame. But what is in order and lies behind a gap is of no use to it if this side is
/// gone before the gap is filled: so nobody is told before.
void Flow::Rooms::report(Sequence s, const FrameBody& body, Sequence complete_before) {
  const bool behind_gap = body.ordered && !s.before(complete_before);
  for (const carrier::Token token : body.tokens) {
    if (behind_gap) {
      withheld.push_back({s, token});
    } else {
      delivered.push_back(token);
    }
  }
}

void Flow::Rooms::probe_arrived() {
  switch (path_size.arrived()) {
    case multipath::PathMtu::Answer::none: return;
    case multipath::PathMtu::Answer::yes: return handshake.prove(handshake.longest());
    case multipath::PathMtu::Answer::no:
      environment.log.warn(
          "path to %s: frames of %zu bytes do not arrive though both links take them; using %zu",
          rails[0].path.to.text().c_str(), handshake.longest(), handshake.frame_max());
  }
}

void Flow::Rooms::report_withheld() {
  std::erase_if(withheld, [this](const Withheld& held) {
    const bool complete = held.sequence.before(frames.first());
    if (complete) delivered.push_back(held.token);
    return complete;
  });
}

void Flow::Rooms::take_fin(Time now, Sequence end) {
  const std::int32_t ahead = end - arrivals.expected();
  if (fin || ahead < 0 || ahead > static_cast<std::int32_t>(arrivals.size())) return;
  fin = end;
  fin_give_up_at = now + kFinTimeout;
  finish_if_complete();
}

void Flow::Rooms::finish_if_complete() {
  if (fin && arrivals.expected() == *fin && arrivals.handed_on()) status = Status::reset;
}

bool Flow::Rooms::next(ConstBytes& segments) {
  if (arrivals.next(segments)) return true;
  finish_if_complete();
  return false;
}

/// The peer may have repeated the frame for long and given up hope: it hears of it at once.
void Flow::Rooms::resume(Time now) {
  const Sequence brought_by = arrivals.resume();
  acks.arrived(now, now, brought_by, true, AckScheduler::Urgency::now);
}

/// What this side holds back is not missing.
Time Flow::Rooms::fin_deadline() const { return arrivals.holding() ? kNever : fin_give_up_at; }

void Flow::Rooms::detect_losses(Time now) { tally.lost += rails.detect(now, frames); }

void Flow::Rooms::on_timer(Time now) {
  if (!alive()) return;
  status = now >= fin_deadline() ? Status::reset : liveness.verdict(now);
  if (!alive()) return;
  detect_losses(now);
  const RetransmissionTimer::Event event = timer.on_timer(now, rails.reply_time(frames));
  if (event == RetransmissionTimer::Event::none) return;
  if (frames.outstanding() == 0) {
    asks_again = true;  // the peer holds a frame that it had before: nothing is left to repeat
  } else {
    on_silence(now, event == RetransmissionTimer::Event::timeout);
  }
}

/// Something is outstanding, and nobody says anything.
void Flow::Rooms::on_silence(Time now, bool timeout) {
  // If the peer is known to miss something, that; else the last one, which tells about the rest.
  const bool oldest = timeout || frames.has_gap();
  urgent = oldest ? frames.oldest() : frames.next() + ~std::uint32_t{0};
  const Flight& flight = frames.at(*urgent);
  if (timeout) {
    ++environment.counters.timeouts;
    if (timer.persistent()) rails.timed_out(frames);
    if (!handshake.peer_has_opening()) rails.try_next_rail();
  }
  rails.strike(now, flight);
  rails.suspect_ethertype_paths(now);
}

void Flow::Rooms::on_path_error(Time now, const link::PathError& complaint) {
  if (!alive() || rails.complaint(now, complaint)) return;
  if (liveness.complaint(now, complaint.status)) {
    timer.hurry(now + Liveness::kRetryAfter);
    return;
  }
  const Status verdict = liveness.verdict(now);
  if (verdict == Status::ok) return;
  status = verdict == Status::refused && handshake.knows_peer() ? Status::reset : verdict;
}

Time Flow::Rooms::deadline() const {
  if (!alive()) return kNever;
  return std::min({acks.deadline(), rails.deadline(), timer.deadline(rails.reply_time(frames)),
                   liveness.deadline(), fin_deadline(), retry_at, resume_at});
}

}  // namespace cluster::reliability
