#include "reliability/ack_processor.h"

#include <utility>

namespace cluster::reliability {

AckProcessor::AckProcessor(SendQueue& queue, const FrameSender& sender, Handshake& handshake,
                           multipath::PathManager& paths, multipath::PathMtu& path_mtu,
                           RetransmissionTimer& timer, Log& log)
    : queue_(queue),
      sender_(sender),
      handshake_(handshake),
      paths_(paths),
      path_mtu_(path_mtu),
      timer_(timer),
      log_(log) {}

bool AckProcessor::valid(const wire::FrameView& view) const {
  return queue_.window().valid_ack(view.ack, view.has_ranges ? &view.ranges : nullptr) &&
         !view.newest.after(sender_.last_transmission());
}

void AckProcessor::process(Time now, const wire::FrameView& view, Time arrived) {
  // A peer that only sends repeats its acknowledgement with each frame.
  const Last said{view.ack, view.newest, !view.has_ranges};
  if (said.plain && last_ == said) return;
  last_ = said;
  const SendWindow& window = queue_.window();
  const Sequence complete_before = window.first();
  const std::size_t acked = acknowledge_frames(view);
  if (!withheld_.empty()) release_withheld();
  // A full block may have left out what lies behind its last range.
  const bool partial = view.has_ranges && view.ranges.count == wire::kAckRangesMax;
  multipath::AckInfo ack{};
  ack.newest = view.newest;
  ack.known_end = partial ? view.ranges.ranges[view.ranges.count - 1].end : window.next();
  ack.next = sender_.last_transmission() + 1;
  ack.arrived = arrived;
  if (view.knows_ack_delay()) ack.delay = Duration(view.ack_delay_ns);
  ack.spurious = new_spurious(view);
  paths_.recovery().on_ack(now, ack);
  const bool progress = acked != 0 || window.first() != complete_before;
  if (progress) timer_.on_progress(now, window.first() != window.next());
}

std::size_t AckProcessor::acknowledge_frames(const wire::FrameView& view) {
  std::size_t acked = 0;
  queue_.window().acknowledge(
      view.ack, view.has_ranges ? &view.ranges : nullptr, [&](Sequence s, Flight& flight) {
        ++acked;
        paths_.recovery().on_frame_acked(flight.path,
                                         {s, flight.transmission, flight.sent_at, flight.sendings == 1});
        report_tokens(s, *flight.body, view.ack);
        if (path_mtu_.is_pmtu_probe(s)) on_pmtu_probe_acked();
        queue_.recycle(std::move(flight.body));
      });
  return acked;
}

void AckProcessor::report_tokens(Sequence s, const FrameBody& body, Sequence complete_before) {
  const bool behind_gap = body.ordered && !s.before(complete_before);
  for (const carrier::Token token : body.tokens) {
    if (behind_gap) {
      withheld_.push_back({s, token});
    } else {
      delivered_.push_back(token);
    }
  }
}

void AckProcessor::release_withheld() {
  std::erase_if(withheld_, [this](const Withheld& withheld) {
    const bool complete = withheld.sequence.before(queue_.window().first());
    if (complete) delivered_.push_back(withheld.token);
    return complete;
  });
}

void AckProcessor::on_pmtu_probe_acked() {
  switch (path_mtu_.on_pmtu_probe_acked()) {
    case multipath::PathMtu::Answer::none: return;
    case multipath::PathMtu::Answer::yes: return handshake_.set_path_frame_max(handshake_.link_frame_max());
    case multipath::PathMtu::Answer::no:
      log_.warn("path to %s: frames of %zu bytes do not arrive though both links take them; using %zu",
                paths_[0].address.to.text().c_str(), handshake_.link_frame_max(), handshake_.frame_max());
  }
}

/// Spurious retransmissions that this acknowledgement counts beyond the last one that had a block.
std::uint32_t AckProcessor::new_spurious(const wire::FrameView& view) {
  if (!view.has_ranges || static_cast<std::int32_t>(view.ranges.duplicates - spurious_) <= 0) return 0;
  return view.ranges.duplicates - std::exchange(spurious_, view.ranges.duplicates);
}

void AckProcessor::take_delivered(std::vector<carrier::Token>& tokens) {
  tokens.insert(tokens.end(), delivered_.begin(), delivered_.end());
  delivered_.clear();
}

}  // namespace cluster::reliability
