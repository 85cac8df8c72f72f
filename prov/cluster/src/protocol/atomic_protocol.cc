#include "protocol/atomic_protocol.h"

#include "protocol/atomic_arithmetic.h"
#include "protocol/region_table.h"

namespace cluster::protocol {
namespace {

constexpr std::size_t kPartsMax = kResponsesMax / 2;

Access access_for(const wire::AtomicCode& code) {
  if (code.op == wire::AtomicOp::read) return Access::read;
  return code.fetch ? Access::update : Access::write;
}

/// The previous values of the part at `address` of the peer's request.
wire::Segment fetched_segment(std::uint32_t sender_id, std::uint64_t address, std::size_t length) {
  wire::Segment segment;
  segment.kind = wire::SegmentKind::fetched;
  segment.id = sender_id;
  segment.offset = address;
  segment.length = static_cast<std::uint32_t>(length);
  return segment;
}

}  // namespace

Status AtomicProtocol::post(Channel& channel, const AtomicRmaOp& op) {
  if (outgoing_.left() < op.remote.size()) return Status::again;
  RmaGroup* const group = reporter_.group_for(op);
  std::size_t base = 0;
  for (const RmaIov& remote : op.remote) {
    begin(channel, op, remote, base, group);
    base += remote.length;
  }
  if (!channel.tx.empty()) control_.mark_busy(channel);
  return Status::ok;
}

void AtomicProtocol::begin(Channel& channel, const AtomicRmaOp& op, const RmaIov& remote, std::size_t base,
                           RmaGroup* group) {
  AtomicRequest& request = outgoing_.acquire<AtomicRequest>(channel);
  request.context = op.context;
  request.code = op.code;
  request.operands.add(op.slices);
  request.compares.add(op.compares);
  request.results.add(op.results);
  request.base = request.result_base = base;
  request.length = remote.length;
  request.remote = remote;
  request.more = &remote != &op.remote.back();
  request.report = op.report;
  request.fence = op.fence;
  request.group = group;
  if (outgoing_.enqueue(request)) advance(request);
  // Nothing has completed it yet: that takes an answer.
  if (op.inject && request.state == OutgoingRequest::State::queued) keep_copy(request, op);
}

/// Copies operands and comparands of an injected operation that has to queue.
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
    wire::Segment segment;
    segment.kind = wire::SegmentKind::atomic;
    segment.flags = request.more ? wire::segment_flag::kMore : 0;
    segment.detail = request.code.packed();
    segment.id = request.id;
    segment.offset = request.remote.address + request.posted;
    segment.key = request.remote.key;
    segment.total = request.length - request.posted;
    const std::size_t part = wire::atomic_part(segment.total);
    const std::size_t from = request.base + request.posted;
    const std::size_t arrays = request.code.operands();
    if (arrays > 0) Gather{request.operands.all(), from, part}.copy_to(bytes.data());
    if (arrays > 1) Gather{request.compares.all(), from, part}.copy_to(bytes.data() + part);
    const ConstBytes payload(bytes.data(), arrays * part);
    segment.length = static_cast<std::uint32_t>(payload.size());
    const Gather gather{{&payload, 1}, 0, payload.size()};
    if (!channel.carrier->post(segment, gather, PayloadMode::copy, 0)) return false;
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
  if (!valid) return control_.deny(channel, segment.id);
  std::array<std::byte, wire::kAtomicPart> before;
  const std::size_t part = wire::atomic_part(segment.total);
  const auto change = [&](std::byte* target, const MemoryRegion&) {
    const std::byte* const operands = payload.empty() ? nullptr : payload.data();
    perform(code, {target, operands, code.compares() ? operands + part : nullptr, before.data(), part});
  };
  const RmaIov rest{segment.offset, segment.key, segment.total};
  RegionTable* const regions = context_.bindings.regions;
  const bool allowed = regions != nullptr && regions->with(rest, access_for(code), change);
  if (!allowed) return control_.deny(channel, segment.id);
  if (part == segment.total && !segment.more()) reporter_.atomic_by_peer(rest, code.fetch);
  if (!code.fetch) return control_.confirm(channel, segment.id);
  respond(channel, segment, {before.data(), part});
}

/// Sends the previous values, or keeps them if the carrier has no free bytes.
void AtomicProtocol::respond(Channel& channel, const wire::Segment& part, ConstBytes before) {
  if (channel.carrier == nullptr) return;
  const wire::Segment segment = fetched_segment(part.id, part.offset, before.size());
  if (channel.carrier->post(segment, {{&before, 1}, 0, before.size()}, PayloadMode::copy, 0)) {
    return control_.mark_pending(channel);
  }
  AtomicResponse* const response = outgoing_.acquire_response<AtomicResponse>(channel);
  if (response == nullptr) return control_.deny(channel, part.id);
  response->sender_id = part.id;
  response->address = part.offset;
  response->length = before.size();
  response->copy = std::make_unique_for_overwrite<std::byte[]>(before.size());
  std::memcpy(response->copy.get(), before.data(), before.size());
  control_.mark_busy(channel);
}

bool AtomicProtocol::stream(AtomicResponse& response) {
  const ConstBytes before(response.copy.get(), response.length);
  const wire::Segment segment = fetched_segment(response.sender_id, response.address, before.size());
  const Gather payload{{&before, 1}, 0, before.size()};
  if (!response.channel->carrier->post(segment, payload, PayloadMode::copy, 0)) return false;
  outgoing_.complete(response, Status::ok);
  return true;
}

void AtomicProtocol::on_fetched(Channel& channel, const wire::Segment& segment, ConstBytes payload) {
  OutgoingRequest* const found = outgoing_.find(channel, segment.id);
  if (found == nullptr || found->kind != OutgoingRequest::Kind::atomic) return context_.refuse_segment();
  auto& request = static_cast<AtomicRequest&>(*found);
  const std::uint64_t at = segment.offset - request.remote.address;
  const bool valid = request.unanswered > 0 && request.code.fetch && at < request.posted &&
                     payload.size() <= request.posted - at;
  if (!valid) return context_.refuse_segment();
  scatter(request.results.all(), request.result_base + at, payload);
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
