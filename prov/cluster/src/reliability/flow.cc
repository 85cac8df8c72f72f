#include "reliability/flow.h"

#include <algorithm>
#include <cstddef>
#include <cstring>
#include <optional>

namespace cluster::reliability {
namespace {

constexpr std::uint16_t kWindowMin = 8;
constexpr std::uint16_t kWindowMax = 4096;

wire::Opening opening_of(const FlowSettings& settings, const Identity& identity) {
  wire::Opening opening;
  opening.session = identity.session;
  opening.token = identity.token;
  opening.epoch = identity.epoch;
  opening.incarnation = identity.incarnation;
  opening.name = identity.name;
  opening.frame_max = static_cast<std::uint16_t>(std::clamp(settings.frame_max, kFrameMin, wire::kFrameMax));
  opening.features = wire::feature::kFrameParts;
  if (settings.ethertype) opening.features |= wire::feature::kEthertypePath;
  if (settings.ethertype_whole) opening.features |= wire::feature::kEthertypeWhole;
  if (settings.device_reads) opening.features |= wire::feature::kDeviceReads;
  if (settings.kernel_answers) opening.features |= wire::feature::kKernelAnswers;
  if (settings.ack_delay > kAckDelay) opening.features |= wire::feature::kAcksLate;
  opening.window = std::clamp(settings.window, kWindowMin, kWindowMax);
  return opening;
}

std::vector<SocketAddress> further_addresses(const Identity& identity) {
  std::vector<SocketAddress> further;
  for (const multipath::Rail& rail : identity.rails) {
    if (rail.address != identity.name && !rail.address.verbs()) further.push_back(rail.address);
  }
  return further;
}

std::vector<wire::VerbsAddress> queue_pairs(const Identity& identity) {
  std::vector<wire::VerbsAddress> named;
  for (const multipath::Rail& rail : identity.rails) {
    if (rail.address.verbs()) named.push_back({rail.address, rail.frame_max});
  }
  return named;
}

Liveness::Probes probes_for(const FlowSettings& settings) {
  if (!settings.asks_kernels) return Liveness::Probes::none;
  return settings.seal_overhead != 0 ? Liveness::Probes::of_met : Liveness::Probes::of_all;
}

/// Returns true if an ICMP error quotes a frame of this flow. Such a quote contains numbers of this session
/// that only the two sides and hosts on the path can know. Forging the error is therefore as hard as forging
/// a frame.
bool quotes_own_frame(const link::PathError& error, const Handshake& handshake, const SendWindow& window) {
  if (error.vouched) return true;
  if (error.quoted_size < offsetof(wire::FrameHeader, transmission)) return false;
  wire::FrameHeader header{};
  std::memcpy(&header, error.quoted.data(), std::min(sizeof header, std::size_t{error.quoted_size}));
  if (header.magic != wire::kMagic || header.session != handshake.peer_session()) return false;
  const Sequence sequence{header.sequence};
  switch (static_cast<wire::FrameKind>(header.kind)) {
    case wire::FrameKind::keep_alive:
    case wire::FrameKind::path_challenge: return header.sequence == handshake.session();
    case wire::FrameKind::flow:
    case wire::FrameKind::fin: {
      const std::int32_t ago = window.next() - sequence;
      const bool ever_sent = handshake.knows_peer() || sequence - first_sequence(handshake.session()) >= 0;
      return ever_sent && ago >= 0 && ago <= kWindowMax;
    }
    // An answer proves nothing: it repeats the session number of its question, and any host can ask.
    default: return false;
  }
}

}  // namespace

Flow::Flow(const FlowSettings& settings, const Identity& identity, const link::Path& path, Log& log,
           Counters& counters, BodyPool& bodies, Burst& burst, Random& random)
    : counters_(counters),
      paths_(identity.rails, path, std::clamp(settings.window, kWindowMin, kWindowMax), log),
      handshake_(opening_of(settings, identity), further_addresses(identity), identity.sibling,
                 queue_pairs(identity)),
      frame_size_(handshake_, paths_, log, settings.overhead),
      timer_(kAckDelay, settings.turns),
      queue_(handshake_, frame_size_, paths_, bodies, status_),
      sender_(queue_, handshake_, frame_size_, paths_, timer_, counters, burst),
      acks_(queue_, sender_, frame_size_, paths_, timer_),
      receiver_(handshake_.opening().window, settings.ack_delay, paths_, counters, status_),
      liveness_(settings.peer_timeout, settings.stuck_timeout, probes_for(settings), settings.outage,
                settings.refresh_interval),
      challenges_(random),
      lane_({status_, handshake_, frame_size_, paths_, queue_, sender_, acks_, receiver_, liveness_,
             answer_delay_},
            settings.lane) {}

void Flow::answer_opening(const wire::FrameView& opening, const link::Path& reply_path, link::Link& link) {
  if (!status_.alive()) return;
  liveness_.forget_path_errors();
  sender_.send_opening(handshake_.towards(opening.opening), reply_path, link,
                       receiver_.acknowledgement(Time{}));
}

/// If only answers (`done`) are left to send, they may wait until the owed acknowledgement is due. A data
/// frame that leaves in the meantime carries the answers and the acknowledgement.
void Flow::transmit(Time now, link::Link& link, Clock* clock) {
  lane_.close();
  if (!status_.alive()) return;
  settle();
  detect_losses(now);
  const std::size_t paths_before = paths_.ip_paths();
  join_paths();
  OutgoingAck ack = receiver_.acknowledgement(now);
  const bool only_answers = queue_.only_answers_left();
  const bool may_wait = only_answers && receiver_.owes_ack() && !receiver_.ack_due(now);
  const FrameSender::Outcome sent =
      may_wait && answer_delay_.wait() ? sender_.skip_turn(now) : sender_.send_bursts(now, clock, link, ack);
  if (sent.sent_any)
    only_answers ? answer_delay_.on_answers_alone(sent.now) : answer_delay_.on_data(sent.now);
  sender_.send_challenges(sent, paths_.ip_paths() != paths_before, challenges_, link);
  AckIncluded included = sent.ack;
  // With several paths, the link of another path may have space for the acknowledgement.
  const bool link_full = sent.link_full && paths_.ip_paths() == 1;
  const bool bare = included == AckIncluded::none && !link_full && receiver_.ack_due(sent.now);
  if (bare) included = sender_.send_ack(sent.now, link, ack).value_or(AckIncluded::none);
  receiver_.on_ack_sent(sent.now, ack, included, bare || only_answers);
  liveness_.set_expecting(sent.now, !queue_.drained());
  lane_.review(sent.now, link.integrity());
}

void Flow::detect_losses(Time now) {
  lost_frames_.clear();
  paths_.detect_losses(now, lost_frames_, frame_size_.pmtu_probe());
  for (const Sequence frame : lost_frames_) queue_.window().mark_lost(frame);
  lost_ += lost_frames_.size();
}

/// Called when the peer answers for the first time. The peer did not accept earlier frames, because they did
/// not carry the peer's session number. So these frames count as lost, and are retransmitted.
void Flow::send_again() {
  lost_frames_.clear();
  paths_.take_back(lost_frames_);
  for (const Sequence frame : lost_frames_) queue_.window().mark_lost(frame);
}

void Flow::join_paths() {
  if (!handshake_.peer_has_opening()) return;
  frame_size_.send_pmtu_probe(queue_);
  if (frame_size_.search_complete()) paths_.join(handshake_.peer_addresses(), handshake_.peer_queue_pairs());
}

ReceiveResult Flow::receive(Time now, const wire::FrameView& view, const link::Path& from, Time arrived,
                            std::size_t count) {
  settle();
  arrived = std::min(arrived, now);
  const bool session_kind = view.kind == wire::FrameKind::flow || view.kind == wire::FrameKind::fin;
  const bool knew_peer = handshake_.knows_peer();
  if (!status_.alive() || !session_kind || !handshake_.accept(view, from.to)) {
    ++counters_.refused_stale;
    return ReceiveResult::refused;
  }
  if (!knew_peer) {
    ++counters_.sessions_opened;
    // Another host may have the address that a translated peer lists.
    liveness_.on_met(handshake_.kernel_answers() && !from.translated);
    timer_.set_ack_delay(handshake_.peer_ack_delay());
    receiver_.window().begin(first_sequence(handshake_.peer_session()));
  }
  const bool ends = view.kind == wire::FrameKind::fin;
  const bool impossible_end = ends && !receiver_.may_end_at(view.sequence);
  if (impossible_end || (view.acknowledges() && !acks_.valid(view))) {
    ++counters_.refused_window;
    return ReceiveResult::refused;
  }
  const bool old_ack = view.acknowledges() && view.ack - queue_.window().first() < 0;
  if (view.acknowledges()) acks_.process(now, view, arrived);
  if (!knew_peer) send_again();
  ReceiveResult result = ReceiveResult::nothing_new;
  if (view.sequenced() || view.in_part()) result = receiver_.receive(now, view, arrived, count);
  // A frame with none of the following parts is not a sign of life. Such a frame shows only that its sender
  // knows the session number, which is easier to guess than the number and a sequence together.
  const bool has_place =
      view.sequenced() || view.in_part() || view.acknowledges() || view.has_opening || ends;
  if (result != ReceiveResult::refused && has_place) {
    liveness_.on_sign_of_life(now, from.ethertype);
    // A late frame, or a frame with only an old acknowledgement, does not show at which address the peer is.
    // A forger can easily guess one of the many old numbers. The same holds for a part of an incomplete
    // frame: a forger can give such a part any sequence that this side still expects.
    const bool bare = !view.sequenced() && !view.in_part() && !view.has_opening && !ends;
    if (result != ReceiveResult::late && result != ReceiveResult::incomplete && !(bare && old_ack)) {
      handshake_.confirm(view);
      paths_.learn(from, view.sequenced(), count);
    }
  }
  if (ends) receiver_.on_fin(now, view.sequence);
  liveness_.set_expecting(now, !queue_.drained());
  return result;
}

Time Flow::deadline() const {
  if (!status_.alive()) return kNever;
  return std::min({receiver_.deadline(), paths_.deadline(), timer_.deadline(paths_.reply_time()),
                   liveness_.deadline(), sender_.deadline()});
}

void Flow::on_timer(Time now) {
  settle();
  if (!status_.alive()) return;
  if (receiver_.fin_timed_out(now)) status_.end(Status::reset);
  status_.end(liveness_.check(now));
  if (!status_.alive()) return;
  detect_losses(now);
  const RetransmissionTimer::Event event = timer_.on_timer(now, paths_.reply_time());
  if (event == RetransmissionTimer::Event::none) return;
  if (queue_.window().outstanding() == 0) {
    // The peer has received every frame, but has no space for one of them.
    sender_.request_zero_window_probe();
  } else {
    on_retransmission_timer(now, event);
  }
}

/// Called when frames are outstanding and no acknowledgement has arrived in time. After a retransmission
/// timeout, or if the peer is known to miss a frame, the flow retransmits the oldest outstanding frame.
/// Otherwise the flow retransmits the last frame, because the acknowledgement of that frame also says which
/// earlier frames have arrived (RFC 8985 section 7).
void Flow::on_retransmission_timer(Time now, RetransmissionTimer::Event event) {
  const SendWindow& window = queue_.window();
  const bool rto = event == RetransmissionTimer::Event::rto;
  const bool oldest = rto || window.has_gap();
  const Sequence frame = oldest ? window.oldest() : window.next().previous();
  sender_.repeat(frame);
  if (rto) {
    ++counters_.timeouts;
    if (timer_.persistent()) paths_.on_persistent_timeout();
    if (!handshake_.peer_has_opening()) paths_.try_next_rail();
  }
  paths_.on_unanswered(now, window.at(frame).path, window.at(frame).sent_at);
  paths_.suspect_ethertype_paths(now);
}

bool Flow::on_alive(Time now, const wire::FrameView& answer, const link::Path& from) {
  const auto asked = challenges_.answered(answer.challenge(), from.to);
  if (!asked) return false;
  const bool by_engine = answer.kind == wire::FrameKind::path_response;
  // If a later challenge has already moved the peer, this answer moves nothing. Perhaps the peer no longer
  // has the address from which it has answered.
  if (by_engine && asked->claimed_by && asked->at >= moved_peer_asked_at_) {
    moved_peer_asked_at_ = asked->at;
    move_peer(now, *asked->claimed_by, from);
  }
  if (from.ethertype) {
    liveness_.on_sign_of_life(now, true);
  } else {
    liveness_.on_answer(now, asked->at, by_engine ? Liveness::By::engine : Liveness::By::responder);
  }
  const bool announced = paths_.announcing();
  paths_.on_response(now, asked->at, from, by_engine);
  // The peer knows the new address of this side now. It dropped earlier frames from that address, so the flow
  // retransmits one of them at once.
  if (announced && !paths_.announcing()) timer_.expedite(now);
  return true;
}

void Flow::on_own_move(Time now, std::size_t link) {
  settle();
  if (status_.alive() && handshake_.knows_peer()) paths_.on_own_move(now, link);
}

/// The challenge shows that the sender knows both sessions. But the source address may be forged. So this
/// side sends only one frame to that address for each challenge. This frame has at most as many bytes as the
/// challenge (RFC 9000 8). This side needs no timer, because the peer repeats its challenge until it gets an
/// answer.
bool Flow::check_peer_move(Time now, const wire::FrameView& challenge, const link::Path& from,
                           link::Link& link) {
  const std::optional<std::uint8_t> rail = challenge.rail();
  if (!status_.alive() || !rail || !handshake_.has_rail(*rail) || !paths_.may_use(from.to)) return false;
  const wire::ControlFrame asks = wire::ControlFrame::path_challenge(
      handshake_.session(), challenges_.draw(now, from.to, rail), handshake_.peer_session());
  link::send_frame(link, asks.bytes(), link::without_mac(from));
  return true;
}

/// Replaces the address of one rail of the peer. After that, this side no longer asks the peer's kernel
/// whether the peer's process exists, because another host may now have the former address.
void Flow::move_peer(Time now, std::uint8_t rail, const link::Path& to) {
  settle();
  const std::optional<SocketAddress> before = handshake_.move_peer(rail, to.to);
  if (!before) return;
  ++peer_moves_;
  paths_.on_peer_move(now, *before, to);
  liveness_.on_met(false);
  timer_.expedite(now);
}

bool Flow::on_peer_queue_pair(Time now, std::size_t number, std::uint32_t queue_pair) {
  settle();
  const std::optional<SocketAddress> before = handshake_.replace_peer_queue_pair(number, queue_pair);
  if (!before) return false;
  paths_.on_peer_queue_pair(now, *before, handshake_.peer_queue_pairs()[number].address);
  return true;
}

wire::ControlFrame Flow::keep_alive(Time now, const link::Path& path) {
  liveness_.on_keep_alive_sent(now, timer_.least());
  return wire::ControlFrame::keep_alive(handshake_.session(), challenges_.draw(now, path.to),
                                        handshake_.peer_session());
}

void Flow::on_path_error(Time now, const link::PathError& error) {
  settle();
  if (!status_.alive()) return;
  if (!quotes_own_frame(error, handshake_, queue_.window())) {
    ++counters_.path_errors_unproven;
    return liveness_.on_unproven_path_error(now);
  }
  if (paths_.on_path_error(now, error)) return;
  if (liveness_.on_path_error(now, error.status, handshake_.knows_peer())) {
    timer_.expedite(now + Liveness::kRetryAfter);
    return;
  }
  status_.end(liveness_.check(now));
}

void Flow::on_foreign_source(Time now) {
  settle();
  if (!status_.alive() || handshake_.knows_peer()) return;
  if (liveness_.on_path_error(now, Status::translated, false)) {
    timer_.expedite(now + Liveness::kRetryAfter);
    return;
  }
  status_.end(liveness_.check(now));
}

bool Flow::reopen(Time now) {
  if (!status_.alive() || !handshake_.knows_peer() || handshake_.peer_has_opening()) return false;
  if (!receiver_.untouched()) return false;
  handshake_.forget_peer();
  timer_.expedite(now);
  return true;
}

void Flow::close(Time now, link::Link& link) {
  if (!status_.alive()) return;
  // If this side has never sent a frame to the peer, the peer has no session to end.
  const bool addressed = handshake_.knows_peer() || sender_.last_transmission().value != 0;
  if (addressed) sender_.send_fin(link, receiver_.acknowledgement(now));
  status_.end(Status::canceled);
}

FlowStats Flow::stats() const {
  return {.paths = paths_.stats(),
          .frame_max = frame_size_.frame_max(),
          .queued = queue_.window().queued(),
          .sent = sender_.sent(),
          .retransmitted = sender_.retransmitted(),
          .lost = lost_,
          .heard_at = liveness_.heard_at(),
          .kernel_vouches = liveness_.kernel_vouches(),
          .footprint = sizeof *this + queue_.window().footprint() + receiver_.footprint() +
                       paths_.footprint() + challenges_.footprint()};
}

/// Returns true if the reset quotes a frame that is really in flight. Before the peer's session is known, our
/// frames carry session 0, which proves nothing. So the reset must quote our own session, which those frames
/// carry in their opening. Once the peer is known, a reset with our session no longer counts. Such a reset is
/// not needed either: the flow retransmits the refused frames with the peer's session, and the peer can
/// refuse them again.
///
/// A challenge counts as well, because it may be the only frame that reaches a peer that has restarted. But a
/// challenged address may belong to another host, so the challenge must have gone to the sender of the reset.
bool Flow::validates_reset(const wire::ResetBlock& block, const SocketAddress& from) const {
  const bool knows_peer = handshake_.peer_session() != 0;
  const bool addressed = block.session == (knows_peer ? handshake_.peer_session() : handshake_.session());
  // True if the reset refuses a frame as older than an opening that is not newer than ours. So an earlier
  // incarnation with our name has sent the refused frame.
  const bool for_another = knows_peer &&
                           block.reason == static_cast<std::uint8_t>(wire::ResetReason::stale_epoch) &&
                           block.epoch <= handshake_.opening().epoch;
  const bool of_challenge =
      block.sequence == handshake_.session() && challenges_.sent(block.transmission, from);
  return addressed && !for_another &&
         (of_challenge || sender_.has_in_flight({block.sequence}, {block.transmission}));
}

}  // namespace cluster::reliability
