// Remote atomics. They are executed by the target alone, under the lock of its regions, in the order of
// messages and small writes: whoever they come from and by whichever carrier, one after another. The
// flow's "exactly once" is theirs, too.
//
// An operation travels in parts of whole elements (wire/atomic.h); each is answered, with what was
// there if that was asked for. Every part says how much of the operation is left, so the first one is
// refused if the last one would be, and then nothing is changed at all. At most kPartsMax parts of one
// side are unanswered: that bounds what the other must keep if its carrier has no room for answers.
#include "protocol/atomic_arithmetic.h"
#include "protocol/messenger.h"

namespace cluster::protocol {
namespace {

constexpr std::size_t kPartsMax = kResponsesMax / 2;

Access access_for(const wire::AtomicCode& code) {
  if (code.op == wire::AtomicOp::read) return Access::read;
  return code.fetch ? Access::update : Access::write;
}

}  // namespace

Status Messenger::atomic(Channel& channel, const AtomicRmaOp& order) {
  if (tx_size_left() < order.remote.size()) return Status::again;
  RmaGroup* group = group_for(order);
  std::size_t base = 0;
  for (const RmaIov& remote : order.remote) {
    atomic_one(channel, order, remote, base, group);
    base += remote.length;
  }
  if (channel.has_work()) mark_busy(channel);
  return Status::ok;
}

void Messenger::atomic_one(Channel& channel, const AtomicRmaOp& order, const RmaIov& remote, std::size_t base,
                           RmaGroup* group) {
  SendRequest& request = *sends_.acquire();
  AtomicCall& call = *atomics_.acquire();
  call.code = order.code;
  for (const ConstBytes& slice : order.compares) call.compares[call.compare_count++] = slice;
  for (const Bytes& slice : order.results) call.results[call.result_count++] = slice;
  call.result_base = base;
  request.verb = SendRequest::Verb::atomic;
  request.atomic = &call;
  request.channel = &channel;
  request.context = order.context;
  request.slices.add(order.slices);
  request.base = base;
  request.length = remote.length;
  request.remote = remote;
  request.more = &remote != &order.remote.back();
  request.report = order.report;
  request.fence = order.fence;
  request.group = group;
  channel.sends.push_back(request);
  channel.waiting.push_back(request);
  const std::uint32_t id = request.id;
  if (channel.waiting.front() == &request) advance(request);
  if (order.inject && sends_.find(id) == &request && request.state == SendRequest::State::queued) {
    keep_injected_atomic(request, order);
  }
}

/// As keep_injected(), with the comparands behind the operands.
void Messenger::keep_injected_atomic(SendRequest& request, const AtomicRmaOp& order) {
  AtomicCall& call = *request.atomic;
  const std::size_t operands = order.slices.empty() ? 0 : request.length;
  const std::size_t compares = order.compares.empty() ? 0 : request.length;
  request.copy = std::make_unique_for_overwrite<std::byte[]>(operands + compares);
  std::byte* const copy = request.copy.get();
  Gather{order.slices, request.base, operands}.copy_to(copy);
  Gather{order.compares, request.base, compares}.copy_to(copy + operands);
  request.slices.replace({copy, operands});
  call.compares[0] = {copy + operands, compares};
  call.compare_count = 1;
  request.base = 0;
}

bool Messenger::advance_atomic(SendRequest& request) {
  Channel& channel = *request.channel;
  const AtomicCall& call = *request.atomic;
  std::array<std::byte, 2 * wire::kAtomicPart> bytes;
  while (request.posted < request.length) {
    if (channel.atomic_parts >= kPartsMax) return false;
    wire::Segment segment;
    segment.kind = wire::SegmentKind::atomic;
    segment.flags = request.more ? wire::segment_flag::kMore : 0;
    segment.detail = call.code.packed();
    segment.id = request.id;
    segment.offset = request.remote.address + request.posted;
    segment.key = request.remote.key;
    segment.total = request.length - request.posted;
    const std::size_t part = wire::atomic_part(segment.total);
    const std::size_t from = request.base + request.posted;
    const std::size_t arrays = call.code.operands();
    if (arrays > 0) Gather{request.payload(), from, part}.copy_to(bytes.data());
    if (arrays > 1) {
      Gather{{call.compares.data(), call.compare_count}, from, part}.copy_to(bytes.data() + part);
    }
    const ConstBytes payload(bytes.data(), arrays * part);
    segment.length = static_cast<std::uint32_t>(payload.size());
    if (!channel.carrier->post(segment, {{&payload, 1}, 0, payload.size()}, PayloadMode::copy, 0))
      return false;
    ++request.tokens;
    ++channel.atomic_parts;
    request.posted += part;
  }
  request.state = SendRequest::State::posted;
  channel.waiting.remove(request);
  return true;
}

void Messenger::on_atomic(Channel& channel, const wire::Segment& segment, ConstBytes payload) {
  wire::AtomicCode code;
  const bool lawful = wire::AtomicCode::unpack(segment.detail, code) && supported(code.op, code.type) &&
                      payload.size() == segment.length && channel.serves < kResponsesMax;
  if (!lawful) return refuse_put(channel, segment.id);
  std::array<std::byte, wire::kAtomicPart> before;
  const std::size_t part = wire::atomic_part(segment.total);
  const auto change = [&](std::byte* target, const MemoryRegion&) {
    const std::byte* const operands = payload.empty() ? nullptr : payload.data();
    perform(code, {target, operands, code.compares() ? operands + part : nullptr, before.data(), part});
  };
  const bool allowed =
      bindings_.regions != nullptr &&
      bindings_.regions->with(segment.key, segment.offset, segment.total, access_for(code), change);
  if (!allowed) return refuse_put(channel, segment.id);
  if (part == segment.total && !segment.more()) was_changed(segment, code.fetch);
  if (!code.fetch) return confirm(channel, segment.id);
  answer(channel, segment, {before.data(), part});
}

/// The last part of an atomic has been executed, that of its last range: whoever counts them is told.
void Messenger::was_changed(const wire::Segment& segment, bool fetch) {
  Counter* const counter = fetch ? bindings_.remote_read_counter : bindings_.remote_write_counter;
  if (counter != nullptr) counter->count(Status::ok);
  bindings_.regions->with(segment.key, segment.offset, segment.total, fetch ? Access::read : Access::write,
                          [fetch](std::byte*, const MemoryRegion& region) {
                            Counter* const bound = fetch ? region.reads : region.writes;
                            if (bound != nullptr) bound->count(Status::ok);
                          });
}

/// Sends back what was there; if there is no room now, it is kept.
void Messenger::answer(Channel& channel, const wire::Segment& part, ConstBytes before) {
  if (channel.carrier == nullptr) return;
  wire::Segment segment;
  segment.kind = wire::SegmentKind::fetched;
  segment.id = part.id;
  segment.offset = part.offset;
  segment.length = static_cast<std::uint32_t>(before.size());
  if (channel.carrier->post(segment, {{&before, 1}, 0, before.size()}, PayloadMode::copy, 0))
    return speak(channel);
  SendRequest* const kept = sends_.acquire();
  if (kept == nullptr) return refuse_put(channel, part.id);
  SendRequest& request = *kept;
  request.verb = SendRequest::Verb::serve;
  request.channel = &channel;
  request.receiver_id = part.id;
  request.remote.address = part.offset;
  request.length = before.size();
  request.copy = std::make_unique_for_overwrite<std::byte[]>(before.size());
  std::memcpy(request.copy.get(), before.data(), before.size());
  ++channel.serves;
  ++serves_;
  channel.serving.push_back(request);
  channel.streaming.push_back(request);
  mark_busy(channel);
}

bool Messenger::serve_answer(SendRequest& request) {
  const ConstBytes before(request.copy.get(), request.length);
  wire::Segment segment;
  segment.kind = wire::SegmentKind::fetched;
  segment.id = request.receiver_id;
  segment.offset = request.remote.address;
  segment.length = static_cast<std::uint32_t>(before.size());
  if (!request.channel->carrier->post(segment, {{&before, 1}, 0, before.size()}, PayloadMode::copy, 0))
    return false;
  complete(request, Status::ok);
  return true;
}

void Messenger::on_fetched(Channel& channel, const wire::Segment& segment, ConstBytes payload) {
  SendRequest* request = sends_.find(segment.id);
  const bool known = request != nullptr && request->channel == &channel && request->tokens > 0 &&
                     request->verb == SendRequest::Verb::atomic && request->atomic->code.fetch;
  const std::uint64_t at = known ? segment.offset - request->remote.address : 0;
  const bool sane = known && at < request->posted && payload.size() <= request->posted - at;
  if (!sane) return refuse();
  const AtomicCall& call = *request->atomic;
  scatter({call.results.data(), call.result_count}, call.result_base + at, payload);
  answered(*request, Status::ok);
}

/// One part has been dealt with. After a refusal the others need not be sent.
void Messenger::answered(SendRequest& request, Status status) {
  Channel& channel = *request.channel;
  --request.tokens;
  --channel.atomic_parts;
  if (status != Status::ok) request.status = status;
  if (request.status != Status::ok && request.state == SendRequest::State::queued) {
    channel.waiting.remove(request);
    request.state = SendRequest::State::posted;
  }
  settle(request);
}

}  // namespace cluster::protocol
