#include "reliability/outgoing_ack.h"

#include <algorithm>

namespace cluster::reliability {

OutgoingAck::OutgoingAck(Time now, const AckScheduler& acks, const ReceiveWindow& arrivals)
    : any_(acks.any_frame()),
      gap_(arrivals.has_gap()),
      spurious_news_(arrivals.spurious() != acks.spurious_reported()),
      ack_(arrivals.expected()),
      largest_acked_(acks.largest_received()),
      largest_acked_at_(acks.largest_received_at()) {
  set_departure(now);
  if (gap_ || arrivals.spurious() != 0) arrivals.fill_ranges(block_.emplace());
}

void OutgoingAck::set_departure(Time now) { delay_ = ack_delay_field(now, largest_acked_at_); }

OutgoingAck::Fit OutgoingAck::fit(std::size_t free_bytes, bool bare) const {
  if (!any_) return {AckIncluded::none, 0};
  // Even without ranges, the frame carries the block if the block reports a new number of spurious
  // retransmissions, or if the frame is otherwise empty.
  const bool wanted = gap_ || spurious_news_ || (bare && block_);
  const std::size_t size = wanted ? wire::ack_block_size(block_->count) : 0;
  if (size == 0) return {AckIncluded::header, 0};
  if (size <= free_bytes) return {AckIncluded::block, size};
  return {gap_ ? AckIncluded::none : AckIncluded::header, 0};
}

void OutgoingAck::write(wire::FrameHeader& header) const {
  header.ack_delay = delay_;
  header.ack = ack_.value;
  header.largest_acked = largest_acked_.value;
}

}  // namespace cluster::reliability
