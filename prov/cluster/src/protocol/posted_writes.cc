#include "protocol/posted_writes.h"

#include <algorithm>

namespace cluster::protocol {
namespace {

using Outcome = RemoteRegions::Outcome;

/// Numbers wrap around.
bool before(Recall::Number one, Recall::Number other) { return static_cast<std::int32_t>(one - other) < 0; }

}  // namespace

/// True if nothing is under way that a write must not overtake.
bool PostedWrites::may_be_taken_back(const Channel& channel) const {
  const bool after_reads = context_.bindings.ordering.write_after_read && channel.rma.reads > 0;
  return channel.tx.ordered.empty() && !after_reads && !alone_.comes_behind_others(channel, nullptr, false);
}

bool PostedWrites::post(Channel& channel, const WriteOp& op) {
  Recall* const recall = channel.rma.reached.regions != nullptr ? channel.carrier->recall() : nullptr;
  if (recall == nullptr || op.has_data || op.fence || op.remote.size() != 1 || op.length > kLengthMax)
    return false;
  PostedState& posted = channel.rma.posted;
  if (posted.inattentive) {
    if (recall->taken() == posted.taken) return false;
    posted.inattentive = false;
  }
  const RmaIov& range = op.remote.front();
  if (posted.writes.size() >= recall->capacity() / 2 || !may_be_taken_back(channel) ||
      channel.rma.reached.regions->judge_write(range.key, range.address, range.length) != Outcome::done) {
    return false;
  }
  wire::Segment segment{.kind = wire::SegmentKind::write,
                        .flags = wire::segment_flag::kUnanswered,
                        .length = static_cast<std::uint32_t>(range.length),
                        .offset = range.address,
                        .total = range.length,
                        .key = range.key};
  const Recall::Number number = recall->next();
  if (!channel.carrier->post(segment, {op.slices, 0, range.length}, PayloadMode::copy, 0)) return false;
  if (posted.writes.empty()) {
    posted.moved_at.reset();
    channels_.push_back(&channel);
  }
  posted.writes.push_back({number, op.report, range.key, range.address, op.context});
  context_.counters.bytes_sent += range.length;
  return true;
}

template <typename Visit>
void PostedWrites::each_channel(Visit&& visit) {
  // Nothing is posted meanwhile: the list only shrinks.
  bool complete = false;
  for (Channel* channel : channels_) {
    visit(*channel);
    complete |= channel->rma.posted.writes.empty();
  }
  if (complete)
    std::erase_if(channels_, [](const Channel* channel) { return channel->rma.posted.writes.empty(); });
}

void PostedWrites::settle(std::optional<std::uint64_t> ticks) {
  each_channel([&](Channel& channel) {
    PostedState& posted = channel.rma.posted;
    const std::size_t left = posted.writes.size();
    complete_taken(channel);
    if (posted.writes.empty() || !ticks) return;
    if (posted.writes.size() != left || !posted.moved_at) {
      posted.moved_at = ticks;
    } else if (*ticks - *posted.moved_at > kPatience) {
      take_back(channel);
      posted.moved_at = ticks;
    }
  });
}

bool PostedWrites::recall() {
  bool all = true;
  each_channel([&](Channel& channel) {
    complete_taken(channel);
    if (!channel.rma.posted.writes.empty()) all &= take_back(channel);
  });
  return all;
}

/// False: the target is taking segments.
bool PostedWrites::take_back(Channel& channel) {
  Recall& recall = *channel.carrier->recall();
  if (!recall.hold()) return false;
  complete_taken(channel);
  PostedState& posted = channel.rma.posted;
  while (!posted.writes.empty()) {
    const PostedWrite& write = posted.writes.front();
    const ConstBytes payload = recall.payload(write.number);
    const Outcome outcome =
        channel.rma.reached.regions->write(write.key, write.address, {{&payload, 1}, 0, payload.size()});
    if (outcome == Outcome::unsuited) break;  // only the target can do it
    recall.withdraw(write.number);
    ++context_.counters.rma_alone;
    posted.inattentive = true;
    complete_front(channel, outcome == Outcome::done ? Status::ok : Status::access);
  }
  posted.taken = recall.taken();
  recall.resume();
  return true;
}

void PostedWrites::complete_taken(Channel& channel) {
  PostedState& posted = channel.rma.posted;
  Recall& recall = *channel.carrier->recall();
  const Recall::Number taken = recall.taken();
  while (!posted.writes.empty() && before(posted.writes.front().number, taken)) {
    complete_front(channel, recall.refused(posted.writes.front().number) ? Status::access : Status::ok);
  }
}

void PostedWrites::complete_front(Channel& channel, Status status) {
  const PostedWrite write = channel.rma.posted.writes.front();
  channel.rma.posted.writes.pop_front();
  reporter_.rma_completed(Completion::Kind::write, nullptr, write.context, write.report, status, channel);
}

void PostedWrites::settle_last(Channel& channel) {
  if (channel.rma.posted.writes.empty()) return;
  const bool held = channel.carrier->recall()->hold();
  complete_taken(channel);
  if (held) channel.carrier->recall()->resume();
}

void PostedWrites::fail(Channel& channel, Status status) {
  while (!channel.rma.posted.writes.empty()) complete_front(channel, status);
  channel.rma.posted.inattentive = false;
  std::erase(channels_, &channel);
}

}  // namespace cluster::protocol
