#include "reliability/frame_sender.h"

#include <algorithm>
#include <utility>

#include "wire/frame.h"

namespace cluster::reliability {

using namespace wire::frame_flag;

/// Selects frames for one burst. Apart from a repeated frame, which is always selected, the burst has at most
/// as many frames as the path grants and as the link takes in one call. A short burst at the start of a
/// transfer would reach the peer earlier, but the additional burst would cost more than this saves.
FrameSelector::Selection FrameSelector::select(Time now) {
  Selection selection;
  SendWindow& window = queue_.window();
  const bool repeat = repeat_ && window.is_outstanding(*repeat_);
  const multipath::PathManager::Grant grant =
      repeat ? paths_.select_other(now, window.at(*repeat_).path) : paths_.select(now);
  selection.path = grant.path;
  const std::size_t limit = std::min(grant.frames, link::kBurstMax);
  if (repeat) selection.picks[selection.count++] = {*repeat_, true, false};
  while (window.has_lost() && selection.count < limit) {
    const Sequence s = window.pop_lost();
    if (repeat && *repeat_ == s) {
      selection.picks[0].from_lost = true;
    } else {
      selection.picks[selection.count++] = {s, false, true};
    }
  }
  selection.retransmissions = selection.count != 0;
  repeat_.reset();
  select_new(selection, limit);
  return selection;
}

void FrameSelector::select_new(Selection& selection, std::size_t limit) {
  SendWindow& window = queue_.window();
  const Sequence window_end = window.first() + static_cast<std::uint32_t>(handshake_.window());
  Sequence s = window.next();
  while (s.before(window_end) && selection.count < limit) {
    if (s == window.end()) queue_.close_open_frame();
    if (s == window.end()) break;
    if (window.awaited(window.at(s))) selection.completion_awaited = true;
    selection.picks[selection.count++] = {s, false, false};
    ++s;
  }
  selection.frames_left = s != window.end() || queue_.has_open_frame() || window.has_lost();
  selection.completion_awaited = selection.completion_awaited || window.tokens_outstanding();
}

/// While more frames follow, the peer acknowledges after a fixed number of frames. If the window is too small
/// for that number, this side asks for an acknowledgement.
bool FrameSelector::wants_ack(const Selection& selection) const {
  if (!handshake_.peer_has_opening() || selection.retransmissions) return true;
  if (!selection.frames_left) return selection.completion_awaited;
  return std::min(paths_[selection.path].recovery.congestion().window(), handshake_.window()) < kSmallWindow;
}

void FrameSelector::put_back(const Pick& pick) {
  if (pick.from_lost) queue_.window().requeue_lost(pick.sequence);
  if (pick.repeat) repeat_ = pick.sequence;
}

FrameSender::FrameSender(SendQueue& queue, const Handshake& handshake, FrameSize& frame_size,
                         multipath::PathManager& paths, RetransmissionTimer& timer, Counters& counters,
                         Burst& burst)
    : queue_(queue),
      handshake_(handshake),
      frame_size_(frame_size),
      paths_(paths),
      selector_(queue, handshake, paths),
      timer_(timer),
      counters_(counters),
      burst_(burst) {}

FrameSender::Outcome FrameSender::send_bursts(Time now, Clock* clock, link::Link& link, OutgoingAck& ack) {
  Outcome outcome;
  const TransmissionNumber before = transmission_;
  link_retry_at_ = pacer_allows_at_ = kNever;
  if (std::exchange(zero_window_probe_due_, false)) send_zero_window_probe(now, link, ack);
  paths_.begin_turn();
  for (bool frames_left = true; frames_left;) {
    if (transmission_ != before) {
      if (clock != nullptr) now = clock->now();
      ack.set_departure(now);
    }
    const FrameSelector::Selection selection = selector_.select(now);
    if (selection.count == 0) {
      if (selection.frames_left) pacer_allows_at_ = paths_.resume_at(now);
      break;
    }
    frames_left = selection.frames_left;
    if (selection.retransmissions && meets_black_hole(now, selection)) {
      queue_.close_open_frame();
      frame_size_.on_black_hole(queue_.window().end());
      frames_left = true;
    }
    const bool singly = handshake_.knows_peer() &&
                        (frame_size_.singly(queue_.window().first()) || too_long_for_path(selection));
    if (singly ? send_singly(now, link, selection, ack, outcome.ack)
               : send_burst(now, link, selection, ack, outcome.ack))
      continue;
    outcome.link_full = true;
    const bool news = paths_.on_link_full(selection.path);  // the link of another path may have space
    if (paths_.ip_paths() == 1 || !news) break;
    frames_left = true;
  }
  if (outcome.link_full) link_retry_at_ = now + kRetryLink;
  outcome.now = now;
  outcome.sent_any = transmission_ != before;
  return outcome;
}

bool FrameSender::send_alone(Time now, link::Link& link, wire::LoneNumbers& numbers, std::uint8_t flags) {
  SendWindow& window = queue_.window();
  FrameBody& body = *window.at(window.next()).body;
  std::byte* const start = body.segments() - sizeof(wire::FrameHeader);
  const std::size_t size = sizeof(wire::FrameHeader) + body.filled;
  numbers.session = handshake_.peer_session();
  numbers.sequence = window.next();
  numbers.transmission = transmission_ + 1;
  wire::encode_lone(numbers, flags, start, size);
  const bool small = size <= handshake_.ethertype_frame_max();
  const std::size_t number = small ? paths_.path_for_lone_frame(0) : 0;
  multipath::PathState& path = paths_[number];
  if (!link::send_frame(link, {start, size}, path.address)) return false;
  ++transmission_;
  window.on_lone_sent(transmission_, now, static_cast<std::uint8_t>(number));
  path.recovery.on_sent(now, numbers.sequence, transmission_);
  if (!small) paths_.on_burst_sent(0, transmission_);
  timer_.on_sent(now);
  count_sent(1);
  return true;
}

/// Encodes the selected frames into the burst. If the peer's session is unknown, an empty padding segment
/// replaces the segments.
void FrameSender::encode(const FrameSelector::Selection& selection, const FrameLimits& limits,
                         const OutgoingAck& ack) {
  SendWindow& window = queue_.window();
  const bool call = !handshake_.knows_peer();
  burst_.out.clear();
  std::optional<RunEncoder> encoder;
  const FrameRun* encoded_run = nullptr;
  for (std::size_t i = 0; i < selection.count; ++i) {
    const FrameSelector::Pick& pick = selection.picks[i];
    const SentFrame& frame = window.at(pick.sequence);
    const FrameRun* const run = window.run_of(frame);
    std::uint8_t flags = kSequenced;
    if (run != nullptr ? run->ordered : frame.body->ordered) flags |= kOrdered;
    if (i + 1 == selection.count && selector_.wants_ack(selection)) flags |= kAckNow;
    link::OutFrame& out = burst_.out.add();
    out.path = &paths_[selection.path].address;
    const TransmissionNumber transmission = transmission_ + static_cast<std::uint32_t>(i + 1);
    const FrameIdentity identity{wire::FrameKind::flow, flags, pick.sequence, transmission};
    if (call || run == nullptr) {
      if (call) {
        scratch_.set_padding(0);
      } else if (pick.retransmission()) {
        frame_size_.on_retransmit(pick.sequence, *frame.body);
      }
      burst_.carried[i] =
          encode_session_frame(identity, handshake_, limits, ack, call ? scratch_ : *frame.body, out);
      continue;
    }
    if (run != encoded_run) encoder.emplace(*run, handshake_, limits, ack);
    encoded_run = run;
    encoder->encode(identity, burst_.fronts[i], out);
    burst_.carried[i] = encoder->included();
  }
}

/// Sends the selection. If the sent frames carry more of `ack` than `included` says, raises `included`.
/// Returns false if the link did not take all frames.
bool FrameSender::send_burst(Time now, link::Link& link, const FrameSelector::Selection& selection,
                             const OutgoingAck& ack, AckIncluded& included) {
  encode(selection, {frame_max_on(selection.path), link.integrity()}, ack);
  link::OutBurst& burst = burst_.out;
  const bool alone = selection.single_new_frame() && burst.front().size <= handshake_.ethertype_frame_max();
  const std::size_t path = alone ? paths_.path_for_lone_frame(selection.path) : selection.path;
  if (alone) burst.front().path = &paths_[path].address;
  const std::size_t taken = link.send_burst(burst.frames());
  note_sent(now, selection, taken, path);
  for (std::size_t i = 0; i < taken; ++i) included = std::max(included, burst_.carried[i]);
  for (std::size_t i = taken; i < selection.count; ++i) selector_.put_back(selection.picks[i]);
  if (!alone) paths_.on_burst_sent(selection.path, transmission_);
  count_sent(taken);
  return taken == selection.count;
}

/// Returns the size of the frame without the acknowledgement.
std::size_t FrameSender::size_of(Sequence s) const {
  const SendWindow& window = queue_.window();
  const SentFrame& frame = window.at(s);
  const FrameRun* const run = window.run_of(frame);
  const std::size_t segments =
      run != nullptr ? wire::encoded_size(run->segment) + run->part : frame.body->size();
  return sizeof(wire::FrameHeader) + handshake_.opening_size() + segments;
}

/// Returns true if one of the frames to retransmit has probably met a black hole. A PMTU probe does not
/// count, because its retransmission has no padding.
bool FrameSender::meets_black_hole(Time now, const FrameSelector::Selection& selection) {
  for (std::size_t i = 0; i < selection.count && selection.picks[i].retransmission(); ++i) {
    const Sequence s = selection.picks[i].sequence;
    const std::size_t size = size_of(s);
    if (frame_size_.pmtu_probe() == s) continue;
    if (frame_size_.suspects(now, size, queue_.window().at(s).sendings)) return true;
  }
  return false;
}

/// Returns true if the path has a limit of its own, and a frame of the selection is longer.
bool FrameSender::too_long_for_path(const FrameSelector::Selection& selection) const {
  const std::size_t limit = frame_max_on(selection.path);
  if (limit >= frame_size_.frame_max()) [[likely]]
    return false;
  return std::ranges::any_of(std::span(selection.picks).first(selection.count),
                             [&](const FrameSelector::Pick& pick) { return size_of(pick.sequence) > limit; });
}

/// Like send_burst(), but passes the link one frame at a time. Frames that are too long leave in parts.
bool FrameSender::send_singly(Time now, link::Link& link, const FrameSelector::Selection& selection,
                              const OutgoingAck& ack, AckIncluded& included) {
  for (std::size_t i = 0; i < selection.count; ++i) {
    FrameSelector::Selection one = selection;
    one.picks[0] = selection.picks[i];
    one.count = 1;
    one.frames_left = selection.frames_left || i + 1 < selection.count;
    one.retransmissions = one.picks[0].retransmission();
    const Sequence s = one.picks[0].sequence;
    const bool pmtu_probe = frame_size_.pmtu_probe() == s;
    if (pmtu_probe) one.path = paths_.unlimited(one.path);
    const bool too_long = size_of(s) > frame_max_on(one.path) && !pmtu_probe;
    if (too_long ? send_in_parts(now, link, one, ack, included) : send_burst(now, link, one, ack, included))
      continue;
    for (++i; i < selection.count; ++i) selector_.put_back(selection.picks[i]);
    return false;
  }
  return true;
}

/// Sends one frame in parts. Returns false if the link did not take all parts; the next call for this frame
/// then sends the rest.
bool FrameSender::send_in_parts(Time now, link::Link& link, const FrameSelector::Selection& selection,
                                const OutgoingAck& ack, AckIncluded& included) {
  const FrameSelector::Pick& pick = selection.picks[0];
  const FrameLimits limits{frame_max_on(selection.path), link.integrity()};
  encode(selection, limits, ack);
  const std::size_t repeated = sizeof(wire::FrameHeader) + handshake_.opening_size();
  PartEncoder parts(burst_.out.front(), repeated, limits);
  const CutFrame cut{pick.sequence, limits.frame_max - repeated, 0};
  const bool resumes =
      cut_.sequence == cut.sequence && cut_.part_max == cut.part_max && cut_.left < parts.count();
  const std::size_t before = resumes ? cut_.left : 0;
  parts.skip(before);
  for (std::size_t left = before; left < parts.count(); ++left) {
    const link::OutFrame part = parts.next();
    if (link.send_burst({&part, 1}) != 0) continue;
    if (left != before) ++transmission_;  // the parts that have left may complete the frame at the peer
    cut_ = cut;
    cut_.left = left;
    selector_.put_back(pick);
    return false;
  }
  cut_ = {};
  note_sent(now, selection, 1, selection.path);
  paths_.on_burst_sent(selection.path, transmission_);
  included = std::max(included, burst_.carried[0]);
  count_sent(parts.count());
  return true;
}

/// Records that the link has taken the first `taken` frames of the selection. New frames are last in the
/// selection, and their sequences are consecutive.
void FrameSender::note_sent(Time now, const FrameSelector::Selection& selection, std::size_t taken,
                            std::size_t path) {
  if (taken == 0) return;
  std::size_t again = 0;
  for (; again < taken && selection.picks[again].retransmission(); ++again) {
    note_retransmission(now, selection.picks[again].sequence, path);
  }
  const std::size_t fresh = taken - again;
  if (fresh != 0) {
    const TransmissionNumber first = transmission_ + 1;
    transmission_ = transmission_ + static_cast<std::uint32_t>(fresh);
    queue_.window().on_new_sent(fresh, first, now, static_cast<std::uint8_t>(path));
    paths_[path].recovery.on_sent(now, selection.picks[again].sequence, first, fresh);
  }
  timer_.on_sent(now);
}

void FrameSender::note_retransmission(Time now, Sequence s, std::size_t path) {
  ++transmission_;
  // Until the peer has shown that it has our opening, retransmissions belong to the handshake and are not
  // counted.
  if (handshake_.peer_has_opening()) {
    ++counters_.frames_retransmitted;
    ++retransmitted_;
  }
  SendWindow& window = queue_.window();
  const SentFrame& frame = window.at(s);
  paths_.on_retransmit(frame.path, frame.transmission, transmission_,
                       frame.state == SentFrame::State::in_flight);
  window.on_sent(s, transmission_, now, static_cast<std::uint8_t>(path));
  paths_[path].recovery.on_sent(now, s, transmission_);
  if (frame_size_.in_doubt()) frame_size_.on_sent_again(transmission_, size_of(s));
}

std::optional<AckIncluded> FrameSender::send_bare(wire::FrameKind kind, const Handshake& to,
                                                  const link::Path& path, link::Link& link,
                                                  const OutgoingAck& ack) {
  link::OutFrame out;
  out.path = &path;
  scratch_.reset();
  const Sequence next = queue_.window().next();
  const AckIncluded carried =
      encode_session_frame({kind, 0, next, transmission_}, to, limits_of(link), ack, scratch_, out);
  if (link.send_burst({&out, 1}) == 0) return std::nullopt;
  count_sent(1);
  return carried;
}

std::optional<AckIncluded> FrameSender::send_ack(Time now, link::Link& link, const OutgoingAck& ack) {
  const auto carried = send_bare(wire::FrameKind::flow, handshake_, paths_.reply_path(), link, ack);
  if (carried) ++counters_.acks_sent;
  if (!carried) link_retry_at_ = now + kRetryLink;
  return carried;
}

void FrameSender::send_opening(const Handshake& to, const link::Path& path, link::Link& link,
                               const OutgoingAck& ack) {
  send_bare(wire::FrameKind::flow, to, path, link, ack);
}

void FrameSender::send_fin(link::Link& link, const OutgoingAck& ack) {
  for (std::size_t i = 0; i < kFinCopies; ++i) {
    if (!send_bare(wire::FrameKind::fin, handshake_, paths_.next_validated(), link, ack)) break;
  }
}

/// Challenges EtherType paths only once the search for the path MTU is complete. Until then frames have to
/// leave over the IP path, which the search probes.
void FrameSender::send_challenges(const Outcome& sent, bool new_paths, multipath::PathChallenges& challenges,
                                  link::Link& link) {
  using wire::FrameKind;
  if ((paths_.ip_paths() > 1 && (sent.sent_any || new_paths)) || paths_.announcing()) {
    while (const auto due = paths_.challenge_due(sent.now)) {
      // Over a proven path, an answer of the peer's keep-alive responder is enough. But the responder reads
      // no queue pair, and learns no new address of this side, so in these two cases the peer's engine must
      // answer.
      const multipath::PathValidator& path = paths_[due->path].validator;
      const bool to_responder = path.proven() && !path.announcing() && !due->to.to.verbs();
      send_challenge(sent.now, *due, challenges.draw(sent.now, due->to.to),
                     to_responder ? FrameKind::keep_alive : FrameKind::path_challenge,
                     path.announcing() ? sizeof(wire::FrameHeader) : frame_max_on(due->path), link);
    }
  }
  if (!sent.sent_any || !handshake_.ethertype_negotiated()) return;
  if (sent_ < kFramesBeforeEthertype || !frame_size_.search_complete()) return;
  while (const auto due = paths_.ethertype_challenge_due(sent.now)) {
    send_challenge(sent.now, *due, challenges.draw(sent.now, due->to.to), FrameKind::path_challenge,
                   sizeof(wire::FrameHeader), link);
  }
}

/// Sends a frame of `size` bytes: the header and, if `size` is larger than the header, one segment of
/// padding.
void FrameSender::send_challenge(Time now, const multipath::PathManager::Challenge& challenge,
                                 std::uint64_t data, wire::FrameKind kind, std::size_t size,
                                 link::Link& link) {
  scratch_.reset();
  if (size > sizeof(wire::FrameHeader)) scratch_.set_padding(size - sizeof(wire::FrameHeader));
  std::byte* const start = scratch_.segments() - sizeof(wire::FrameHeader);
  wire::FrameHeader& header = wire::header_at(start);
  header.kind = static_cast<std::uint8_t>(kind);
  header.session = handshake_.peer_session();
  header.sequence = handshake_.session();  // the answer contains this session number and the challenge
  wire::set_challenge(header, data);
  if (kind == wire::FrameKind::path_challenge) wire::set_rail(header, challenge.to.link);
  link::OutFrame out;
  out.path = &challenge.to;
  out.add({start, sizeof header + scratch_.filled});
  for (std::size_t i = 0; i < scratch_.payload_pieces; ++i) out.add(scratch_.payload[i]);
  wire::encode_frame(header, {out.pieces.data(), out.count}, link.integrity());
  link.send_burst({&out, 1});
  paths_.on_challenge_sent(now, challenge.path);
}

/// Sends padding with the sequence of the last frame. The peer has already received that frame, so it
/// acknowledges the padding at once, as a duplicate.
void FrameSender::send_zero_window_probe(Time now, link::Link& link, const OutgoingAck& ack) {
  scratch_.set_padding(0);
  const Sequence last = queue_.window().next().previous();
  link::OutFrame out;
  out.path = &paths_.next_validated();
  encode_session_frame({wire::FrameKind::flow, kSequenced, last, transmission_ + 1}, handshake_,
                       limits_of(link), ack, scratch_, out);
  if (link.send_burst({&out, 1}) == 0) return;
  zero_window_probe_ = ++transmission_;
  paths_.on_zero_window_probe(transmission_);
  count_sent(1);
  timer_.on_sent(now);
}

bool FrameSender::has_in_flight(Sequence sequence, TransmissionNumber transmission) const {
  const SendWindow& window = queue_.window();
  if (zero_window_probe_ == transmission && sequence == window.next().previous()) return true;
  if (!window.is_outstanding(sequence)) return false;
  return window.at(sequence).transmission == transmission || paths_.remembers(sequence, transmission);
}

}  // namespace cluster::reliability
