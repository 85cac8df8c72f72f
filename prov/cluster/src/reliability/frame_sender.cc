#include "reliability/frame_sender.h"

#include <algorithm>
#include <utility>

#include "reliability/burst.h"
#include "reliability/session_frame.h"

namespace cluster::reliability {

using namespace wire::frame_flag;

FrameSender::FrameSender(SendQueue& queue, const Handshake& handshake, multipath::PathManager& paths,
                         multipath::PathMtu& path_mtu, RetransmissionTimer& timer, Counters& counters)
    : queue_(queue),
      handshake_(handshake),
      paths_(paths),
      path_mtu_(path_mtu),
      timer_(timer),
      counters_(counters) {}

FrameSender::Outcome FrameSender::send_bursts(Time now, const BurstClock& clock, link::Link& link,
                                              OutgoingAck& ack) {
  Outcome outcome;
  const Sequence before = transmission_;
  retry_at_ = resume_at_ = kNever;
  if (std::exchange(zero_window_probe_due_, false)) send_zero_window_probe(now, link, ack);
  paths_.scheduler().begin_turn();
  for (bool more = true; more;) {
    if (transmission_ != before) {
      now = clock.now(now);
      ack.set_departure(now);
    }
    const Selection selection = select(now);
    if (selection.count == 0) {
      if (selection.more) resume_at_ = paths_.scheduler().resume_at(now);
      break;
    }
    more = selection.more;
    if (send_burst(now, link, selection, ack, outcome.ack)) continue;
    outcome.link_full = true;
    paths_.scheduler().on_link_full(selection.path);  // the link of another path may not be
    if (paths_.ip_paths() == 1 || repeat_) break;
    more = true;
  }
  if (outcome.link_full) retry_at_ = now + kRetryLink;
  outcome.now = now;
  outcome.sent_any = transmission_ != before;
  return outcome;
}

/// Retransmissions first. A frame that is repeated after a timeout leaves on another path than before, if
/// there is one. The first bursts are short: the peer takes in one while the next is encoded; once kLead
/// frames are in flight it is busy, and long bursts cost less.
FrameSender::Selection FrameSender::select(Time now) {
  Selection selection;
  SendWindow& window = queue_.window();
  const bool repeat = repeat_ && window.is_outstanding(*repeat_);
  multipath::PathScheduler& scheduler = paths_.scheduler();
  const multipath::PathScheduler::Grant grant =
      repeat ? scheduler.select_other(now, window.at(*repeat_).path) : scheduler.select(now);
  selection.path = grant.path;
  const std::size_t burst_max = window.in_flight() < kLead ? kShortBurst : link::kBurstMax;
  const std::size_t limit = std::min(grant.frames, burst_max);
  if (repeat) selection.picks[selection.count++] = {*repeat_, true};
  while (window.has_lost() && selection.count < limit) {
    const Sequence s = window.pop_lost();
    if (repeat_ != s) selection.picks[selection.count++] = {s, true};
  }
  selection.again = selection.count != 0;
  repeat_.reset();
  select_new(selection, limit);
  return selection;
}

void FrameSender::select_new(Selection& selection, std::size_t limit) {
  SendWindow& window = queue_.window();
  const Sequence beyond = window.first() + static_cast<std::uint32_t>(handshake_.window());
  Sequence s = window.next();
  while (s.before(beyond) && selection.count < limit) {
    if (s == window.end()) queue_.close_open_frame();
    if (s == window.end()) break;
    if (!window.at(s).body->tokens.empty()) selection.awaited = true;
    selection.picks[selection.count++] = {s, false};
    ++s;
  }
  selection.more = s != window.end() || queue_.has_open_frame() || window.has_lost();
  selection.awaited = selection.awaited || window.tokens_outstanding();
}

/// With more to send, the peer acknowledges by number of frames, which is too late only if the window is
/// small.
bool FrameSender::wants_ack(const Selection& selection) const {
  if (!handshake_.peer_has_opening() || selection.again) return true;
  return selection.more ? paths_.scheduler().window_below(selection.path, kSmallWindow) : selection.awaited;
}

/// Encodes the selected frames, hands them to the link and notes what it took. False if it did not take all.
/// Raises `included` to what the frames that left carry of `ack`.
bool FrameSender::send_burst(Time now, link::Link& link, const Selection& selection, const OutgoingAck& ack,
                             AckIncluded& included) {
  SendWindow& window = queue_.window();
  const bool alone = selection.count == 1 && !selection.again;
  const std::size_t path = paths_.scheduler().carrier_of(selection.path, alone);
  const link::Path& out_path = paths_[path].address;
  Burst burst;
  std::array<AckIncluded, link::kBurstMax> carried;
  for (std::size_t i = 0; i < selection.count; ++i) {
    const Pick& pick = selection.picks[i];
    FrameBody& body = *window.at(pick.sequence).body;
    if (pick.again && path_mtu_.is_pmtu_probe(pick.sequence)) {
      path_mtu_.on_pmtu_probe_lost();
      body.set_padding(0);
    }
    std::uint8_t flags = kSequenced;
    if (body.ordered) flags |= kOrdered;
    if (i + 1 == selection.count && wants_ack(selection)) flags |= kAckNow;
    link::OutFrame& out = burst.add();
    out.path = &out_path;
    const Sequence transmission = transmission_ + static_cast<std::uint32_t>(i + 1);
    carried[i] =
        encode_session_frame(session_header(wire::FrameKind::flow, flags, pick.sequence, transmission),
                             handshake_, ack, body, out);
  }
  const std::size_t taken = link.send_burst(burst.frames());
  for (std::size_t i = 0; i < selection.count; ++i) {
    const Pick& pick = selection.picks[i];
    if (i < taken) {
      note_sent(now, pick, path);
      included = std::max(included, carried[i]);
    } else if (pick.again && window.at(pick.sequence).state == Flight::State::lost) {
      window.requeue_lost(pick.sequence);
    } else if (pick.again) {
      repeat_ = pick.sequence;
    }
  }
  if (!alone) paths_.scheduler().on_burst_sent(selection.path, transmission_);
  counters_.frames_sent += taken;
  sent_ += taken;
  return taken == selection.count;
}

void FrameSender::note_sent(Time now, const Pick& pick, std::size_t path) {
  SendWindow& window = queue_.window();
  ++transmission_;
  if (pick.again) {
    ++counters_.frames_retransmitted;
    ++retransmitted_;
    const Flight& flight = window.at(pick.sequence);
    paths_.recovery().on_retransmit(flight.path, flight.transmission);
  }
  window.on_sent(pick.sequence, transmission_, now, static_cast<std::uint8_t>(path));
  paths_.recovery().on_sent(now, path, transmission_, pick.sequence);
  timer_.on_sent(now);
}

std::optional<AckIncluded> FrameSender::send_bare(wire::FrameKind kind, const Handshake& to,
                                                  const link::Path& path, link::Link& link,
                                                  const OutgoingAck& ack) {
  link::OutFrame out;
  out.path = &path;
  const Sequence next = queue_.window().next();
  const AckIncluded carried =
      encode_session_frame(session_header(kind, 0, next, transmission_), to, ack, empty_, out);
  if (link.send_burst({&out, 1}) == 0) return std::nullopt;
  ++counters_.frames_sent;
  ++sent_;
  return carried;
}

std::optional<AckIncluded> FrameSender::send_ack(Time now, link::Link& link, const OutgoingAck& ack) {
  const auto carried = send_bare(wire::FrameKind::flow, handshake_, paths_.reply_path(), link, ack);
  if (carried) ++counters_.acks_sent;
  if (!carried) retry_at_ = now + kRetryLink;
  return carried;
}

void FrameSender::send_opening(const Handshake& to, const link::Path& path, link::Link& link,
                               const OutgoingAck& ack) {
  send_bare(wire::FrameKind::flow, to, path, link, ack);
}

void FrameSender::send_fin(link::Link& link, const OutgoingAck& ack) {
  for (std::size_t i = 0; i < kFinCopies; ++i) {
    if (!send_bare(wire::FrameKind::fin, handshake_, paths_.scheduler().next_validated(), link, ack)) break;
  }
}

/// Padding in the place of the last frame: the peer has that one, and acknowledges every duplicate.
void FrameSender::send_zero_window_probe(Time now, link::Link& link, const OutgoingAck& ack) {
  FrameBody padding{wire::kSegmentHeaderMax};
  padding.set_padding(0);
  const Sequence last = queue_.window().next() + ~std::uint32_t{0};
  link::OutFrame out;
  out.path = &paths_.scheduler().next_validated();
  encode_session_frame(session_header(wire::FrameKind::flow, kSequenced, last, transmission_ + 1), handshake_,
                       ack, padding, out);
  if (link.send_burst({&out, 1}) == 0) return;
  zero_window_probe_ = ++transmission_;
  ++counters_.frames_sent;
  ++sent_;
  timer_.on_sent(now);
}

bool FrameSender::has_in_flight(Sequence sequence, Sequence transmission) const {
  if (zero_window_probe_ == transmission) return true;
  const SendWindow& window = queue_.window();
  if (!window.is_outstanding(sequence)) return false;
  return window.at(sequence).transmission == transmission ||
         paths_.recovery().remembers(transmission, sequence);
}

}  // namespace cluster::reliability
