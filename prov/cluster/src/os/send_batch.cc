#include "os/send_batch.h"

#include <cerrno>

#include "os/system_clock.h"

namespace cluster::os {
namespace {

// Limits that every kernel with UDP_SEGMENT accepts. The bytes do not include the headers.
constexpr std::size_t kSegmentsMax = 64;
constexpr std::size_t kSuperBytesMax = 65000;
/// The batch gives up offload after this number of consecutive ENOBUFS errors for super-datagrams. The first
/// limit applies if the device has never accepted a super-datagram, the second if it has.
constexpr unsigned kRefusalsUnproven = 3;
constexpr unsigned kRefusalsProven = 1000;
/// A full queue has space for one frame long before this time has passed. The engine declares a silent peer
/// dead only much later.
constexpr Duration kRefusedMax = 10ms;

}  // namespace

std::size_t run_length(std::span<const link::OutFrame> frames) {
  if (frames.size() <= 1) return frames.size();
  const std::size_t segment = frames[0].size;
  std::size_t bytes = segment;
  std::size_t count = 1;
  while (count < frames.size() && count < kSegmentsMax) {
    const link::OutFrame& next = frames[count];
    if (next.path != frames[0].path || next.size > segment || bytes + next.size > kSuperBytesMax) break;
    bytes += next.size;
    ++count;
    if (next.size < segment) break;
  }
  return count;
}

SendBatch::Outcome SendBatch::submit(int socket, Counters& counters, int error) {
  Outcome outcome;
  std::size_t done = 0;
  bool repeated = false;
  while (done < messages_) {
    int sent = -1;
    if (error == 0) {
      sent = sendmmsg(socket, &headers_[done], static_cast<unsigned>(messages_ - done), MSG_DONTWAIT);
      error = errno;
    }
    if (sent > 0) {
      for (int i = 0; i < sent; ++i) {
        note_accepted(frames_[done], sizes_[done]);
        outcome.frames += frames_[done++];
      }
      repeated = false;
      error = 0;
      continue;
    }
    switch (judge(std::exchange(error, 0), done, repeated, counters)) {
      case Verdict::repeat: repeated = true; break;
      case Verdict::stop: outcome.buffers_full = true; return outcome;
      case Verdict::rebuild: return outcome;
      case Verdict::drop:
        outcome.frames += frames_[done++];
        repeated = false;
        break;
    }
  }
  return outcome;
}

bool SendBatch::offload_is_futile(std::size_t frames) {
  if (frames == 1 || !offload_) return false;
  return ++refusals_ >= (proven_ ? kRefusalsProven : kRefusalsUnproven);
}

/// Enables offload again. Called when the error of a single frame shows that offload did not cause the
/// earlier error.
void SendBatch::restore_offload(Counters& counters) {
  offload_ = true;
  doubtful_ = false;
  refusals_ = 0;
  counters.link_offload_refused -= 1;
}

/// Called when the kernel has no buffer for a message. Returns true if the cause is the length of the
/// message's frames. That is so if the kernel has refused frames that are at most as long for kRefusedMax.
/// Otherwise the cause is not known yet. In this case, a single frame that is shorter than all refused frames
/// becomes the new shortest refused frame.
bool SendBatch::refused_for_good(std::size_t message) {
  const Time now = SystemClock().now();
  if (sizes_[message] >= refused_.size) return now - refused_.since >= kRefusedMax;
  if (frames_[message] == 1) refused_ = {sizes_[message], now};
  return false;
}

SendBatch::Verdict SendBatch::judge(int error, std::size_t message, bool repeated, Counters& counters) {
  const std::size_t frames = frames_[message];
  switch (error) {
    case EINTR: return Verdict::repeat;
    case ENOBUFS:
      no_buffer_ = true;
      if (doubtful_ && frames == 1) restore_offload(counters);
      if (refused_for_good(message)) break;
      if (!offload_is_futile(frames)) return Verdict::stop;
      offload_ = false;
      doubtful_ = true;
      counters.link_offload_refused += 1;
      return Verdict::rebuild;
    case EAGAIN:
    case ENOMEM: return Verdict::stop;
    case EPERM: prohibited_ = true; break;
    case EMSGSIZE:
      // The frame itself is too long for the path, so offload is not the cause.
      if (doubtful_) restore_offload(counters);
      counters.link_too_long += frames;
      return Verdict::drop;
    case EINVAL:
    case EIO:
    case EOPNOTSUPP:
    case ENOPROTOOPT:
      if (frames == 1 || !offload_) break;
      offload_ = false;
      doubtful_ = true;
      counters.link_offload_refused += 1;
      return Verdict::rebuild;
    default:
      // This is usually an ICMP error about an earlier frame. The kernel returns such an error from one call
      // only, so the batch repeats the call. The error itself stays in the error queue until the port drains
      // it.
      reported_ = true;
      if (!repeated) return Verdict::repeat;
      break;
  }
  counters.link_unsendable += frames;
  return Verdict::drop;
}

}  // namespace cluster::os
