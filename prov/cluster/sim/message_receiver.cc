#include "sim/message_receiver.h"

#include <algorithm>
#include <array>

#include "sim/allocation_meter.h"
#include "sim/guard.h"
#include "sim/split.h"

namespace cluster::sim {
namespace {

/// Marks the contexts of receives.
constexpr std::uint64_t kReceiveContext = std::uint64_t{1} << 48;
constexpr std::size_t kDrainDepth = 32;
/// The class of a tag is its last two bits.
constexpr std::uint64_t kClassBits = 3;

void* as_context(std::uint64_t context) { return reinterpret_cast<void*>(context); }

}  // namespace

MessageReceiver::MessageReceiver(const ApplicationEnvironment& environment, SeededRandom& random,
                                 Quarantine& quarantine)
    : env_(environment),
      random_(random),
      quarantine_(quarantine),
      size_max_(largest_size(env_.plan.sizes, env_.thresholds)) {}

bool MessageReceiver::post_receives() {
  bool acted = false;
  wake_at_ = kNever;
  const Time now = env_.event_queue.now();
  while (posted_.size() < env_.plan.receive_depth) {
    if (now < next_receive_) {
      wake_at_ = next_receive_;
      break;
    }
    auto operation = std::make_unique<Operation>();
    draw_receive(operation->receive);
    if (!post(std::move(operation))) break;
    acted = true;
    if (env_.plan.late.count() != 0) next_receive_ = now + random_.between(Duration{0}, env_.plan.late);
  }
  return acted;
}

void MessageReceiver::draw_receive(Receive& receive) {
  const WorkloadPlan& plan = env_.plan;
  receive.capacity = random_.chance(plan.truncating) ? random_.below(size_max_) : size_max_;
  receive.tagged = random_.chance(plan.tagged);
  receive.ignore = ~std::uint64_t{0};
  const auto from = static_cast<HostNumber>(random_.below(env_.hosts));
  if (!random_.chance(plan.wildcard)) receive.from = from;
  if (!receive.tagged) {
    // Fewer bytes would not show which message it is.
    receive.capacity = std::max(receive.capacity, kNumberedFrom);
    return;
  }
  if (random_.chance(plan.exact)) {
    receive.tag = env_.oracle.next_tag(from, env_.self) + random_.below(4);
    receive.ignore = 0;
  } else if (random_.chance(plan.classed)) {
    receive.tag = random_.below(kClassBits + 1);
    receive.ignore = ~kClassBits;
  }
}

bool MessageReceiver::post_wildcard(bool tagged) {
  auto operation = std::make_unique<Operation>();
  operation->wildcard = true;
  operation->receive.capacity = size_max_;
  operation->receive.tagged = tagged;
  operation->receive.ignore = ~std::uint64_t{0};
  return post(std::move(operation));
}

/// Posts a receive, a peek, or the receive of a claimed message. Returns false if the engine has no space
/// for it.
bool MessageReceiver::post(std::unique_ptr<Operation> operation) {
  Receive& receive = operation->receive;
  receive.host = env_.self;
  receive.incarnation = env_.incarnation;
  receive.position = env_.oracle.next_position();
  receive.started = env_.oracle.incarnations().moment();
  if (!operation->buffer) {
    operation->buffer = std::make_unique_for_overwrite<std::byte[]>(receive.capacity + kGuardBytes);
    std::fill_n(operation->buffer.get() + receive.capacity, kGuardBytes, kGuard);
  }
  if (operation->context == 0) operation->context = kReceiveContext | ++contexts_;
  std::array<Bytes, protocol::kIovMax> slices;
  const std::size_t count =
      split(random_, env_.plan.scattered_buffers, Bytes{operation->buffer.get(), receive.capacity}, slices);
  protocol::RecvOp op;
  op.slices = {slices.data(), count};
  op.from = receive.from;
  op.context = as_context(operation->context);
  op.tag = receive.tag;
  op.ignore = receive.ignore;
  op.tagged = receive.tagged;
  op.peek = operation->peek;
  op.recv_claimed = operation->kind == Kind::receive_claimed;
  op.discard_claimed = operation->kind == Kind::discard_claimed;
  Status status;
  {
    const AllocationMeter::Scope scope(&env_.memory);
    status = env_.engine.receive(op);
  }
  if (env_.trace.on()) {
    env_.trace.line("host %u posts receive %llx (kind %d, peek %d, from %lld, tag %llx/%llx, %s): %s",
                    env_.self, static_cast<unsigned long long>(operation->context),
                    static_cast<int>(operation->kind), static_cast<int>(operation->peek),
                    static_cast<long long>(receive.from), static_cast<unsigned long long>(receive.tag),
                    static_cast<unsigned long long>(receive.ignore), receive.tagged ? "tagged" : "untagged",
                    describe(status));
  }
  if (status == Status::no_message && receive.claimed)
    env_.oracle.claimed_message_missing(operation->claimed);
  if (status == Status::again) return false;
  if (status != Status::ok) throw SafetyFailure(std::string("a receive was refused: ") + describe(status));
  if (operation->kind == Kind::receive) {
    posted_.push_back(operation->context);
    if (operation->wildcard) ++wildcards_posted_[receive.tagged ? 1 : 0];
  }
  operations_[operation->context] = std::move(operation);
  return true;
}

const Message* MessageReceiver::complete(const protocol::Completion& completion) {
  const auto context = reinterpret_cast<std::uint64_t>(completion.context);
  const auto found = operations_.find(context);
  env_.trace.line("host %u receive %llx ended: %s, %zu bytes, tag %llx", env_.self,
                  static_cast<unsigned long long>(context), describe(completion.status), completion.length,
                  static_cast<unsigned long long>(completion.tag));
  if (found == operations_.end()) throw SafetyFailure("a receive completed twice, or was never posted");
  const std::unique_ptr<Operation> operation = std::move(found->second);
  operations_.erase(found);
  if (completion.kind != protocol::Completion::Kind::receive || completion.releases_buffer) {
    throw SafetyFailure("a receive ended as a buffer for many messages");
  }
  if (operation->kind == Kind::receive) {
    std::erase(posted_, context);
    if (operation->wildcard) --wildcards_posted_[operation->receive.tagged ? 1 : 0];
  }
  if (operation->kind == Kind::peek) {
    peek_completed(*operation, completion);
    return nullptr;
  }
  if (operation->kind == Kind::discard_claimed && completion.status == Status::ok) {
    env_.oracle.dropped(env_.oracle.message(operation->claimed));
    return nullptr;
  }
  return receive_completed(*operation, completion);
}

const Message* MessageReceiver::receive_completed(Operation& operation,
                                                  const protocol::Completion& completion) {
  const Receive& receive = operation.receive;
  if (!all({operation.buffer.get() + receive.capacity, kGuardBytes}, kGuard)) {
    throw SafetyFailure("a message was written beyond its buffer");
  }
  if (completion.status != Status::ok && completion.status != Status::truncated) {
    env_.oracle.receive_failed(receive, completion);
    quarantine_.take(std::move(operation.buffer), std::min(receive.capacity, Quarantine::kWatchedMax));
    return nullptr;
  }
  const Message& message =
      env_.oracle.received(receive, completion, {operation.buffer.get(), receive.capacity});
  quarantine_.take(std::move(operation.buffer), completion.length);
  env_.trace.line("host %u has message %llu", env_.self, static_cast<unsigned long long>(message.number));
  return &message;
}

void MessageReceiver::peek_completed(Operation& operation, const protocol::Completion& completion) {
  using protocol::Peek;
  if (completion.status == Status::no_message) return;
  if (completion.status != Status::ok) return env_.oracle.receive_failed(operation.receive, completion);
  const Peek peek = operation.peek;
  const Oracle::PeekEffect effect = peek == Peek::look    ? Oracle::PeekEffect::stays
                                    : peek == Peek::claim ? Oracle::PeekEffect::claimed
                                                          : Oracle::PeekEffect::gone;
  const Message& message = env_.oracle.peeked(operation.receive, completion, effect);
  if (effect == Oracle::PeekEffect::claimed) {
    claims_.push_back({operation.context, message.number});
  }
}

bool MessageReceiver::post_peek() {
  auto operation = std::make_unique<Operation>();
  draw_receive(operation->receive);
  operation->receive.capacity = 0;
  operation->kind = Kind::peek;
  operation->peek =
      random_.pick(std::array{protocol::Peek::look, protocol::Peek::claim, protocol::Peek::discard});
  return post(std::move(operation));
}

bool MessageReceiver::use_claimed_message() {
  const Claim claim = claims_.front();
  const Message& message = env_.oracle.message(claim.message);
  auto operation = std::make_unique<Operation>();
  operation->context = claim.context;
  operation->claimed = claim.message;
  operation->kind = random_.chance(kMillion / 4) ? Kind::discard_claimed : Kind::receive_claimed;
  operation->receive.claimed = true;
  operation->receive.tagged = message.tagged;
  if (operation->kind == Kind::receive_claimed)
    operation->receive.capacity = message.length + random_.below(2);
  if (!post(std::move(operation))) return false;
  claims_.erase(claims_.begin());
  return true;
}

void MessageReceiver::cancel_random() {
  if (!posted_.empty()) cancel(posted_[random_.below(posted_.size())]);
}

void MessageReceiver::cancel_all() {
  for (const std::uint64_t context : posted_) cancel(context);
}

void MessageReceiver::cancel(std::uint64_t context) {
  Receive& receive = operations_.at(context)->receive;
  if (receive.cancelled) return;
  const AllocationMeter::Scope scope(&env_.memory);
  // The result is false if the message is already on its way into the buffer.
  receive.cancelled = env_.engine.cancel(as_context(context));
}

bool MessageReceiver::awaits_messages() const {
  return env_.oracle.undelivered(env_.self, false) + env_.oracle.undelivered(env_.self, true) +
             env_.engine.unexpected_messages() !=
         0;
}

bool MessageReceiver::drain_messages() {
  bool acted = false;
  while (!claims_.empty() && use_claimed_message()) acted = true;
  const std::size_t at_least = awaits_messages() ? 1 : 0;
  for (const bool tagged : {false, true}) {
    const std::size_t awaited = env_.oracle.undelivered(env_.self, tagged);
    const std::size_t wanted = std::clamp<std::size_t>(awaited, at_least, kDrainDepth);
    while (wildcards_posted_[tagged ? 1 : 0] < wanted && post_wildcard(tagged)) acted = true;
  }
  return acted;
}

}  // namespace cluster::sim
