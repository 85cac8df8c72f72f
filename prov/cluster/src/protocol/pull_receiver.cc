#include "protocol/pull_receiver.h"

#include <algorithm>

#include "protocol/region_table.h"

namespace cluster::protocol {
namespace {

using Kind = IncomingRequest::Kind;
using Device = PullProgress::Device;

/// Returns how many bytes to request next. Returns 0 if nothing is to be requested now.
std::size_t next_pull(const IncomingRequest& request, const PullBudget& budget) {
  if (request.pull.source != 0) return DirectCopy::next_pull(request.pull);
  if (!budget.may_pull(request)) return 0;
  return std::min(budget.piece(), request.pull.end - request.pull.requested);
}

/// Returns the segment that requests the next piece of a message or of a peer's write.
wire::Segment pull_segment(const IncomingRequest& request, std::size_t piece) {
  return {.kind = wire::SegmentKind::pull,
          .id = request.sender_id,
          .peer_id = request.id,
          .offset = request.pull.requested,
          .total = piece};
}

/// Called when a range of a read is completely requested. Returns true if the whole read is.
bool all_requested(const ReadRequest& read) {
  return read.range.group == nullptr || --read.range.group->unrequested == 0;
}

/// Returns the segment that requests the next piece of a read. Of all segments that request parts of a read,
/// only the last has no kMore. After the target has served this last segment, it counts the read. To find the
/// last segment, the function counts the ranges that are completely requested. Therefore it must be called
/// only once for each piece.
wire::Segment request_read(ReadRequest& read, std::size_t piece) {
  const RmaRange& range = read.range;
  const bool all = read.pull.requested + piece == read.pull.end && all_requested(read);
  return {
      .kind = wire::SegmentKind::read,
      .flags = static_cast<std::uint8_t>(wire::segment_flag::kData | (all ? 0 : wire::segment_flag::kMore)),
      .peer_id = read.id,
      .offset = range.remote.address + read.pull.requested,
      .total = piece,
      .key = range.remote.key,
      .data = read.pull.requested};
}

}  // namespace

PullReceiver::PullReceiver(const Context& context, ControlSender& control, CompletionReporter& reporter)
    : context_(context),
      control_(control),
      reporter_(reporter),
      multi_(context, pool_, reporter),
      found_budget_(context.settings.pull_window, PullBudget::Size::found),
      fixed_budget_(context.settings.pull_window, PullBudget::Size::fixed) {}

void PullReceiver::start(IncomingRequest& request) {
  Channel& channel = *request.channel;
  request.pull.wanted = request.pull.end = std::min(request.total, request.capacity);
  if (request.pull.wanted == 0) {
    if (request.kind == Kind::receive) control_.send_done(channel, request.sender_id);
    return complete(request, Status::ok);
  }
  channel.incoming.push_back(request);
  if (request.kind == Kind::read) ++channel.rma.reads;
  if (channel.reads != nullptr && ask_for_device(request)) return;
  PullBudget& budget = budget_of(channel);
  budget.waiting.push_back(request);
  direct_.begin(request);
  schedule(budget);
}

/// Asks the peer to let this side's device read the next bytes. Returns false if that is not possible. All
/// bytes before them have arrived.
bool PullReceiver::ask_for_device(IncomingRequest& request) {
  Channel& channel = *request.channel;
  PullProgress& pull = request.pull;
  const std::size_t left = pull.wanted - pull.arrived;
  if (left < carrier::kDeviceMin) return false;
  const std::size_t part =
      request.kind == Kind::write_target
          ? left
          : carrier::device_piece(request.buffers(), request.base + pull.arrived, left).size();
  if (part == 0 || !channel.reads->ready()) return false;
  pull.device = Device::asked;
  pull.device_part = part;
  ++device_reads_;
  wire::Segment ask{
      .kind = wire::SegmentKind::expose, .peer_id = request.id, .offset = pull.arrived, .total = part};
  if (request.kind == Kind::read) {
    const RmaIov& remote = static_cast<const ReadRequest&>(request).range.remote;
    ask.kind = wire::SegmentKind::expose_region;
    ask.offset = remote.address + pull.arrived;
    ask.key = remote.key;
  } else {
    ask.id = request.sender_id;
  }
  control_.send(channel, ask);
  return true;
}

/// Returns the memory to which the device writes the next bytes of the request. Holds the region of a peer's
/// write. If the region has been closed, returns nothing.
Bytes PullReceiver::device_target(IncomingRequest& request) {
  const PullProgress& pull = request.pull;
  if (request.kind != Kind::write_target)
    return carrier::device_piece(request.buffers(), request.base + pull.arrived, pull.device_part);
  auto& target = static_cast<WriteTarget&>(request);
  const RmaIov& all = target.write.iov;
  const RmaIov part{all.address + pull.arrived, all.key, pull.device_part};
  const std::optional<HeldRange> held = context_.bindings.regions->hold(part, Access::write);
  if (!held) return {};
  target.held = *held;
  holding_.push_back(target);
  return {held->begin, pull.device_part};
}

/// No device writes to the region of a peer's write any more.
void PullReceiver::release_region(IncomingRequest& request) {
  if (request.kind != Kind::write_target) return;
  auto& target = static_cast<WriteTarget&>(request);
  if (!holding_.linked(target)) return;
  holding_.remove(target);
  context_.bindings.regions->release(target.held);
}

void PullReceiver::end_device_writes(std::uint64_t region) {
  for (WriteTarget* target = holding_.front(); target != nullptr;) {
    if (region != 0 && target->held.number != region) {
      target = holding_.after(*target);
      continue;
    }
    control_.send_failed(*target->channel, target->sender_id);
    abandon(*target, Status::access);
    // Other requests that used the same queue pair may have ended, too.
    target = holding_.front();
  }
}

/// Tells the target of a read that the device of this side reads nothing more. `bytes`: what it has read.
void PullReceiver::end_grant(ReadRequest& read, std::size_t bytes) {
  if (!read.granted) return;
  read.granted = false;
  const bool all = read.pull.complete() && all_requested(read);
  control_.send(*read.channel, {.kind = wire::SegmentKind::device_over,
                                .flags = all ? std::uint8_t{0} : wire::segment_flag::kMore,
                                .id = read.grant,
                                .total = bytes});
}

void PullReceiver::on_exposed(Channel& channel, const wire::Segment& segment) {
  IncomingRequest* const request = pool_.find(segment.peer_id);
  const bool known =
      request != nullptr && request->channel == &channel && request->pull.device == Device::asked;
  if (!known || (segment.total != 0 && segment.total < carrier::kDeviceMin) ||
      segment.total > request->pull.device_part)
    return context_.refuse_segment();
  if (segment.total == 0 || channel.reads == nullptr) return device_read(channel, request->id, 0);
  request->pull.device_part = segment.total;
  if (request->kind == Kind::read) {
    auto& read = static_cast<ReadRequest&>(*request);
    read.grant = segment.id;
    read.granted = true;
  }
  carrier::ExposedMemory from{.address = segment.offset, .key = segment.key, .checksum = {}};
  if (segment.has_data()) from.checksum = static_cast<std::uint32_t>(segment.data);
  const Bytes into = device_target(*request);
  if (into.empty() || !channel.reads->read(request->id, from, into))
    return device_read(channel, request->id, 0);
  request->pull.device = Device::reading;
}

/// Continues with the next piece of memory, if there is one. If the device has failed, pulls the bytes that
/// it has not read.
void PullReceiver::device_read(Channel& channel, std::uint32_t id, std::size_t bytes) {
  IncomingRequest* const request = pool_.find(id);
  if (request == nullptr || request->channel != &channel || request->pull.device == Device::none) return;
  request->pull.device = Device::none;
  --device_reads_;
  release_region(*request);
  const bool whole_part = bytes != 0 && bytes == request->pull.device_part;
  request->pull.arrived += bytes;
  request->pull.requested = request->pull.arrived;
  context_.counters.bytes_read += bytes;
  if (request->kind == Kind::read) end_grant(static_cast<ReadRequest&>(*request), bytes);
  if (request->pull.complete()) {
    Counters& counters = context_.counters;
    ++(request->kind == Kind::receive ? counters.device_reads
       : request->kind == Kind::read  ? counters.device_gets
                                      : counters.device_puts);
    return finish(*request);
  }
  if (whole_part && channel.reads != nullptr && ask_for_device(*request)) return;
  ++context_.counters.device_reads_failed;
  PullBudget& budget = budget_of(channel);
  budget.waiting.push_back(*request);
  schedule(budget);
}

/// Makes sure that no device writes to the buffer of a request that ends.
void PullReceiver::end_device(IncomingRequest& request) {
  if (request.pull.device == Device::reading && request.channel->reads != nullptr)
    request.channel->reads->abandon(request.id);
  release_region(request);
  request.pull.device = Device::none;
  --device_reads_;
}

/// Distributes the available budget among the waiting requests. A request that has got a pull and needs more
/// goes to the end of the list.
void PullReceiver::schedule(PullBudget& budget) {
  IncomingRequest* request = budget.waiting.front();
  while (request != nullptr && budget.available()) {
    IncomingRequest* next = budget.waiting.after(*request);
    if (const std::size_t piece = next_pull(*request, budget)) {
      wire::Segment pull = request->kind == Kind::read
                               ? request_read(static_cast<ReadRequest&>(*request), piece)
                               : pull_segment(*request, piece);
      if (request->pull.source != 0) DirectCopy::offer_target(*request, pull);
      budget.pulled(*request, piece);
      budget.waiting.remove(*request);
      if (request->pull.requested < request->pull.end) {
        budget.waiting.push_back(*request);
        if (next == nullptr) next = request;
      }
      control_.send(*request->channel, pull);
    }
    request = next;
  }
  if (request != nullptr) budget.mark_limited();
}

/// Returns the request to which the segment's `bytes` bytes belong. Returns null if this side has not
/// requested these bytes, or if the request has fewer bytes in flight.
IncomingRequest* PullReceiver::find_requested(const Channel& channel, const wire::Segment& segment,
                                              std::size_t bytes) {
  IncomingRequest* const request = pool_.find(segment.peer_id);
  if (request == nullptr || request->channel != &channel || bytes == 0) return nullptr;
  const PullProgress& pull = request->pull;
  const bool inside = segment.offset <= pull.requested && bytes <= pull.requested - segment.offset;
  return inside && bytes <= pull.in_flight() ? request : nullptr;
}

void PullReceiver::on_bulk(Channel& channel, const wire::Segment& segment, ConstBytes payload,
                           const ArrivalInfo& info) {
  wire::RunView one;
  one.count = 1;
  one.segment = segment;
  one.segment.length = static_cast<std::uint32_t>(payload.size());
  one.first = payload.data();
  on_bulk_run(channel, one, info);
}

Bytes PullReceiver::place_of_run(const Channel& channel, const wire::RunView& run) {
  const IncomingRequest* const request = find_requested(channel, run.segment, run.size());
  if (request == nullptr || (request->kind != Kind::receive && request->kind != Kind::read)) return {};
  return contiguous(request->buffers(), request->base + run.segment.offset, run.size());
}

void PullReceiver::on_bulk_run(Channel& channel, const wire::RunView& run, const ArrivalInfo& info) {
  const std::size_t offset = run.segment.offset;
  IncomingRequest* const request = find_requested(channel, run.segment, run.size());
  if (request == nullptr) return context_.refuse_segment();
  const std::size_t last = offset + run.size() - run.segment.length;
  if (run.stored || store(*request, offset, run)) return account(*request, last, run.size(), info);
  control_.send_failed(channel, request->sender_id);
  abandon(*request, Status::access);
  schedule(budget_of(channel));
}

/// Stores the bytes. Returns false if the request is a peer's write and its region has been closed.
bool PullReceiver::store(const IncomingRequest& request, std::size_t offset, const wire::RunView& run) {
  const std::size_t part = run.segment.length;
  if (request.kind != Kind::write_target) {
    for (std::size_t i = 0; i < run.count; ++i)
      scatter_short(request.buffers(), request.base + offset + i * part, run.payload(i));
    return true;
  }
  const RmaIov& range = static_cast<const WriteTarget&>(request).write.iov;
  return context_.bindings.regions->with({range.address + offset, range.key, run.size()}, Access::write,
                                         [&](std::byte* target, const MemoryRegion&) {
                                           for (std::size_t i = 0; i < run.count; ++i)
                                             std::memcpy(target + i * part, run.payload(i).data(), part);
                                         });
}

void PullReceiver::on_placed(Channel& channel, const wire::Segment& segment, const ArrivalInfo& info) {
  IncomingRequest* const request = find_requested(channel, segment, segment.total);
  if (request == nullptr || !DirectCopy::active(*request)) return context_.refuse_segment();
  account(*request, segment.offset, segment.total, info);
}

void PullReceiver::on_read_failed(Channel& channel, const wire::Segment& segment) {
  IncomingRequest* const request = pool_.find(segment.peer_id);
  const bool known = request != nullptr && request->channel == &channel && request->kind == Kind::read &&
                     request->pull.requested > 0;
  if (!known) return context_.refuse_segment();
  abandon(*request, Status::access);
  schedule(budget_of(channel));
}

/// Counts pulled bytes that are now stored.
void PullReceiver::account(IncomingRequest& request, std::size_t offset, std::size_t bytes,
                           const ArrivalInfo& info) {
  PullBudget& budget = budget_of(*request.channel);
  budget.arrived(request, offset, bytes, info);
  if (request.pull.complete()) finish(request);
  if (!budget.waiting.empty()) schedule(budget);
}

void PullReceiver::copy_in() {
  direct_.each_copyable([this](IncomingRequest& request) {
    PullBudget& budget = budget_of(*request.channel);
    auto& waiting = budget.waiting;
    if (!DirectCopy::copy_in(request)) {
      if (!waiting.linked(request)) waiting.push_back(request);
      return schedule(budget);
    }
    if (request.pull.requested == request.pull.end && waiting.linked(request)) waiting.remove(request);
    if (request.pull.complete()) finish(request);
  });
}

/// Completes a request whose wanted bytes are all in place.
void PullReceiver::finish(IncomingRequest& request) {
  Channel& channel = *request.channel;
  if (request.kind == Kind::write_target) report_written(static_cast<const WriteTarget&>(request));
  if (request.kind != Kind::read) control_.send_done(channel, request.sender_id);
  complete(request, Status::ok);
}

void PullReceiver::report_written(const WriteTarget& target) {
  const auto report = [&](std::byte*, const MemoryRegion& region) {
    reporter_.written_by_peer(*target.channel, target.write, &region);
  };
  if (!context_.bindings.regions->with(target.write.iov, Access::write, report))
    reporter_.written_by_peer(*target.channel, target.write, nullptr);
}

void PullReceiver::abandon(IncomingRequest& request, Status status) {
  PullBudget& budget = budget_of(*request.channel);
  budget.given_up(*request.channel, request.pull.in_flight());
  if (budget.waiting.linked(request)) budget.waiting.remove(request);
  complete(request, status);
}

void PullReceiver::complete(IncomingRequest& request, Status status) {
  if (request.kind == Kind::multi_recv_buffer)
    return multi_.close(static_cast<MultiRecvBuffer&>(request), status);
  if (request.channel != nullptr && request.channel->incoming.linked(request)) {
    request.channel->incoming.remove(request);
    if (request.kind == Kind::read) --request.channel->rma.reads;
    if (request.kind == Kind::write_target) --request.channel->rma.write_targets;
  }
  direct_.end(request);
  if (request.pull.device != Device::none) [[unlikely]]
    end_device(request);
  if (request.kind == Kind::receive) {
    auto& receive = static_cast<RecvRequest&>(request);
    if (receive.buffer != nullptr) return multi_.complete_piece(receive, status);
    reporter_.received(receive, status);
  } else if (request.kind == Kind::read) {
    reporter_.rma_completed(Completion::Kind::read, static_cast<const ReadRequest&>(request).range.group,
                            request.context, request.report, status, *request.channel);
  }
  pool_.release(request);
}

void PullReceiver::reschedule() {
  schedule(found_budget_);
  schedule(fixed_budget_);
}

}  // namespace cluster::protocol
