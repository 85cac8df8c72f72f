// The receiving side of an application.
#include <algorithm>
#include <cstring>

#include "sim/application.h"
#include "sim/content.h"
#include "sim/memory_account.h"
#include "sim/slices.h"

namespace cluster::sim {
namespace {

constexpr std::size_t kGuardBytes = 16;
constexpr std::byte kGuard{0xA5};
/// Tells contexts of receives from those of sends.
constexpr std::uint64_t kReceiveContext = std::uint64_t{1} << 48;
constexpr std::size_t kRestAtOnce = 32;
/// Of a buffer that got no message: so much of it is watched.
constexpr std::size_t kWatchedMax = 16 * 1024;
/// Classes of tags: the last two bits.
constexpr std::uint64_t kClassBits = 3;

void* as_context(std::uint64_t context) { return reinterpret_cast<void*>(context); }

}  // namespace

bool Application::post_receives() {
  bool acted = false;
  const Time now = around_.timetable.now();
  while (waiting_.size() < around_.plan.receive_depth) {
    if (now < next_receive_) {
      wake_by(next_receive_);
      break;
    }
    auto operation = std::make_unique<ReceiveOperation>();
    shape_receive(operation->receive);
    if (!post(std::move(operation))) break;
    acted = true;
    if (around_.plan.late.count() != 0) next_receive_ = now + dice_.between(Duration{0}, around_.plan.late);
  }
  return acted;
}

void Application::shape_receive(Receive& receive) {
  const WorkloadPlan& plan = around_.plan;
  receive.capacity = dice_.chance(plan.truncating) ? dice_.below(size_max_) : size_max_;
  receive.tagged = dice_.chance(plan.tagged);
  receive.ignore = ~std::uint64_t{0};
  const auto from = static_cast<HostNumber>(dice_.below(around_.hosts));
  if (!dice_.chance(plan.wildcard)) receive.from = from;
  if (!receive.tagged) {
    receive.capacity = std::max(receive.capacity, kNumberedFrom);  // less would not tell which message it is
    return;
  }
  if (dice_.chance(plan.exact)) {
    receive.tag = around_.oracle.next_tag(from, around_.self) + dice_.below(4);
    receive.ignore = 0;
  } else if (dice_.chance(plan.classed)) {
    receive.tag = dice_.below(kClassBits + 1);
    receive.ignore = ~kClassBits;
  }
}

bool Application::post_any(bool tagged) {
  auto operation = std::make_unique<ReceiveOperation>();
  operation->any = true;
  operation->receive.capacity = size_max_;
  operation->receive.tagged = tagged;
  operation->receive.ignore = ~std::uint64_t{0};
  return post(std::move(operation));
}

/// Posts a receive, a peek, or the receive of a claimed message; false if the engine has no room.
bool Application::post(std::unique_ptr<ReceiveOperation> operation) {
  Receive& receive = operation->receive;
  receive.host = around_.self;
  receive.life = around_.life;
  receive.position = around_.oracle.next_position();
  if (!operation->buffer) {
    operation->buffer = std::make_unique_for_overwrite<std::byte[]>(receive.capacity + kGuardBytes);
    std::fill_n(operation->buffer.get() + receive.capacity, kGuardBytes, kGuard);
  }
  if (operation->context == 0) operation->context = kReceiveContext | ++contexts_;
  std::array<Bytes, protocol::kSlicesMax> slices;
  const std::size_t count =
      cut(dice_, around_.plan.scattered_buffers, Bytes{operation->buffer.get(), receive.capacity}, slices);
  protocol::ReceiveOrder order;
  order.slices = {slices.data(), count};
  order.from = receive.from;
  order.context = as_context(operation->context);
  order.tag = receive.tag;
  order.ignore = receive.ignore;
  order.tagged = receive.tagged;
  order.peek = operation->peek;
  order.take_claimed = operation->kind == Kind::take;
  order.drop_claimed = operation->kind == Kind::drop;
  Fault fault;
  {
    const MemoryAccount::Scope scope(&around_.account);
    fault = around_.engine.receive(order);
  }
  if (around_.trace.on()) {
    around_.trace.line("host %u posts receive %llx (kind %d, peek %d, from %lld, tag %llx/%llx, %s): %s",
                       around_.self, static_cast<unsigned long long>(operation->context),
                       static_cast<int>(operation->kind), static_cast<int>(operation->peek),
                       static_cast<long long>(receive.from), static_cast<unsigned long long>(receive.tag),
                       static_cast<unsigned long long>(receive.ignore),
                       receive.tagged ? "tagged" : "untagged", describe(fault));
  }
  if (fault == Fault::no_message && receive.claimed) {
    around_.oracle.claim_lost(around_.self, operation->claimed);
    return true;
  }
  if (fault == Fault::again) return false;
  if (fault != Fault::none) throw SafetyFailure(std::string("a receive was refused: ") + describe(fault));
  if (operation->kind == Kind::receive) {
    waiting_.push_back(operation->context);
    if (operation->any) ++any_posted_[receive.tagged ? 1 : 0];
  }
  receives_[operation->context] = std::move(operation);
  return true;
}

void Application::complete_receive(const protocol::Completion& completion) {
  const auto context = reinterpret_cast<std::uint64_t>(completion.context);
  const auto found = receives_.find(context);
  around_.trace.line("host %u receive %llx ended: %s, %zu bytes, tag %llx", around_.self,
                     static_cast<unsigned long long>(context), describe(completion.fault), completion.length,
                     static_cast<unsigned long long>(completion.tag));
  if (found == receives_.end()) throw SafetyFailure("a receive completed twice, or was never posted");
  const std::unique_ptr<ReceiveOperation> operation = std::move(found->second);
  receives_.erase(found);
  ++ended_;
  if (operation->kind == Kind::receive) {
    std::erase(waiting_, context);
    if (operation->any) --any_posted_[operation->receive.tagged ? 1 : 0];
  }
  if (operation->kind == Kind::peek) return got_peek(*operation, completion);
  if (operation->kind == Kind::drop && completion.fault == Fault::none) {
    return around_.oracle.dropped(around_.oracle.message(operation->claimed));
  }
  got_message(*operation, completion);
}

void Application::got_message(ReceiveOperation& operation, const protocol::Completion& completion) {
  const Receive& receive = operation.receive;
  const ConstBytes guard{operation.buffer.get() + receive.capacity, kGuardBytes};
  if (std::any_of(guard.begin(), guard.end(), [](std::byte byte) { return byte != kGuard; })) {
    throw SafetyFailure("a message was written beyond its buffer");
  }
  if (completion.fault != Fault::none && completion.fault != Fault::truncated) {
    around_.oracle.receive_failed(receive, completion);
    ++tokens_;
    return quarantine_.take(std::move(operation.buffer), std::min(receive.capacity, kWatchedMax));
  }
  const Message& message =
      around_.oracle.received(receive, completion, {operation.buffer.get(), receive.capacity});
  around_.remote.message_came(message, message.remote_before);
  quarantine_.take(std::move(operation.buffer), completion.length);
  around_.trace.line("host %u has message %llu", around_.self,
                     static_cast<unsigned long long>(message.number));
  ++tokens_;
}

void Application::got_peek(ReceiveOperation& operation, const protocol::Completion& completion) {
  using protocol::Peek;
  if (completion.fault == Fault::no_message) return;
  if (completion.fault != Fault::none) return around_.oracle.receive_failed(operation.receive, completion);
  const Peek peek = operation.peek;
  const Oracle::Fate fate = peek == Peek::look    ? Oracle::Fate::stays
                            : peek == Peek::claim ? Oracle::Fate::claimed
                                                  : Oracle::Fate::gone;
  const Message& message = around_.oracle.peeked(operation.receive, completion, fate);
  if (fate == Oracle::Fate::claimed) {
    claims_.push_back({reinterpret_cast<std::uint64_t>(completion.context), message.number});
  }
}

bool Application::peek_somewhere() {
  auto operation = std::make_unique<ReceiveOperation>();
  shape_receive(operation->receive);
  operation->receive.capacity = 0;
  operation->kind = Kind::peek;
  operation->peek =
      dice_.pick(std::array{protocol::Peek::look, protocol::Peek::claim, protocol::Peek::discard});
  return post(std::move(operation));
}

/// Receives the claimed message that has waited longest, or throws it away.
bool Application::deal_with_claim() {
  const Claim claim = claims_.front();
  const Message& message = around_.oracle.message(claim.message);
  auto operation = std::make_unique<ReceiveOperation>();
  operation->context = claim.context;
  operation->claimed = claim.message;
  operation->kind = dice_.chance(kMillion / 4) ? Kind::drop : Kind::take;
  operation->receive.claimed = true;
  operation->receive.tagged = message.tagged;
  if (operation->kind == Kind::take) operation->receive.capacity = message.length + dice_.below(2);
  if (!post(std::move(operation))) return false;
  claims_.erase(claims_.begin());
  return true;
}

void Application::cancel_something() {
  if (waiting_.empty()) return;
  cancel(waiting_[dice_.below(waiting_.size())]);
}

void Application::cancel(std::uint64_t context) {
  Receive& receive = receives_.at(context)->receive;
  if (receive.cancelled) return;
  const MemoryAccount::Scope scope(&around_.account);
  // False: its message is on its way into the buffer.
  receive.cancelled = around_.engine.cancel(as_context(context));
}

void Application::give_up_receives() {
  gave_up_ = true;
  for (const std::uint64_t context : waiting_) cancel(context);
}

/// Posts receives that take whatever must still come, and whatever has come: a message that nobody takes
/// makes its sender, and all who find no room behind it, ask again for ever.
bool Application::take_in_the_rest() {
  bool acted = false;
  while (!claims_.empty() && deal_with_claim()) acted = true;
  const std::array awaited{around_.oracle.undelivered(around_.self, false),
                           around_.oracle.undelivered(around_.self, true)};
  const bool anything = awaited[0] + awaited[1] + around_.engine.unexpected_messages() != 0;
  for (const bool tagged : {false, true}) {
    const std::size_t wanted =
        std::clamp<std::size_t>(awaited[tagged ? 1 : 0], anything ? 1 : 0, kRestAtOnce);
    while (any_posted_[tagged ? 1 : 0] < wanted && post_any(tagged)) acted = true;
  }
  // What came after the last receive had been given up needed others.
  if (gave_up_ && !anything) give_up_receives();
  return acted;
}

}  // namespace cluster::sim
