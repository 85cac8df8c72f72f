#include "reliability/frame_sender.h"

#include <algorithm>
#include <utility>

#include "reliability/burst.h"
#include "reliability/session_frame.h"

namespace cluster::reliability {

using namespace wire::frame_flag;

FrameSender::FrameSender(SendQueue& queue, const Handshake& handshake, FrameSize& frame_size,
                         multipath::PathManager& paths, RetransmissionTimer& timer, Counters& counters)
    : queue_(queue),
      handshake_(handshake),
      frame_size_(frame_size),
      paths_(paths),
      selector_(queue, handshake, paths),
      timer_(timer),
      counters_(counters) {}

FrameSender::Outcome FrameSender::send_bursts(Time now, const BurstClock& clock, link::Link& link,
                                              OutgoingAck& ack) {
  Outcome outcome;
  const TransmissionNumber before = transmission_;
  retry_at_ = resume_at_ = kNever;
  if (std::exchange(zero_window_probe_due_, false)) send_zero_window_probe(now, link, ack);
  paths_.scheduler().begin_turn();
  for (bool frames_left = true; frames_left;) {
    if (transmission_ != before) {
      now = clock.now(now);
      ack.set_departure(now);
    }
    const FrameSelector::Selection selection = selector_.select(now);
    if (selection.count == 0) {
      if (selection.frames_left) resume_at_ = paths_.scheduler().resume_at(now);
      break;
    }
    frames_left = selection.frames_left;
    if (send_burst(now, link, selection, ack, outcome.ack)) continue;
    outcome.link_full = true;
    paths_.scheduler().on_link_full(selection.path);  // the link of another path may not be
    if (paths_.ip_paths() == 1 || selector_.repeat_pending()) break;
    frames_left = true;
  }
  if (outcome.link_full) retry_at_ = now + kRetryLink;
  outcome.now = now;
  outcome.sent_any = transmission_ != before;
  return outcome;
}

/// Encodes the selected frames, hands them to the link and notes what it took. False if it did not take all.
/// Raises `included` to what the frames that left carry of `ack`.
bool FrameSender::send_burst(Time now, link::Link& link, const FrameSelector::Selection& selection,
                             const OutgoingAck& ack, AckIncluded& included) {
  SendWindow& window = queue_.window();
  const std::size_t frame_max = frame_size_.frame_max();
  Burst burst;
  std::array<AckIncluded, link::kBurstMax> carried;
  std::array<RunEncoder::Front, link::kBurstMax> fronts;  // of frames in runs; left as they are until then
  std::optional<RunEncoder> encoder;
  const FrameRun* encoded_run = nullptr;
  for (std::size_t i = 0; i < selection.count; ++i) {
    const FrameSelector::Pick& pick = selection.picks[i];
    const SentFrame& frame = window.at(pick.sequence);
    const FrameRun* const run = window.run_of(frame);
    std::uint8_t flags = kSequenced;
    if (run != nullptr ? run->ordered : frame.body->ordered) flags |= kOrdered;
    if (i + 1 == selection.count && selector_.wants_ack(selection)) flags |= kAckNow;
    link::OutFrame& out = burst.add();
    out.path = &paths_[selection.path].address;
    const TransmissionNumber transmission = transmission_ + static_cast<std::uint32_t>(i + 1);
    const FrameIdentity identity{wire::FrameKind::flow, flags, pick.sequence, transmission};
    if (run == nullptr) {
      if (pick.retransmission()) frame_size_.on_retransmit(pick.sequence, *frame.body);
      carried[i] = encode_session_frame(identity, handshake_, frame_max, ack, *frame.body, out);
      continue;
    }
    if (run != encoded_run) encoder.emplace(*run, handshake_, frame_max, ack);
    encoded_run = run;
    encoder->encode(identity, fronts[i], out);
    carried[i] = encoder->included();
  }
  const bool alone = selection.single_new_frame() && burst.front().size <= link::kEthertypeFrameMax;
  const std::size_t path = alone ? paths_.scheduler().path_for_lone_frame(selection.path) : selection.path;
  if (alone) burst.front().path = &paths_[path].address;
  const std::size_t taken = link.send_burst(burst.frames());
  note_sent(now, selection, taken, path);
  for (std::size_t i = 0; i < taken; ++i) included = std::max(included, carried[i]);
  for (std::size_t i = taken; i < selection.count; ++i) selector_.put_back(selection.picks[i]);
  if (!alone) paths_.scheduler().on_burst_sent(selection.path, transmission_);
  counters_.frames_sent += taken;
  sent_ += taken;
  return taken == selection.count;
}

/// The link has taken the first frames of the selection. New ones come last and are consecutive.
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
    paths_.recovery().on_sent(now, path, selection.picks[again].sequence, first, fresh);
  }
  timer_.on_sent(now);
}

void FrameSender::note_retransmission(Time now, Sequence s, std::size_t path) {
  ++transmission_;
  ++counters_.frames_retransmitted;
  ++retransmitted_;
  SendWindow& window = queue_.window();
  const SentFrame& frame = window.at(s);
  paths_.recovery().on_retransmit(frame.path, frame.transmission, transmission_,
                                  frame.state == SentFrame::State::in_flight);
  window.on_sent(s, transmission_, now, static_cast<std::uint8_t>(path));
  paths_.recovery().on_sent(now, path, s, transmission_);
}

std::optional<AckIncluded> FrameSender::send_bare(wire::FrameKind kind, const Handshake& to,
                                                  const link::Path& path, link::Link& link,
                                                  const OutgoingAck& ack) {
  link::OutFrame out;
  out.path = &path;
  const Sequence next = queue_.window().next();
  const AckIncluded carried =
      encode_session_frame({kind, 0, next, transmission_}, to, frame_size_.frame_max(), ack, empty_, out);
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
  const Sequence last = queue_.window().next().previous();
  link::OutFrame out;
  out.path = &paths_.scheduler().next_validated();
  encode_session_frame({wire::FrameKind::flow, kSequenced, last, transmission_ + 1}, handshake_,
                       frame_size_.frame_max(), ack, padding, out);
  if (link.send_burst({&out, 1}) == 0) return;
  zero_window_probe_ = ++transmission_;
  paths_.recovery().on_zero_window_probe(transmission_);
  ++counters_.frames_sent;
  ++sent_;
  timer_.on_sent(now);
}

bool FrameSender::has_in_flight(Sequence sequence, TransmissionNumber transmission) const {
  if (zero_window_probe_ == transmission) return true;
  const SendWindow& window = queue_.window();
  if (!window.is_outstanding(sequence)) return false;
  return window.at(sequence).transmission == transmission ||
         paths_.recovery().remembers(sequence, transmission);
}

}  // namespace cluster::reliability
