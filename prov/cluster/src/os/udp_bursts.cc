#include "os/udp_bursts.h"

#include <netinet/in.h>
#include <netinet/udp.h>

#include <algorithm>
#include <cerrno>
#include <cstdint>
#include <cstring>
#include <utility>

#include "os/address_trailer.h"

namespace cluster::os {
namespace {

constexpr std::size_t kBufferBytes = 64 * 1024;
constexpr int kPendingErrors = 3;  // recvmmsg() returns at most this many earlier errors before data
constexpr std::size_t kAsideBuffers = 16;
/// During a flood, the engine wakes a sleeping thread once per kAsideInterval. The engine reads the clock at
/// a different moment than this receiver. Therefore the thread may wake slightly too early for the next read
/// of the frames that wait aside. Without this tolerance, the read would then wait for the next interval, and
/// the receiver would read only half of the allowed frames.
constexpr Duration kEarly = link::Thinning::kAsideInterval / 5;

}  // namespace

UdpReceiver::UdpReceiver(std::shared_ptr<UdpPort> port, int socket, std::size_t buffers, Timestamps stamps,
                         const Environment& environment)
    : port_(std::move(port)),
      socket_(socket),
      counters_(environment.counters),
      arrivals_(environment.clock),
      memory_(new std::byte[buffers * kBufferBytes]),
      names_(buffers),
      control_buffers_(buffers),
      iovecs_(buffers),
      headers_(buffers) {
  for (std::size_t i = 0; i < buffers; ++i) {
    iovecs_[i] = {memory_.get() + i * kBufferBytes, kBufferBytes};
    msghdr& header = headers_[i].msg_hdr;
    header.msg_name = &names_[i];
    header.msg_iov = &iovecs_[i];
    header.msg_iovlen = 1;
    header.msg_control = control_buffers_[i].bytes;
    expect(headers_[i]);
  }
  const int on = 1;
  if (stamps == Timestamps::yes) setsockopt(socket_, SOL_SOCKET, SO_TIMESTAMPNS, &on, sizeof on);
}

/// Makes the header ready for a datagram. The kernel changes the two sizes only when it fills the header.
inline void UdpReceiver::expect(mmsghdr& header) {
  header.msg_hdr.msg_namelen = sizeof(sockaddr_in6);
  header.msg_hdr.msg_controllen = sizeof(ControlBuffer);
}

/// Most calls find nothing, so this costs little besides the system call (docs/budget.md).
inline std::size_t UdpReceiver::take(std::size_t wanted) {
  const int got = recvmmsg(socket_, headers_.data(), static_cast<unsigned>(wanted), MSG_DONTWAIT, nullptr);
  if (got >= 0) return static_cast<std::size_t>(got);
  return errno == EAGAIN ? 0 : take_after_error(wanted);
}

/// Called after the socket has reported an error. Removes the errors of paths, which would use the buffer
/// space of frames, and tries again.
std::size_t UdpReceiver::take_after_error(std::size_t wanted) {
  for (int attempt = 0; attempt < kPendingErrors; ++attempt) {
    port_->drain_path_errors();
    const int got = recvmmsg(socket_, headers_.data(), static_cast<unsigned>(wanted), MSG_DONTWAIT, nullptr);
    if (got >= 0) return static_cast<std::size_t>(got);
    if (errno == EAGAIN) return 0;
  }
  port_->drain_path_errors();
  return 0;
}

/// Reads the arrival time and the segment size of a received datagram. Either may be missing: timestamps may
/// be off, and only joined datagrams have a segment size.
inline void UdpReceiver::read_control(msghdr& header, link::InFrame& frame) const {
  frame.arrived = kNever;
  frame.segment = 0;
  for (cmsghdr* message = CMSG_FIRSTHDR(&header); message != nullptr;
       message = CMSG_NXTHDR(&header, message)) {
    if (message->cmsg_level == SOL_SOCKET && message->cmsg_type == SCM_TIMESTAMPNS) {
      timespec stamp{};
      std::memcpy(&stamp, CMSG_DATA(message), sizeof stamp);
      frame.arrived =
          arrivals_.time_of(std::chrono::seconds(stamp.tv_sec) + std::chrono::nanoseconds(stamp.tv_nsec));
    } else if (message->cmsg_level == SOL_UDP && message->cmsg_type == UDP_GRO) {
      int segment = 0;
      std::memcpy(&segment, CMSG_DATA(message), sizeof segment);
      frame.segment = static_cast<std::size_t>(segment);
    }
  }
}

std::size_t UdpReceiver::hand_over(std::span<link::InFrame> frames, std::size_t got) {
  std::size_t count = 0;
  arrivals_.refresh();
  for (std::size_t i = 0; i < got; ++i) {
    mmsghdr& header = headers_[i];
    if ((header.msg_hdr.msg_flags & MSG_TRUNC) != 0) {
      ++counters_.link_malformed;
    } else {
      link::InFrame& frame = frames[count++];
      frame.bytes = {static_cast<std::byte*>(iovecs_[i].iov_base), header.msg_len};
      frame.from = {};
      frame.from.to =
          SocketAddress::from(reinterpret_cast<const sockaddr*>(&names_[i]), header.msg_hdr.msg_namelen);
      read_control(header.msg_hdr, frame);
      if (frame.segment == 0) take_address_trailer(frame);
    }
    expect(header);
  }
  return count;
}

std::size_t UdpReceiver::receive(std::span<link::InFrame> frames) {
  const std::size_t wanted = std::min(expected_, frames.size());
  if (wanted == 0) return 0;
  const std::size_t got = take(wanted);
  if (got == 0) return 0;
  expected_ = got == wanted ? std::min(wanted * 2, headers_.size()) : got;
  return hand_over(frames, got);
}

std::size_t UdpReceiver::receive_all(std::span<link::InFrame> frames) {
  const std::size_t got = take(std::min(frames.size(), headers_.size()));
  return got == 0 ? 0 : hand_over(frames, got);
}

void AsideReceiver::begin_or_end(const link::Thinning& in_effect) {
  ends_ = !in_effect.on;
  if (ends_ || receiver_) return;
  receiver_.emplace(port_, port_->aside_socket(), kAsideBuffers, UdpReceiver::Timestamps::no, environment_);
  next_ = environment_.clock.now() + link::Thinning::kAsideInterval;
}

std::size_t AsideReceiver::receive_some(std::span<link::InFrame> frames) {
  if (left_ == 0) {
    const Time now = environment_.clock.now();
    if (now < next_ - kEarly) return 0;
    next_ = std::max(next_, now - kEarly) + link::Thinning::kAsideInterval;
    left_ = link::Thinning::kAsideFrames;
  }
  const std::size_t count = receiver_->receive(frames.first(std::min(left_, frames.size())));
  left_ = count == 0 ? 0 : left_ - count;
  if (count == 0 && ends_) receiver_.reset();
  return count;
}

UdpSender::UdpSender(std::shared_ptr<UdpPort> port, Counters& counters)
    : port_(std::move(port)), counters_(counters), batch_(true) {}

std::size_t UdpSender::send(std::span<const link::OutFrame> frames) {
  if (frames.size() == 1) return send_one(frames[0]);
  const std::size_t sent = batch_.send(
      frames, SIZE_MAX, port_->socket(), counters_,
      [this](std::span<const link::OutFrame> run, std::size_t i) { open_message(run, slots_[i]); });
  if (batch_.take_reported()) port_->drain_path_errors();
  batch_.take_prohibited();  // only first contact needs the report, and its frames leave through send_one()
  return sent;
}

/// Keeps the peer's address for the next call, because consecutive lone frames mostly go to the same peer.
std::size_t UdpSender::send_one(const link::OutFrame& frame) {
  if (frame.path->to != lone_to_) {
    lone_to_ = frame.path->to;
    lone_size_ = static_cast<socklen_t>(lone_to_.to(lone_address_));
  }
  const std::size_t sent =
      batch_.send_lone(&lone_address_, lone_size_, {}, frame, port_->socket(), counters_);
  if (batch_.take_reported()) port_->drain_path_errors();
  if (batch_.take_prohibited()) port_->note_prohibited(frame);
  return sent;
}

void UdpSender::open_message(std::span<const link::OutFrame> run, Slot& slot) {
  msghdr& header = batch_.open(run.size(), run[0].size);
  header.msg_name = &slot.address;
  header.msg_namelen = static_cast<socklen_t>(run[0].path->to.to(slot.address));
  if (run.size() > 1) {
    header.msg_control = slot.control.data();
    header.msg_controllen = slot.control.size();
    cmsghdr* control = CMSG_FIRSTHDR(&header);
    control->cmsg_level = SOL_UDP;
    control->cmsg_type = UDP_SEGMENT;
    control->cmsg_len = CMSG_LEN(sizeof(std::uint16_t));
    const auto segment = static_cast<std::uint16_t>(run[0].size);
    std::memcpy(CMSG_DATA(control), &segment, sizeof segment);
  }
  batch_.add_pieces(run);
}

}  // namespace cluster::os
