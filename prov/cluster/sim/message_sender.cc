#include "sim/message_sender.h"

#include <algorithm>
#include <array>

#include "sim/allocation_meter.h"
#include "sim/rma_oracle.h"
#include "sim/split.h"
#include "wire/control.h"

namespace cluster::sim {
namespace {

using protocol::CompletionLevel;

/// How many of a million datagrams are too long.
constexpr std::uint32_t kTooLong = 20'000;

}  // namespace

Message MessageSender::draw_message(HostNumber to) {
  const WorkloadPlan& plan = env_.plan;
  Message shape;
  shape.from = env_.self;
  shape.to = to;
  shape.length = draw_size(plan.sizes, env_.thresholds, random_);
  shape.datagram = plan.datagrams;
  if (shape.datagram) shape.length = std::min(shape.length, datagram_max(env_.thresholds));
  shape.tagged = random_.chance(plan.tagged);
  shape.injected = shape.length <= protocol::kInjectMax && random_.chance(plan.injected);
  shape.reported = !random_.chance(plan.unreported);
  // A receiver tells messages apart by content, tag or data. If an unreported message is only announced, it
  // shows no content until it is received.
  const bool has_identity = shape.tagged || (shape.length >= kNumberedFrom && shape.reported);
  shape.has_data = random_.chance(plan.with_data) || !has_identity;
  if (random_.chance(plan.buffer_free)) shape.completion_level = CompletionLevel::inject;
  if (random_.chance(plan.delivered)) shape.completion_level = CompletionLevel::delivery;
  if (shape.datagram) shape.completion_level = CompletionLevel::inject;
  return shape;
}

void MessageSender::compose(HostNumber to) {
  if (env_.plan.datagrams && random_.chance(kTooLong)) send_too_long(to);
  const Message& message = env_.oracle.compose(draw_message(to));
  Buffer buffer;
  buffer.length = message.length;
  buffer.bytes = std::make_unique_for_overwrite<std::byte[]>(message.length);
  fill_content(message.number, {buffer.bytes.get(), message.length});
  retry_ = message.number;
  buffers_.emplace(message.number, std::move(buffer));
}

bool MessageSender::post() {
  const Message message = env_.oracle.message(retry_);
  Buffer& buffer = buffers_.at(message.number);
  std::array<ConstBytes, protocol::kIovMax> slices;
  const std::size_t count =
      split(random_, env_.plan.scattered_buffers, ConstBytes{buffer.bytes.get(), buffer.length}, slices);
  protocol::SendOp op;
  op.slices = {slices.data(), count};
  op.length = message.length;
  op.to = message.to;
  op.context = reinterpret_cast<void*>(message.number);
  op.tag = message.tag;
  op.data = message.data;
  op.tagged = message.tagged;
  op.has_data = message.has_data;
  op.inject = message.injected;
  op.report = message.reported;
  op.more = random_.chance(env_.plan.more);
  op.completion_level = message.completion_level;
  Status status;
  {
    const AllocationMeter::Scope scope(&env_.memory);
    status = sent_short(op) ? Status::ok : env_.engine.send(op);
  }
  env_.trace.line("host %u sends message %llu to %u, %zu bytes: %s", env_.self,
                  static_cast<unsigned long long>(message.number), message.to, message.length,
                  describe(status));
  if (status == Status::again) return false;
  if (status != Status::ok) throw SafetyFailure(std::string("a send was refused: ") + describe(status));
  retry_ = 0;
  env_.oracle.accepted(message.number);
  env_.oracle.message(message.number).remote_before = env_.rma.accepted_before(message.from, message.to);
  if (message.injected) release(buffer);
  if (message.reported) ++under_way_;
  return true;
}

/// As in api/, a message without options may take the frame lane.
bool MessageSender::sent_short(const protocol::SendOp& op) {
  const bool plain = op.slices.size() == 1 && !op.more && op.length <= protocol::ShortSend::kBytesMax &&
                     op.completion_level != CompletionLevel::delivery;
  if (!plain || env_.plan.datagrams) return false;
  return env_.engine.take_frame_lane(
      op.to, protocol::ShortSend{.header = {.length = static_cast<std::uint32_t>(op.length),
                                            .tagged = op.tagged,
                                            .has_data = op.has_data,
                                            .tag = op.tag,
                                            .data = op.data},
                                 .payload = op.slices[0].data(),
                                 .context = op.context,
                                 .report = op.report,
                                 .completion_level = op.completion_level});
}

/// Checks that a datagram that does not fit into a frame is refused.
void MessageSender::send_too_long(HostNumber to) {
  const std::vector<std::byte> bytes(datagram_max(env_.thresholds) + random_.between(1, 1000));
  const ConstBytes whole(bytes);
  protocol::SendOp op;
  op.slices = {&whole, 1};
  op.length = whole.size();
  op.to = to;
  const AllocationMeter::Scope scope(&env_.memory);
  const Status status = env_.engine.send(op);
  if (status == Status::too_big) return;
  throw SafetyFailure(std::string("a datagram that is too long was not refused: ") + describe(status));
}

void MessageSender::complete(const protocol::Completion& completion) {
  const auto number = reinterpret_cast<MessageNumber>(completion.context);
  env_.trace.line("host %u send of message %llu ended: %s", env_.self,
                  static_cast<unsigned long long>(number), describe(completion.status));
  env_.oracle.send_ended(completion);
  if (env_.oracle.message(number).from_incarnation != env_.incarnation) {
    throw SafetyFailure("a send of an earlier incarnation completed");
  }
  const auto found = buffers_.find(number);
  release(found->second);
  buffers_.erase(found);
  if (env_.oracle.message(number).reported) --under_way_;
}

/// The library has given the buffer back.
void MessageSender::release(Buffer& buffer) {
  quarantine_.take(std::move(buffer.bytes), buffer.length);
  buffer.length = 0;
}

}  // namespace cluster::sim
