#include "sim/application.h"

#include <algorithm>
#include <array>

#include "sim/allocation_meter.h"
#include "sim/split.h"

namespace cluster::sim {
namespace {

constexpr std::uint64_t kStreamRemote = 6;
/// An application that nothing happens to opens itself to whoever may be waiting for a receive.
constexpr Duration kStallTime = 2ms;

using protocol::CompletionLevel;

}  // namespace

Application::Application(const ApplicationEnvironment& environment, SeededRandom random)
    : env_(environment),
      random_(random),
      remote_(environment, SeededRandom::stream(SeededRandom(random).next(), kStreamRemote), quarantine_),
      size_max_(largest_size(env_.plan.sizes, env_.thresholds)) {
  if (env_.plan.pattern == Pattern::ping_pong && env_.self % 2 == 0) tokens_ = env_.plan.in_flight;
}

void Application::wake_by(Time at) { wake_at_ = std::min(wake_at_, at); }

bool Application::turn() {
  wake_at_ = kNever;
  if (finishing_) return drain_messages();
  bool acted = post_receives();
  while (may_send()) {
    if (!(random_.chance(env_.plan.remote) ? start_rma() : send_message())) break;
    acted = true;
  }
  if (random_.chance(env_.plan.closing)) remote_.replace_region();
  if (random_.chance(env_.plan.peek)) acted = post_peek() || acted;
  if (!claims_.empty() && random_.chance(300'000)) acted = use_claimed_message() || acted;
  if (random_.chance(env_.plan.cancel)) cancel_random_receive();
  const Time now = env_.event_queue.now();
  if (ended_ != ended_before_ || wildcard_at_ == Time{}) {
    ended_before_ = ended_;
    wildcard_at_ = now + kStallTime;
  } else if (now >= wildcard_at_) {
    wildcard_at_ = now + kStallTime;
    acted = post_any(random_.chance(kMillion / 2)) || acted;
  }
  wake_by(wildcard_at_);
  if (is_sender() && sent_ < env_.plan.messages && next_send_ > now) wake_by(next_send_);
  return acted;
}

bool Application::may_send() const {
  const WorkloadPlan& plan = env_.plan;
  if (sent_ >= plan.messages || sends_under_way_ + remote_.under_way() >= plan.in_flight) return false;
  if (env_.event_queue.now() < next_send_ || !is_sender()) return false;
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

bool Application::finished() const { return (!is_sender() || sent_ >= env_.plan.messages) && all_sent(); }

HostNumber Application::destination() {
  const WorkloadPlan& plan = env_.plan;
  if (random_.chance(plan.to_itself)) return env_.self;
  switch (plan.pattern) {
    case Pattern::ping_pong: return env_.self ^ 1;
    case Pattern::incast: return 0;
    case Pattern::one_way: return 1;
    case Pattern::all_to_all: return (env_.self + 1 + sent_ % (env_.hosts - 1)) % env_.hosts;
    case Pattern::scattered: break;
  }
  return (env_.self + 1 + static_cast<HostNumber>(random_.below(env_.hosts - 1))) % env_.hosts;
}

Message Application::draw_message() {
  const WorkloadPlan& plan = env_.plan;
  Message shape;
  shape.from = env_.self;
  shape.to = destination();
  shape.length = draw_size(plan.sizes, env_.thresholds, random_);
  shape.tagged = random_.chance(plan.tagged);
  shape.injected = shape.length <= protocol::kInjectMax && random_.chance(plan.injected);
  shape.reported = !random_.chance(plan.unreported);
  // Everything must be recognisable when it arrives, by content, tag or data; what nobody hears of again
  // even when it is announced.
  const bool speaks = shape.tagged || (shape.length >= kNumberedFrom && shape.reported);
  shape.has_data = random_.chance(plan.with_data) || !speaks;
  if (random_.chance(plan.buffer_free)) shape.completion_level = CompletionLevel::inject;
  if (random_.chance(plan.delivered)) shape.completion_level = CompletionLevel::delivery;
  return shape;
}

bool Application::send_message() {
  if (retry_message_ == 0) {
    const Message& message = env_.oracle.compose(draw_message());
    SendOperation operation;
    operation.length = message.length;
    operation.buffer = std::make_unique_for_overwrite<std::byte[]>(message.length);
    fill_content(message.number, {operation.buffer.get(), message.length});
    retry_message_ = message.number;
    sends_.emplace(message.number, std::move(operation));
  }
  const Message message = env_.oracle.message(retry_message_);
  SendOperation& operation = sends_.at(message.number);
  std::array<ConstBytes, protocol::kIovMax> slices;
  const std::size_t count =
      cut(random_, env_.plan.scattered_buffers, ConstBytes{operation.buffer.get(), operation.length}, slices);
  protocol::SendOp order;
  order.slices = {slices.data(), count};
  order.length = message.length;
  order.to = message.to;
  order.context = reinterpret_cast<void*>(message.number);
  order.tag = message.tag;
  order.data = message.data;
  order.tagged = message.tagged;
  order.has_data = message.has_data;
  order.inject = message.injected;
  order.report = message.reported;
  order.more = random_.chance(env_.plan.more);
  order.completion_level = message.completion_level;
  Status status;
  {
    const AllocationMeter::Scope scope(&env_.memory);
    status = env_.engine.send(order);
  }
  env_.trace.line("host %u sends message %llu to %u, %zu bytes: %s", env_.self,
                  static_cast<unsigned long long>(message.number), message.to, message.length,
                  describe(status));
  if (status == Status::again) return false;
  if (status != Status::ok) throw SafetyFailure(std::string("a send was refused: ") + describe(status));
  retry_message_ = 0;
  env_.oracle.accepted(message.number);
  env_.oracle.message(message.number).remote_before = env_.remote.accepted_before(message.from, message.to);
  if (message.injected) release(operation);
  if (message.reported) ++sends_under_way_;
  if (tokens_ > 0) --tokens_;
  count_operation();
  return true;
}

bool Application::start_rma() {
  if (!remote_.start_operation(destination())) {
    // What stands in the way may be gone a little later.
    wake_by(env_.event_queue.now() + kStallTime);
    return false;
  }
  count_operation();
  return true;
}

void Application::count_operation() {
  ++sent_;
  if (env_.plan.think.count() == 0) return;
  next_send_ = env_.event_queue.now() + random_.between(Duration{0}, env_.plan.think);
}

/// The library has given the buffer back.
void Application::release(SendOperation& operation) {
  quarantine_.take(std::move(operation.buffer), operation.length);
  operation.length = 0;
}

void Application::complete(const protocol::Completion& completion) {
  using protocol::Completion;
  switch (completion.kind) {
    case Completion::Kind::send: return complete_send(completion);
    case Completion::Kind::receive: return complete_receive(completion);
    case Completion::Kind::remote_write: return remote_.remote_write_arrived(completion);
    case Completion::Kind::write:
    case Completion::Kind::read: ++ended_; return remote_.complete(completion);
    case Completion::Kind::atomic:
    case Completion::Kind::fetch:
    case Completion::Kind::buffer_released: throw SafetyFailure("an operation ended that nobody began");
  }
}

void Application::complete_send(const protocol::Completion& completion) {
  const auto number = reinterpret_cast<MessageNumber>(completion.context);
  env_.trace.line("host %u send of message %llu ended: %s", env_.self,
                  static_cast<unsigned long long>(number), describe(completion.status));
  env_.oracle.send_ended(completion);
  if (env_.oracle.message(number).from_incarnation != env_.incarnation) {
    throw SafetyFailure("a send of an earlier incarnation completed");
  }
  const auto found = sends_.find(number);
  release(found->second);
  sends_.erase(found);
  if (env_.oracle.message(number).reported) --sends_under_way_;
  ++ended_;
  if (completion.status != Status::ok) ++tokens_;
}

}  // namespace cluster::sim
