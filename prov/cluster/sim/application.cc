#include "sim/application.h"

#include <algorithm>

namespace cluster::sim {
namespace {

/// While the network is away for long, an application that is stalled again and again keeps at most so many
/// receives posted.
constexpr std::size_t kPostedMax = 2048;
constexpr std::uint64_t kStreamRma = 6;
constexpr std::uint64_t kStreamAtomics = 9;

}  // namespace

Application::Application(const ApplicationEnvironment& environment, SeededRandom random)
    : env_(environment),
      random_(random),
      sender_(environment, random_, quarantine_),
      receiver_(environment, random_, quarantine_),
      multi_receiver_(environment, random_, quarantine_),
      rma_(environment, SeededRandom::stream(SeededRandom(random).next(), kStreamRma), quarantine_),
      atomics_(environment, SeededRandom::stream(SeededRandom(random).next(), kStreamAtomics), quarantine_) {
  if (env_.plan.pattern == Pattern::ping_pong && env_.self % 2 == 0) tokens_ = env_.plan.in_flight;
}

void Application::wake_by(Time at) { wake_at_ = std::min(wake_at_, at); }

bool Application::turn() {
  wake_at_ = kNever;
  if (finishing_) return drain_messages();
  bool acted = receiver_.post_receives();
  acted = multi_receiver_.post_buffers(receiver_.largest_message()) || acted;
  wake_by(receiver_.wake_at());
  while (may_start()) {
    if (!start_operation()) break;
    acted = true;
  }
  if (random_.chance(env_.plan.closing)) rma_.replace_region();
  if (random_.chance(env_.plan.peek)) acted = receiver_.post_peek() || acted;
  if (receiver_.has_claims() && random_.chance(300'000)) acted = receiver_.use_claimed_message() || acted;
  if (random_.chance(env_.plan.cancel)) {
    receiver_.cancel_random();
    multi_receiver_.cancel_random();
  }
  const Time now = env_.event_queue.now();
  // Messages may wait for a receive that takes every message.
  if (stall_.stalled(now) && receiver_.posted() < kPostedMax)
    acted = receiver_.post_wildcard(random_.chance(kMillion / 2)) || acted;
  wake_by(stall_.stalled_at());
  if (is_sender() && started_ < env_.plan.messages && next_start_ > now) wake_by(next_start_);
  return acted;
}

bool Application::may_start() const {
  const WorkloadPlan& plan = env_.plan;
  if (started_ >= plan.messages || under_way() >= plan.in_flight) return false;
  if (env_.event_queue.now() < next_start_ || !is_sender()) return false;
  return plan.pattern != Pattern::ping_pong || tokens_ > 0;
}

bool Application::is_sender() const {
  switch (env_.plan.pattern) {
    case Pattern::incast: return env_.self != 0;
    case Pattern::one_way: return env_.self == 0;
    case Pattern::ping_pong: return (env_.self ^ 1) < env_.hosts;
    default: return env_.hosts > 1;
  }
}

bool Application::finished() const { return (!is_sender() || started_ >= env_.plan.messages) && all_sent(); }

HostNumber Application::destination() {
  const WorkloadPlan& plan = env_.plan;
  if (random_.chance(plan.to_itself)) return env_.self;
  switch (plan.pattern) {
    case Pattern::ping_pong: return env_.self ^ 1;
    case Pattern::incast: return 0;
    case Pattern::one_way: return 1;
    case Pattern::all_to_all: return (env_.self + 1 + started_ % (env_.hosts - 1)) % env_.hosts;
    case Pattern::scattered: break;
  }
  return (env_.self + 1 + static_cast<HostNumber>(random_.below(env_.hosts - 1))) % env_.hosts;
}

/// Starts a message, a remote read or write, or an atomic operation. Returns false if that is not possible
/// now.
bool Application::start_operation() {
  bool started = false;
  if (random_.chance(env_.plan.atomics.share)) {
    started = atomics_.start_operation(destination());
  } else if (random_.chance(env_.plan.remote)) {
    started = rma_.start_operation(destination());
  } else {
    if (!sender_.must_retry()) sender_.compose(destination());
    started = sender_.post();
    if (!started) return false;  // the engine has no space until an operation ends
    if (tokens_ > 0) --tokens_;
  }
  if (!started) {
    // The operation may be possible a little later.
    wake_by(env_.event_queue.now() + StallWatch::kStallTime);
    return false;
  }
  ++started_;
  if (env_.plan.think.count() != 0) {
    next_start_ = env_.event_queue.now() + random_.between(Duration{0}, env_.plan.think);
  }
  return true;
}

void Application::complete(const protocol::Completion& completion) {
  using Kind = protocol::Completion::Kind;
  switch (completion.kind) {
    case Kind::remote_write: return rma_.remote_write_arrived(completion);
    case Kind::send:
      sender_.complete(completion);
      if (completion.status != Status::ok) ++tokens_;
      break;
    case Kind::write:
    case Kind::read: rma_.complete(completion); break;
    case Kind::atomic:
    case Kind::fetch: atomics_.complete(completion); break;
    case Kind::receive:
    case Kind::buffer_released: complete_receive(completion); break;
    case Kind::collective: break;  // no application starts one
  }
  stall_.operation_ended(completion.status != Status::canceled && completion.status != Status::no_message);
}

void Application::complete_receive(const protocol::Completion& completion) {
  const Message* const message =
      MultiReceiver::owns(completion) ? multi_receiver_.complete(completion) : receiver_.complete(completion);
  if (message != nullptr) env_.rma.message_came(*message, message->remote_before);
  const bool failed = completion.status != Status::ok && completion.status != Status::no_message;
  if (message != nullptr || failed) ++tokens_;
}

void Application::cancel_receives() {
  receives_canceled_ = true;
  receiver_.cancel_all();
  multi_receiver_.cancel_all();
}

/// Receives all messages that must still arrive or have arrived. Without a receive, the sender of a message
/// would probe forever, and so would the senders of messages behind it that find no space.
bool Application::drain_messages() {
  const bool acted = receiver_.drain_messages();
  // Receives were posted again for messages that came after the cancellation. These receives are cancelled,
  // too.
  if (receives_canceled_ && !receiver_.awaits_messages()) cancel_receives();
  return acted;
}

}  // namespace cluster::sim
