#include "sim/application.h"

#include <algorithm>
#include <array>

#include "sim/memory_account.h"
#include "sim/slices.h"

namespace cluster::sim {
namespace {

constexpr std::uint64_t kStreamRemote = 6;
/// An application that nothing happens to opens itself to whoever may be waiting for a receive.
constexpr Duration kPatience = 2ms;

using protocol::Promise;

}  // namespace

Application::Application(const Surroundings& surroundings, Dice dice)
    : around_(surroundings),
      dice_(dice),
      remote_(surroundings, Dice::stream(Dice(dice).next(), kStreamRemote), quarantine_),
      size_max_(largest_size(around_.plan.sizes, around_.thresholds)) {
  if (around_.plan.pattern == Pattern::ping_pong && around_.self % 2 == 0) tokens_ = around_.plan.in_flight;
}

void Application::wake_by(Time at) { wake_at_ = std::min(wake_at_, at); }

bool Application::turn() {
  wake_at_ = kNever;
  if (finishing_) return take_in_the_rest();
  bool acted = post_receives();
  while (may_send()) {
    if (!(dice_.chance(around_.plan.remote) ? access_something() : send_something())) break;
    acted = true;
  }
  if (dice_.chance(around_.plan.closing)) remote_.change_regions();
  if (dice_.chance(around_.plan.peek)) acted = peek_somewhere() || acted;
  if (!claims_.empty() && dice_.chance(300'000)) acted = deal_with_claim() || acted;
  if (dice_.chance(around_.plan.cancel)) cancel_something();
  const Time now = around_.timetable.now();
  if (ended_ != ended_before_ || impatient_at_ == Time{}) {
    ended_before_ = ended_;
    impatient_at_ = now + kPatience;
  } else if (now >= impatient_at_) {
    impatient_at_ = now + kPatience;
    acted = post_any(dice_.chance(kMillion / 2)) || acted;
  }
  wake_by(impatient_at_);
  if (sends_at_all() && sent_ < around_.plan.messages && next_send_ > now) wake_by(next_send_);
  return acted;
}

bool Application::may_send() const {
  const WorkloadPlan& plan = around_.plan;
  if (sent_ >= plan.messages || sends_under_way_ + remote_.under_way() >= plan.in_flight) return false;
  if (around_.timetable.now() < next_send_ || !sends_at_all()) return false;
  return plan.pattern != Pattern::ping_pong || tokens_ > 0;
}

bool Application::sends_at_all() const {
  switch (around_.plan.pattern) {
    case Pattern::incast: return around_.self != 0;
    case Pattern::one_way: return around_.self == 0;
    case Pattern::ping_pong: return (around_.self ^ 1) < around_.hosts;
    default: return around_.hosts > 1;
  }
}

bool Application::finished() const {
  return (!sends_at_all() || sent_ >= around_.plan.messages) && all_sent();
}

HostNumber Application::destination() {
  const WorkloadPlan& plan = around_.plan;
  if (dice_.chance(plan.to_itself)) return around_.self;
  switch (plan.pattern) {
    case Pattern::ping_pong: return around_.self ^ 1;
    case Pattern::incast: return 0;
    case Pattern::one_way: return 1;
    case Pattern::all_to_all: return (around_.self + 1 + sent_ % (around_.hosts - 1)) % around_.hosts;
    case Pattern::scattered: break;
  }
  return (around_.self + 1 + static_cast<HostNumber>(dice_.below(around_.hosts - 1))) % around_.hosts;
}

Message Application::shape_message() {
  const WorkloadPlan& plan = around_.plan;
  Message shape;
  shape.from = around_.self;
  shape.to = destination();
  shape.length = draw_size(plan.sizes, around_.thresholds, dice_);
  shape.tagged = dice_.chance(plan.tagged);
  shape.injected = shape.length <= protocol::kInjectMax && dice_.chance(plan.injected);
  shape.reported = !dice_.chance(plan.unreported);
  // Everything must be recognisable when it arrives, by content, tag or data; what nobody hears of again
  // even when it is announced.
  const bool speaks = shape.tagged || (shape.length >= kNumberedFrom && shape.reported);
  shape.has_data = dice_.chance(plan.with_data) || !speaks;
  if (dice_.chance(plan.buffer_free)) shape.promise = Promise::buffer_free;
  if (dice_.chance(plan.delivered)) shape.promise = Promise::delivered;
  return shape;
}

bool Application::send_something() {
  if (refused_ == 0) {
    const Message& message = around_.oracle.compose(shape_message());
    SendOperation operation;
    operation.length = message.length;
    operation.buffer = std::make_unique_for_overwrite<std::byte[]>(message.length);
    fill_content(message.number, {operation.buffer.get(), message.length});
    refused_ = message.number;
    sends_.emplace(message.number, std::move(operation));
  }
  const Message message = around_.oracle.message(refused_);
  SendOperation& operation = sends_.at(message.number);
  std::array<ConstBytes, protocol::kSlicesMax> slices;
  const std::size_t count = cut(dice_, around_.plan.scattered_buffers,
                                ConstBytes{operation.buffer.get(), operation.length}, slices);
  protocol::SendOrder order;
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
  order.more = dice_.chance(around_.plan.more);
  order.promise = message.promise;
  Fault fault;
  {
    const MemoryAccount::Scope scope(&around_.account);
    fault = around_.engine.send(order);
  }
  around_.trace.line("host %u sends message %llu to %u, %zu bytes: %s", around_.self,
                     static_cast<unsigned long long>(message.number), message.to, message.length,
                     describe(fault));
  if (fault == Fault::again) return false;
  if (fault != Fault::none) throw SafetyFailure(std::string("a send was refused: ") + describe(fault));
  refused_ = 0;
  around_.oracle.accepted(message.number);
  around_.oracle.message(message.number).remote_before =
      around_.remote.accepted_before(message.from, message.to);
  if (message.injected) release(operation);
  if (message.reported) ++sends_under_way_;
  if (tokens_ > 0) --tokens_;
  count_order();
  return true;
}

bool Application::access_something() {
  if (!remote_.order_something(destination())) {
    // What stands in the way may be gone a little later.
    wake_by(around_.timetable.now() + kPatience);
    return false;
  }
  count_order();
  return true;
}

void Application::count_order() {
  ++sent_;
  if (around_.plan.think.count() == 0) return;
  next_send_ = around_.timetable.now() + dice_.between(Duration{0}, around_.plan.think);
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
    case Completion::Kind::remote_write: return remote_.note_landed(completion);
    case Completion::Kind::write:
    case Completion::Kind::read: ++ended_; return remote_.complete(completion);
    case Completion::Kind::atomic:
    case Completion::Kind::fetch:
    case Completion::Kind::give_back: throw SafetyFailure("an operation ended that nobody began");
  }
}

void Application::complete_send(const protocol::Completion& completion) {
  const auto number = reinterpret_cast<MessageNumber>(completion.context);
  around_.trace.line("host %u send of message %llu ended: %s", around_.self,
                     static_cast<unsigned long long>(number), describe(completion.fault));
  around_.oracle.send_ended(completion);
  if (around_.oracle.message(number).from_life != around_.life) {
    throw SafetyFailure("a send of an earlier life completed");
  }
  const auto found = sends_.find(number);
  release(found->second);
  sends_.erase(found);
  if (around_.oracle.message(number).reported) --sends_under_way_;
  ++ended_;
  if (completion.fault != Fault::none) ++tokens_;
}

}  // namespace cluster::sim
