#include "protocol/posted_writes.h"

#include <algorithm>
#include <utility>

namespace cluster::protocol {
namespace {

using Outcome = RemoteRegions::Outcome;

/// Most writes that are done while the target is held: it takes in nothing meanwhile.
constexpr std::size_t kHeldWrites = 32;

/// The target takes no segments while one of these lives.
class Hold {
 public:
  explicit Hold(Recall& recall) : recall_(recall), held_(recall.hold()) {}
  ~Hold() {
    if (held_) recall_.resume();
  }
  Hold(const Hold&) = delete;
  Hold& operator=(const Hold&) = delete;
  explicit operator bool() const { return held_; }

 private:
  Recall& recall_;
  bool held_;
};

/// Numbers wrap around.
bool before(Recall::Number one, Recall::Number other) { return static_cast<std::int32_t>(one - other) < 0; }

}  // namespace

/// True if nothing is under way that a write must not overtake.
bool PostedWrites::may_be_taken_back(const Channel& channel) const {
  const bool after_reads = context_.bindings.ordering.write_after_read && channel.rma.reads > 0;
  return channel.tx.ordered.empty() && !after_reads && !alone_.comes_behind_others(channel, nullptr, false);
}

/// The ring remembers of so many segments which were refused.
bool PostedWrites::full(const PostedState& posted, const Recall& recall) {
  return !posted.writes.empty() && recall.next() - posted.writes.front().number >= recall.capacity() / 2;
}

/// What has been posted is noted without needing memory.
[[gnu::noinline]] void PostedWrites::reserve(PostedState& posted) {
  if (posted.writes.free() == 0) posted.writes.grow();
  if (channels_.size() == channels_.capacity()) channels_.reserve(2 * channels_.size() + 1);
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
  if (full(posted, *recall)) complete_taken(channel);
  if (full(posted, *recall) || !may_be_taken_back(channel) ||
      channel.rma.reached.regions->judge_write(range.key, range.address, range.length) != Outcome::done) {
    return false;
  }
  wire::Segment segment{.kind = wire::SegmentKind::write,
                        .flags = wire::segment_flag::kUnanswered,
                        .length = static_cast<std::uint32_t>(range.length),
                        .offset = range.address,
                        .total = range.length,
                        .key = range.key};
  if (posted.writes.free() == 0 || channels_.size() == channels_.capacity()) [[unlikely]]
    reserve(posted);
  const Recall::Number number = recall->next();
  if (!channel.carrier->post(segment, {op.slices, 0, range.length}, PayloadMode::copy, 0)) return false;
  if (posted.writes.empty()) posted.moved_at.reset();
  if (!std::exchange(posted.listed, true)) channels_.push_back(&channel);
  posted.writes.push_within() = {number, op.report, range.key, range.address, op.context};
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
  if (!complete) return;
  std::erase_if(channels_, [](Channel* channel) {
    channel->rma.posted.listed = !channel->rma.posted.writes.empty();
    return !channel->rma.posted.listed;
  });
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
  PostedState& posted = channel.rma.posted;
  for (bool suited = true; suited && !posted.writes.empty();) {
    const Hold held(*channel.carrier->recall());
    if (!held) return false;
    suited = take_back_some(channel);
  }
  return true;
}

/// While the target is held. False: the rest only the target can do.
bool PostedWrites::take_back_some(Channel& channel) {
  Recall& recall = *channel.carrier->recall();
  PostedState& posted = channel.rma.posted;
  complete_taken(channel);
  const Recall::Number taken = recall.taken();
  for (std::size_t left = kHeldWrites; left > 0 && !posted.writes.empty(); --left) {
    const PostedWrite write = posted.writes.front();
    const ConstBytes payload = recall.payload(write.number);
    const Outcome outcome =
        channel.rma.reached.regions->write(write.key, write.address, {{&payload, 1}, 0, payload.size()});
    if (outcome == Outcome::unsuited) return false;
    recall.withdraw(write.number);
    ++context_.counters.rma_alone;
    posted.inattentive = true;
    posted.taken = taken;  // what was withdrawn is behind it: the target shows that it polls by taking that
    complete_front(channel, outcome == Outcome::done ? Status::ok : Status::access);
  }
  return true;
}

void PostedWrites::complete_taken(Channel& channel) {
  PostedState& posted = channel.rma.posted;
  Recall& recall = *channel.carrier->recall();
  const Recall::Number taken = recall.taken();
  while (!posted.writes.empty() && before(posted.writes.front().number, taken)) {
    complete_front(channel, recall.take_refusal(posted.writes.front().number) ? Status::access : Status::ok);
  }
}

void PostedWrites::complete_front(Channel& channel, Status status) {
  const PostedWrite write = channel.rma.posted.writes.front();
  channel.rma.posted.writes.pop_front();
  reporter_.rma_completed(Completion::Kind::write, nullptr, write.context, write.report, status, channel);
}

void PostedWrites::settle_last(Channel& channel) {
  if (channel.rma.posted.writes.empty()) return;
  const Hold held(*channel.carrier->recall());
  complete_taken(channel);
}

void PostedWrites::fail(Channel& channel, Status status) {
  while (!channel.rma.posted.writes.empty()) complete_front(channel, status);
  channel.rma.posted.inattentive = channel.rma.posted.listed = false;
  std::erase(channels_, &channel);
}

}  // namespace cluster::protocol
