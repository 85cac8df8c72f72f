// A burst of frames on its way into one sendmmsg. Runs of frames with one path and one size become
// super-datagrams (segmentation offload); all others go one frame per message. Both links build their
// messages here. They write the headers and pass the segment size to the kernel themselves.
//
// A batch gives up offload when kernel or device refuses a super-datagram but takes its frames one by one.
// Two errors can also have another cause:
// - Some kernels refuse a super-datagram with the same error when a segment exceeds the MTU. They then refuse
//   the single frame, too (EMSGSIZE), which shows that the offload works.
// - Past the queueing discipline (PACKET_QDISC_BYPASS) a device that cannot segment answers ENOBUFS, like one
//   whose queue is full. So the batch retries a few times if the device has never taken a super-datagram, and
//   for long if it has. If the next single frame finds no space either, the queue is full or the cable cut,
//   and the offload works.
//
// A full queue soon has space again. So if a frame is refused for lack of buffers (ENOBUFS) for kRefusedMax,
// its length is the cause: a port of a bridge behind a veth, a policer or a tap device takes no frame of that
// length. The batch counts such a frame, and all frames at least as long, as taken and lost, until one of
// them leaves. The flow judges what a loss means. A super-frame that leaves proves nothing, because a veth
// takes it whatever its segments are.
#pragma once

#include <sys/socket.h>
#include <sys/uio.h>

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <utility>

#include "base/bytes.h"
#include "base/counters.h"
#include "base/units.h"
#include "link/link.h"

namespace cluster::os {

/// Returns how many of `frames`, from the first on, may travel as one super-datagram. These have one path and
/// one size; the last may be shorter. At least 1, unless `frames` is empty.
std::size_t run_length(std::span<const link::OutFrame> frames);

class SendBatch {
 public:
  /// What sendmmsg made of the batch.
  struct Outcome {
    std::size_t frames = 0;     ///< sent, or dropped and counted
    bool buffers_full = false;  ///< there was no buffer for the next one
  };

  explicit SendBatch(bool offload) : offload_(offload) {}

  bool offload() const { return offload_; }
  /// Returns true if the kernel has reported an error since the last call, which may be an ICMP error about
  /// an earlier frame.
  bool take_reported() { return std::exchange(reported_, false); }
  void clear() { messages_ = parts_ = 0; }
  bool full() const { return messages_ == link::kBurstMax; }

  /// Begins the message for `frames` frames of `size` bytes each. add() and add_pieces() then add its pieces.
  msghdr& open(std::size_t frames, std::size_t size);
  void add(ConstBytes part);
  void add_pieces(std::span<const link::OutFrame> frames);

  Outcome submit(int socket, Counters& counters);

  /// Does what Link::send_burst() does, batch by batch. open_message(run, i) builds the i-th message of a
  /// batch for a run of frames. A frame longer than `segment_max` travels on its own.
  template <typename OpenMessage>
  std::size_t send(std::span<const link::OutFrame> frames, std::size_t segment_max, int socket,
                   Counters& counters, OpenMessage&& open_message) {
    std::size_t sent = 0;
    while (sent < frames.size()) {
      clear();
      auto rest = frames.subspan(sent, std::min(frames.size() - sent, link::kBurstMax));
      for (std::size_t i = 0; !rest.empty(); ++i) {
        const std::size_t count = offload_ && rest[0].size <= segment_max ? run_length(rest) : 1;
        open_message(rest.first(count), i);
        rest = rest.subspan(count);
      }
      const Outcome outcome = submit(socket, counters);
      sent += outcome.frames;
      if (outcome.buffers_full) break;
    }
    return sent;
  }

 private:
  enum class Verdict { repeat, stop, drop, rebuild };
  bool offload_is_futile(std::size_t frames);
  void restore_offload(Counters& counters);
  bool refused_for_good(std::size_t message);
  Verdict judge(int error, std::size_t message, bool repeated, Counters& counters);

  // One header part per message besides the pieces.
  static constexpr std::size_t kPartsMax = link::kBurstMax * (link::kPiecesMax + 1);

  std::array<mmsghdr, link::kBurstMax> headers_;
  std::array<std::size_t, link::kBurstMax> frames_;
  std::array<std::size_t, link::kBurstMax> sizes_;  ///< of one frame of each message
  std::array<iovec, kPartsMax> iovecs_;
  std::size_t messages_ = 0;
  std::size_t parts_ = 0;
  bool offload_;
  bool proven_ = false;    ///< a super-datagram has been taken
  unsigned refusals_ = 0;  ///< of super-datagrams for lack of buffers, in a row
  bool reported_ = false;  ///< take_reported()
  bool doubtful_ = false;  ///< offload was refused; the next single frame shows why
  struct {
    std::size_t size = SIZE_MAX;  ///< of the shortest single frame that found no buffer
    Time since{};                 ///< since when no frame so long has left
  } refused_;
};

}  // namespace cluster::os
