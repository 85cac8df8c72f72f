// Super-frames: up to 44 datagrams of 1472 bytes that the kernel or the NIC cuts on the way (UDP
// segmentation offload), each with 60 bytes of a header before its payload, as a bulk transfer sends them.
// The payload comes from one large buffer and ends in another, at the receiver.
#include <algorithm>
#include <cstring>
#include <stdexcept>
#include <vector>

#include "bare.h"
#include "wire.h"

namespace perf {
namespace {

constexpr std::size_t kSegment = 1472, kHeader = 60, kPayload = kSegment - kHeader;
constexpr std::size_t kSegmentsMax = 44;
constexpr std::size_t kBuffer = 1 << 20;
/// A segment's header and payload, and the headers of the frame.
static_assert(2 * kSegmentsMax + 1 <= WireSender::kPartsMax);

/// Position in a large buffer of which super-frame after super-frame takes its part.
class Position {
 public:
  explicit Position(std::size_t step) : step_(step) {}
  std::size_t next() {
    const std::size_t here = at_;
    at_ = at_ + 2 * step_ > kBuffer ? 0 : at_ + step_;
    return here;
  }

 private:
  std::size_t step_, at_ = 0;
};

class SuperFrames {
 public:
  SuperFrames(const WireChoice& choice, ControlConnection& line, std::size_t segments, unsigned window)
      : segments_(segments),
        staged_(choice.staged),
        in_place_(choice.receive_by == ReceiveBy::in_place),
        wire_(choice, line, kVnetBytes + kUdpHeadersBytes + segments * kSegment, window),
        headers_(headers(choice, wire_.own, wire_.other, segments * kSegment, segments > 1 ? kSegment : 0)),
        answer_(headers(choice, wire_.own, wire_.other, kHeader, 0)),
        position_(segments * kPayload),
        user_(kBuffer, 'u'),
        stage_(headers_.size() + segments * kSegment),
        segment_headers_(segments * kHeader, 'h'),
        drop_(kUdpHeadersBytes) {
    answer_.resize(answer_.size() + kHeader);
    std::copy(headers_.begin(), headers_.end(), stage_.begin());
  }

  void send() {
    gather(headers_);
    if (staged_) stage();
    wire_.sender.add(parts_);
    wire_.sender.flush();
  }

  void receive() {
    if (in_place_) {
      gather(drop_);
      return wire_.receiver.receive_to(parts_);
    }
    const std::span<const char> frame = wire_.receiver.receive();
    if (frame.size() != kUdpHeadersBytes + segments_ * kSegment) throw std::runtime_error("a frame was cut");
    char* to = user_.data() + position_.next();
    for (std::size_t i = 0; i < segments_; ++i) {
      std::memcpy(to + i * kPayload, frame.data() + kUdpHeadersBytes + i * kSegment + kHeader, kPayload);
    }
  }

  void send_answer() {
    const iovec whole{answer_.data(), answer_.size()};
    wire_.sender.add({&whole, 1});
    wire_.sender.flush();
  }
  void receive_report() { wire_.receiver.receive(); }

  unsigned owed = 0;  ///< answers that the leader has not waited for

 private:
  /// The pieces of the next super-frame, where they come from or go to.
  void gather(std::vector<char>& first) {
    parts_.assign(1, {first.data(), first.size()});
    char* const payload = user_.data() + position_.next();
    for (std::size_t i = 0; i < segments_; ++i) {
      parts_.push_back({segment_headers_.data() + i * kHeader, kHeader});
      parts_.push_back({payload + i * kPayload, kPayload});
    }
  }
  void stage() {
    char* to = stage_.data();
    for (const iovec& part : parts_) {
      std::memcpy(to, part.iov_base, part.iov_len);
      to += part.iov_len;
    }
    parts_.assign(1, {stage_.data(), stage_.size()});
  }

  std::size_t segments_;
  bool staged_, in_place_;
  Wire wire_;
  std::vector<char> headers_, answer_;
  Position position_;
  std::vector<char> user_, stage_, segment_headers_, drop_;
  std::vector<iovec> parts_;
};

}  // namespace

Benchmark super_frame_measure(const Item& item, ControlConnection& line, const WireChoice& asked) {
  if (item.bytes < 1 || item.bytes > kSegmentsMax) throw std::invalid_argument("super: 1 to 44 segments");
  WireChoice choice = asked;
  choice.frames_as = FramesAs::udp;  // what can be cut
  choice.vnet_header = true;
  choice.batch = 1;
  const auto frames = std::make_shared<SuperFrames>(choice, line, item.bytes, item.window);
  // Half the window is answered at a time, so that the other half keeps the sender going.
  const unsigned half = std::max(1u, item.window / 2), owed_max = item.window > 1 ? 1 : 0;
  Benchmark work;
  work.figure = Figure::bytes_per_second;
  work.messages = half;
  work.bytes = static_cast<double>(half * item.bytes * kPayload);
  work.lead = [frames, half, owed_max](std::uint64_t) {
    for (unsigned i = 0; i < half; ++i) frames->send();
    for (++frames->owed; frames->owed > owed_max; --frames->owed) frames->receive_report();
  };
  work.follow = [frames, half](std::uint64_t) {
    for (unsigned i = 0; i < half; ++i) frames->receive();
    frames->send_answer();
  };
  return work;
}

}  // namespace perf
