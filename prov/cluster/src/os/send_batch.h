// Sends a burst of frames, usually with one sendmmsg(). A run of frames with the same path and size becomes
// one super-datagram (segmentation offload). Every other frame becomes a message of its own. The udp link and
// the packet link build their messages here. Each link itself writes the headers and tells the kernel the
// segment size.
//
// A batch gives up offload if the kernel or the device refuses a super-datagram but accepts its frames one by
// one. A refused super-datagram can also have another cause:
// - Its segments may exceed the MTU. Some kernels then return an error that can also mean that offload does
//   not work. Such a kernel refuses the single frame too (EMSGSIZE), which shows that offload was not the
//   cause.
// - Without the queueing discipline (PACKET_QDISC_BYPASS), the kernel returns ENOBUFS both if a device cannot
//   segment and if its queue is full. Therefore the batch retries the super-datagram: kRefusalsUnproven times
//   if the device has never accepted one, and kRefusalsProven times if it has. If the next single frame gets
//   ENOBUFS too, offload was not the cause: the queue is full or the cable is cut.
//
// A full queue soon has space again. If the kernel refuses frames of some length with ENOBUFS for
// kRefusedMax, the cause is their length. For example, a bridge port behind a veth, a policer or a tap device
// accepts no frame of that length. From then on, the batch still offers each such frame to the kernel, but
// drops the frame if the kernel refuses it. The batch reports a dropped frame as sent, and counts it as lost.
// This ends when the kernel accepts a single frame of at least that length. The reliability layer retransmits
// lost frames and adapts to the losses. An accepted super-frame does not show that the kernel accepts the
// length, because a veth accepts super-frames without checking the length of their segments.
#pragma once

#include <sys/socket.h>
#include <sys/uio.h>

#include <algorithm>
#include <array>
#include <cassert>
#include <cerrno>
#include <cstddef>
#include <cstdint>
#include <span>
#include <utility>

#include "base/bytes.h"
#include "base/counters.h"
#include "base/units.h"
#include "link/link.h"

namespace cluster::os {

/// Returns the number of frames at the beginning of `frames` that can be sent as one super-datagram. These
/// frames have the same path and size; only the last of them may be shorter. Returns at least 1 unless
/// `frames` is empty.
std::size_t run_length(std::span<const link::OutFrame> frames);

class SendBatch {
 public:
  /// The result of submit().
  struct Outcome {
    std::size_t frames = 0;     ///< number of frames that were sent, or dropped and counted
    bool buffers_full = false;  ///< the kernel had no buffer for the next frame
  };

  explicit SendBatch(bool offload) : offload_(offload) {}

  bool offload() const { return offload_; }
  /// Returns true if sendmmsg() has returned an unexpected error since the last call of this function. The
  /// error is usually an ICMP error about an earlier frame.
  bool take_reported() { return std::exchange(reported_, false); }
  /// Returns true if the kernel has refused a message with ENOBUFS since the last call of this function.
  bool take_no_buffer() { return std::exchange(no_buffer_, false); }
  /// Returns true if this host's firewall has dropped a message since the last call of this function.
  bool take_prohibited() { return std::exchange(prohibited_, false); }
  /// The caller has found that the length of the frames was not the cause of ENOBUFS.
  void forget_refused() { refused_.size = SIZE_MAX; }
  void clear() { messages_ = parts_ = 0; }
  bool full() const { return messages_ == link::kBurstMax; }

  /// Begins the message for `frames` frames of `size` bytes each. add() and add_pieces() then add its pieces.
  msghdr& open(std::size_t frames, std::size_t size) {
    assert(!full());
    frames_[messages_] = frames;
    sizes_[messages_] = size;
    msghdr& header = headers_[messages_++].msg_hdr;
    header = msghdr{};
    header.msg_iov = &iovecs_[parts_];
    return header;
  }
  void add(ConstBytes part) {
    msghdr& header = headers_[messages_ - 1].msg_hdr;
    if (header.msg_iovlen != 0) {
      iovec& last = iovecs_[parts_ - 1];
      // The pieces of sealed frames are adjacent in memory, so they share a part of the message.
      if (static_cast<const std::byte*>(last.iov_base) + last.iov_len == part.data()) {
        last.iov_len += part.size();
        return;
      }
    }
    assert(parts_ < kPartsMax);
    iovecs_[parts_++] = part_of(part);
    ++header.msg_iovlen;
  }
  void add_pieces(std::span<const link::OutFrame> frames) {
    for (const link::OutFrame& frame : frames) {
      for (std::size_t i = 0; i < frame.count; ++i) add(frame.pieces[i]);
    }
  }

  /// Sends the messages. `error`: the errno with which the kernel has just refused the first message, or 0.
  Outcome submit(int socket, Counters& counters, int error = 0);

  /// Does the same as clear(), open(), add() and submit() for one frame. The bytes `front` precede the frame
  /// in its message. `name` is the destination, of `name_size` bytes, or null. Returns the number of frames
  /// sent or dropped.
  std::size_t send_lone(const void* name, std::size_t name_size, ConstBytes front,
                        const link::OutFrame& frame, int socket, Counters& counters) {
    iovec* part = iovecs_.data();
    if (!front.empty()) *part++ = part_of(front);
    for (std::size_t i = 0; i < frame.count; ++i) *part++ = part_of(frame.pieces[i]);
    msghdr& header = headers_[0].msg_hdr;
    header = msghdr{};
    header.msg_name = const_cast<void*>(name);
    header.msg_namelen = static_cast<socklen_t>(name_size);
    header.msg_iov = iovecs_.data();
    header.msg_iovlen = static_cast<std::size_t>(part - iovecs_.data());
    if (sendmmsg(socket, headers_.data(), 1, MSG_DONTWAIT) == 1) [[likely]] {
      note_accepted(1, frame.size);
      return 1;
    }
    frames_[0] = messages_ = 1;
    sizes_[0] = frame.size;
    return submit(socket, counters, errno).frames;
  }

  /// Does what Link::send_burst() does, with several batches if necessary. open_message(run, i) builds the
  /// i-th message of a batch from a run of frames. A frame longer than `segment_max` becomes a message of its
  /// own.
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
  /// The kernel only reads the part, but iovec has no const pointer.
  static iovec part_of(ConstBytes part) { return {const_cast<std::byte*>(part.data()), part.size()}; }
  /// Called when the kernel has accepted a message of `frames` frames of this size.
  void note_accepted(std::size_t frames, std::size_t size) {
    if (frames > 1) {
      proven_ = true;
    } else if (size >= refused_.size) [[unlikely]] {
      refused_.size = SIZE_MAX;
    }
    refusals_ = 0;
    doubtful_ = false;
  }
  enum class Verdict { repeat, stop, drop, rebuild };
  bool offload_is_futile(std::size_t frames);
  void restore_offload(Counters& counters);
  bool refused_for_good(std::size_t message);
  Verdict judge(int error, std::size_t message, bool repeated, Counters& counters);

  // Each message has one part for its headers, besides the pieces of its frames.
  static constexpr std::size_t kPartsMax = link::kBurstMax * (link::kPiecesMax + 1);

  std::array<mmsghdr, link::kBurstMax> headers_;
  std::array<std::size_t, link::kBurstMax> frames_;
  std::array<std::size_t, link::kBurstMax> sizes_;  ///< for each message, the size of one of its frames
  std::array<iovec, kPartsMax> iovecs_;
  std::size_t messages_ = 0;
  std::size_t parts_ = 0;
  bool offload_;
  bool proven_ = false;      ///< the kernel has accepted a super-datagram
  unsigned refusals_ = 0;    ///< consecutive super-datagrams that the kernel refused with ENOBUFS
  bool reported_ = false;    ///< what take_reported() returns next
  bool no_buffer_ = false;   ///< what take_no_buffer() returns next
  bool prohibited_ = false;  ///< what take_prohibited() returns next
  bool doubtful_ = false;    ///< offload was given up; the next single frame shows whether it was the cause
  struct {
    std::size_t size = SIZE_MAX;  ///< size of the shortest single frame that was refused with ENOBUFS
    Time since{};                 ///< since this time the kernel has accepted no frame of that size or longer
  } refused_;
};

}  // namespace cluster::os
