#include "protocol/direct_copy.h"

#include <algorithm>

namespace cluster::protocol {
namespace {

/// The sender writes pieces of kPlaceBytes, and the receiver copies pieces of kCopyBytes. With small pieces,
/// the two sides finish at about the same time, and other requests need not wait long. With large pieces, the
/// system calls cost little: one system call costs about 0.4 us, and the copy of a piece takes 3 to 6 us
/// (measured).
constexpr std::size_t kPlaceBytes = 128 * 1024;
constexpr std::size_t kCopyBytes = 64 * 1024;
/// The receiver does not request smaller pieces. It copies them itself faster than the sender answers.
constexpr std::size_t kPlaceMin = 8 * 1024;
constexpr std::size_t kPageBytes = 4096;

}  // namespace

void DirectCopy::offer_source(const PulledRequest& request, wire::Segment& announcement) {
  const std::span<const ConstBytes> slices = request.slices.all();
  if (request.channel->memory == nullptr || slices.size() != 1) return;
  announcement.flags |= wire::segment_flag::kAddress;
  announcement.address = reinterpret_cast<std::uintptr_t>(slices[0].data()) + request.base;
}

/// Returns how many bytes to request from the sender next, or 0 to request nothing now. The sender gets at
/// most half of the remaining bytes, rounded up to whole pages. Meanwhile this side itself copies bytes from
/// the back of the message (copy_in()). So both sides are busy until all bytes are copied.
std::size_t DirectCopy::next_pull(const PullProgress& pull) {
  const std::size_t left = pull.end - pull.requested;
  const std::size_t half = (left / 2 + kPageBytes - 1) / kPageBytes * kPageBytes;
  const std::size_t allowed = left > 4 * kPlaceBytes ? 2 * kPlaceBytes : 1;
  if (half < kPlaceMin || pull.in_flight() >= allowed) return 0;
  return std::min(half, kPlaceBytes);
}

void DirectCopy::offer_target(const IncomingRequest& request, wire::Segment& pull) {
  // Null, and so 0, if the bytes belong in several buffers.
  pull.address = reinterpret_cast<std::uintptr_t>(
      contiguous(request.buffers(), request.base + pull.offset, pull.total).data());
  if (pull.address != 0) pull.flags |= wire::segment_flag::kAddress;
}

bool DirectCopy::copy_in(IncomingRequest& request) {
  PullProgress& pull = request.pull;
  CrossMemory*& memory = request.channel->memory;
  const std::size_t length = std::min(kCopyBytes, pull.end - pull.requested);
  const std::size_t begin = pull.end - length;
  if (memory == nullptr ||
      !memory->read(pull.source + begin, request.buffers(), request.base + begin, length)) {
    memory = nullptr;
    pull.source = 0;
    return false;
  }
  pull.end = begin;
  pull.copied += length;
  return true;
}

bool DirectCopy::place(ControlSender& control, const PulledRequest& request, const PullRange& range) {
  Channel& channel = *request.channel;
  const std::size_t length = range.end - range.offset;
  if (channel.memory == nullptr) return false;
  if (!channel.memory->write(range.address, request.bytes(range.offset, length))) {
    channel.memory = nullptr;
    return false;
  }
  control.send(channel, {.kind = wire::SegmentKind::placed,
                         .peer_id = request.receiver_id,
                         .offset = range.offset,
                         .total = length});
  return true;
}

}  // namespace cluster::protocol
