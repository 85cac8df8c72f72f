#include "sim/multi_receiver.h"

#include <algorithm>
#include <string>

#include "sim/allocation_meter.h"
#include "sim/guard.h"

namespace cluster::sim {
namespace {

/// Marks the contexts of these buffers.
constexpr std::uint64_t kMultiContext = std::uint64_t{1} << 51;
constexpr std::byte kUnused{0xA6};
constexpr std::byte kTaken{0xA7};
/// Some buffers must be released once a drawn number of bytes, at most this, is used. So a few small
/// messages reach the limit exactly.
constexpr std::size_t kFewBytes = 256;

}  // namespace

bool MultiReceiver::owns(const protocol::Completion& completion) {
  return (reinterpret_cast<std::uint64_t>(completion.context) & kMultiContext) != 0;
}

void MultiReceiver::fail(const Buffer& buffer, const char* what) {
  throw SafetyFailure("a buffer for many messages of host " + std::to_string(buffer.receive.host) + " " +
                      what + " (capacity " + std::to_string(buffer.receive.capacity) + ", " +
                      std::to_string(buffer.pieces.size()) + " messages)");
}

bool MultiReceiver::post_buffers(std::size_t largest_message) {
  bool acted = false;
  while (posted_.size() < env_.plan.multi_receives) {
    Buffer buffer;
    Receive& receive = buffer.receive;
    receive.host = env_.self;
    receive.incarnation = env_.incarnation;
    receive.ignore = ~std::uint64_t{0};
    if (random_.chance(kMillion / 4)) receive.from = random_.below(env_.hosts);
    receive.capacity = largest_message / 2 + random_.below(4 * largest_message) + kNumberedFrom;
    // So even a message that is cut off is long enough to say which one it is.
    buffer.min_multi_recv = kNumberedFrom + random_.below(receive.capacity / 2);
    if (random_.chance(kMillion / 4)) buffer.min_multi_recv = receive.capacity - random_.below(kFewBytes);
    receive.position = env_.oracle.next_position();
    receive.started = env_.oracle.incarnations().moment();
    buffer.bytes = std::make_unique_for_overwrite<std::byte[]>(receive.capacity);
    std::fill_n(buffer.bytes.get(), receive.capacity, kUnused);
    const std::uint64_t context = kMultiContext | ++contexts_;
    const Bytes whole{buffer.bytes.get(), receive.capacity};
    protocol::RecvOp op;
    op.slices = {&whole, 1};
    op.from = receive.from;
    op.context = reinterpret_cast<void*>(context);
    op.min_multi_recv = buffer.min_multi_recv;
    Status status;
    {
      const AllocationMeter::Scope scope(&env_.memory);
      status = env_.engine.receive(op);
    }
    env_.trace.line("host %u posts buffer %llx for many messages, %zu bytes, at least %zu: %s", env_.self,
                    static_cast<unsigned long long>(context), receive.capacity, buffer.min_multi_recv,
                    describe(status));
    if (status == Status::again) return acted;
    if (status != Status::ok) throw SafetyFailure(std::string("a receive was refused: ") + describe(status));
    buffers_.emplace(context, std::move(buffer));
    posted_.push_back(context);
    acted = true;
  }
  return acted;
}

const Message* MultiReceiver::complete(const protocol::Completion& completion) {
  const auto context = reinterpret_cast<std::uint64_t>(completion.context);
  const auto found = buffers_.find(context);
  env_.trace.line("host %u buffer %llx: %s, %zu bytes%s", env_.self, static_cast<unsigned long long>(context),
                  describe(completion.status), completion.length,
                  completion.releases_buffer ? ", released" : "");
  if (found == buffers_.end()) throw SafetyFailure("something came into a buffer that had been released");
  Buffer& buffer = found->second;
  const bool is_message = completion.kind == protocol::Completion::Kind::receive;
  const Message* message = is_message ? take_piece(buffer, completion) : nullptr;
  if (!completion.releases_buffer) return message;
  std::erase(posted_, context);
  release(buffer);
  buffers_.erase(found);
  return message;
}

const Message* MultiReceiver::take_piece(Buffer& buffer, const protocol::Completion& completion) {
  const Receive& receive = buffer.receive;
  if (completion.status != Status::ok && completion.status != Status::truncated) {
    env_.oracle.receive_failed(receive, completion);
    (completion.releases_buffer ? buffer.failed : buffer.piece_failed) = true;
    return nullptr;
  }
  std::byte* const begin = static_cast<std::byte*>(completion.buffer);
  const std::ptrdiff_t offset = begin - buffer.bytes.get();
  if (offset < 0 || static_cast<std::size_t>(offset) + completion.length > receive.capacity) {
    fail(buffer, "got a message outside of it");
  }
  Piece piece{static_cast<std::size_t>(offset), completion.length};
  Receive rest = receive;  // the message could use the rest of the buffer
  rest.capacity = receive.capacity - piece.offset;
  const Message& message = env_.oracle.received(rest, completion, {begin, rest.capacity});
  // Datagrams have no order. Nor have messages that were sent to an earlier process on this address.
  piece.ordered = !message.datagram && message.started.incarnation == receive.incarnation;
  piece.sender = std::uint64_t{message.from} << 32 | message.from_incarnation;
  piece.order = message.order;
  std::fill_n(begin, piece.length, kTaken);
  buffer.pieces.push_back(piece);
  return &message;
}

/// The library has given the buffer back.
void MultiReceiver::release(Buffer& buffer) {
  const Receive& receive = buffer.receive;
  std::stable_sort(buffer.pieces.begin(), buffer.pieces.end(),
                   [](const Piece& one, const Piece& other) { return one.offset < other.offset; });
  std::size_t end = 0;
  for (const Piece& piece : buffer.pieces) {
    if (piece.offset < end) fail(buffer, "has messages that lie over one another");
    if (piece.offset > end && !buffer.piece_failed) fail(buffer, "has a gap between its messages");
    if (!all({buffer.bytes.get() + piece.offset, piece.length}, kTaken)) {
      fail(buffer, "was written where a message had been reported");
    }
    end = piece.offset + piece.length;
  }
  for (std::size_t i = 1; i < buffer.pieces.size(); ++i) {
    for (std::size_t j = 0; j < i; ++j) {
      const Piece& first = buffer.pieces[j];
      const Piece& second = buffer.pieces[i];
      const bool comparable = first.ordered && second.ordered && first.offset != second.offset;
      if (comparable && first.sender == second.sender && first.order > second.order) {
        fail(buffer, "has messages out of order");
      }
    }
  }
  if (!buffer.piece_failed && !all({buffer.bytes.get() + end, receive.capacity - end}, kUnused)) {
    fail(buffer, "was written behind its last message");
  }
  const bool full = receive.capacity - end < buffer.min_multi_recv;
  if (!full && !receive.cancelled && !buffer.failed && !buffer.piece_failed)
    fail(buffer, "was released too early");
  quarantine_.take(std::move(buffer.bytes), std::min(receive.capacity, Quarantine::kWatchedMax));
}

void MultiReceiver::cancel(std::uint64_t context, Buffer& buffer) {
  if (buffer.receive.cancelled) return;
  const AllocationMeter::Scope scope(&env_.memory);
  // The result is false if the buffer is full, and only waits for the last bytes of its messages.
  buffer.receive.cancelled = env_.engine.cancel(reinterpret_cast<void*>(context));
}

void MultiReceiver::cancel_random() {
  if (posted_.empty()) return;
  const std::uint64_t context = posted_[random_.below(posted_.size())];
  cancel(context, buffers_.at(context));
}

void MultiReceiver::cancel_all() {
  for (auto& [context, buffer] : buffers_) cancel(context, buffer);
}

}  // namespace cluster::sim
