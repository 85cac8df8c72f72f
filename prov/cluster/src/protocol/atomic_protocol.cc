#include "protocol/atomic_protocol.h"

#include "base/end_of_memory.h"
#include "protocol/atomic_arithmetic.h"
#include "protocol/region_table.h"

namespace cluster::protocol {
namespace {

constexpr std::size_t kPartsMax = kResponsesMax / 2;

Access access_for(const wire::AtomicCode& code) {
  if (code.op == wire::AtomicOp::read) return Access::read;
  return code.fetch ? Access::update : Access::write;
}

/// Posts the previous values of one part. `address`: the target address that the peer's segment gave for the
/// part.
bool post_fetched(Carrier& carrier, std::uint32_t sender_id, std::uint64_t address, ConstBytes before) {
  return post_copy(carrier, {.kind = wire::SegmentKind::fetched, .id = sender_id, .offset = address}, before);
}

}  // namespace

Status AtomicProtocol::post(Channel& channel, const AtomicRmaOp& op) {
  if (outgoing_.left() < op.remote.size()) return Status::again;
  outgoing_.each_range(op, [&](const RmaRange& range) { begin(channel, op, range); });
  if (!channel.tx.empty()) control_.mark_busy(channel);
  return Status::ok;
}

void AtomicProtocol::begin(Channel& channel, const AtomicRmaOp& op, const RmaRange& range) {
  auto& request = outgoing_.acquire<AtomicRequest>(channel, op);
  request.code = op.code;
  request.operands.add(op.slices);
  request.compares.add(op.compares);
  request.results.add(op.results);
  request.base = range.base;
  request.length = range.remote.length;
  request.range = range;
  if (outgoing_.enqueue(request)) advance(request);
  // The request still exists, because only an answer can complete it.
  if (!op.inject || request.state != OutgoingRequest::State::queued) return;
  // The operation has begun, so the application's call can no longer fail. The completion reports the error
  // instead.
  if (!enough_memory_for([&] { keep_copy(request, op); })) outgoing_.complete(request, Status::no_memory);
}

/// Copies operands and comparands of an injected operation that has to wait in the queue.
void AtomicProtocol::keep_copy(AtomicRequest& request, const AtomicRmaOp& op) {
  const std::size_t operands = op.slices.empty() ? 0 : request.length;
  const std::size_t compares = op.compares.empty() ? 0 : request.length;
  request.copy = std::make_unique_for_overwrite<std::byte[]>(operands + compares);
  std::byte* const copy = request.copy.get();
  Gather{op.slices, request.base, operands}.copy_to(copy);
  Gather{op.compares, request.base, compares}.copy_to(copy + operands);
  request.operands.replace({copy, operands});
  request.compares.replace({copy + operands, compares});
  request.base = 0;
}

bool AtomicProtocol::advance(AtomicRequest& request) {
  Channel& channel = *request.channel;
  std::array<std::byte, 2 * wire::kAtomicPart> bytes;
  while (request.posted < request.length) {
    if (channel.rma.atomic_parts >= kPartsMax) return false;
    const wire::Segment segment{.kind = wire::SegmentKind::atomic,
                                .flags = request.range.last ? std::uint8_t{0} : wire::segment_flag::kMore,
                                .detail = request.code.packed(),
                                .id = request.id,
                                .offset = request.range.remote.address + request.posted,
                                .total = request.length - request.posted,
                                .key = request.range.remote.key};
    const std::size_t part = wire::atomic_part(segment.total);
    const std::size_t from = request.base + request.posted;
    const std::size_t arrays = request.code.operands();
    if (arrays > 0) Gather{request.operands.all(), from, part}.copy_to(bytes.data());
    if (arrays > 1) Gather{request.compares.all(), from, part}.copy_to(bytes.data() + part);
    if (!post_copy(*channel.carrier, segment, {bytes.data(), arrays * part})) return false;
    ++request.unanswered;
    ++channel.rma.atomic_parts;
    request.posted += part;
  }
  OutgoingRequests::leave_queue(request, OutgoingRequest::State::posted);
  return true;
}

void AtomicProtocol::on_request(Channel& channel, const wire::Segment& segment, ConstBytes payload) {
  wire::AtomicCode code;
  const bool valid = wire::AtomicCode::unpack(segment.detail, code) && supported(code.op, code.type) &&
                     payload.size() == segment.length && channel.rma.response_count < kResponsesMax;
  if (!valid) return control_.send_failed(channel, segment.id);
  std::array<std::byte, wire::kAtomicPart> before;
  const std::size_t part = wire::atomic_part(segment.total);
  const auto change = [&](std::byte* target, const MemoryRegion& region) {
    const std::byte* const operands = payload.empty() ? nullptr : payload.data();
    perform(code, {target, operands, code.compares() ? operands + part : nullptr, before.data(), part});
    if (part == segment.total && !segment.more())
      reporter_.accessed_by_peer(code.op == wire::AtomicOp::read ? Access::read : Access::write, &region);
  };
  const RmaIov rest{segment.offset, segment.key, segment.total};
  const bool allowed = context_.may_access(channel, rest.key) &&
                       context_.bindings.regions->with(rest, access_for(code), change);
  if (!allowed) {
    context_.refuse_access(channel.rma.refused);
    return control_.send_failed(channel, segment.id);
  }
  if (!code.fetch) return control_.send_done(channel, segment.id);
  respond(channel, segment, {before.data(), part});
}

/// Sends the previous values, or keeps them if the carrier has no space.
void AtomicProtocol::respond(Channel& channel, const wire::Segment& part, ConstBytes before) {
  if (channel.carrier == nullptr) return;
  if (post_fetched(*channel.carrier, part.id, part.offset, before)) return control_.mark_pending(channel);
  AtomicResponse* const response = outgoing_.acquire_response<AtomicResponse>(channel);
  if (response == nullptr) return control_.send_failed(channel, part.id);
  response->sender_id = part.id;
  response->address = part.offset;
  response->length = before.size();
  response->copy = std::make_unique_for_overwrite<std::byte[]>(before.size());
  std::memcpy(response->copy.get(), before.data(), before.size());
  control_.mark_busy(channel);
}

bool AtomicProtocol::stream(AtomicResponse& response) {
  const ConstBytes before(response.copy.get(), response.length);
  if (!post_fetched(*response.channel->carrier, response.sender_id, response.address, before)) return false;
  outgoing_.complete(response, Status::ok);
  return true;
}

void AtomicProtocol::on_fetched(Channel& channel, const wire::Segment& segment, ConstBytes payload) {
  OutgoingRequest* const found = outgoing_.find(channel, segment.id);
  if (found == nullptr || found->kind != OutgoingRequest::Kind::atomic) return context_.refuse_segment();
  auto& request = static_cast<AtomicRequest&>(*found);
  const std::uint64_t at = segment.offset - request.range.remote.address;
  const bool valid = request.unanswered > 0 && request.code.fetch && at < request.posted &&
                     payload.size() <= request.posted - at;
  if (!valid) return context_.refuse_segment();
  scatter(request.results.all(), request.range.base + at, payload);
  answered(request, Status::ok);
}

void AtomicProtocol::answered(AtomicRequest& request, Status status) {
  --request.unanswered;
  --request.channel->rma.atomic_parts;
  if (status != Status::ok) request.status = status;
  if (request.status != Status::ok && request.state == OutgoingRequest::State::queued) {
    OutgoingRequests::leave_queue(request, OutgoingRequest::State::posted);
  }
  if (request.state == OutgoingRequest::State::queued || request.unanswered > 0) return;
  outgoing_.complete(request, request.status);
}

}  // namespace cluster::protocol
