// Sends and receives bursts of frames through UDP sockets of the endpoint.
#pragma once

#include <sys/socket.h>
#include <time.h>

#include <algorithm>
#include <array>
#include <cstddef>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "base/counters.h"
#include "base/environment.h"
#include "link/link.h"
#include "os/send_batch.h"
#include "os/system_clock.h"
#include "os/udp_port.h"

namespace cluster::os {

/// Receives bursts. Every buffer holds the largest super-datagram (UDP_GRO), so there are few buffers, and
/// each call reuses them. Where most frames come by the socket, the kernel stamps their arrival. Stamping
/// costs some 0.2 us a frame (docs/budget.md), and a little for everything that the node receives. So it is
/// off where few frames come by the socket.
class UdpReceiver {
 public:
  enum class Timestamps : std::uint8_t { no, yes };
  /// `socket`: one of the port.
  UdpReceiver(std::shared_ptr<UdpPort> port, int socket, std::size_t buffers, Timestamps stamps,
              const Environment& environment);

  /// Does what Link::receive_burst() does.
  std::size_t receive(std::span<link::InFrame> frames);
  /// The same. If fewer frames come than there are buffers, the socket is empty.
  std::size_t receive_all(std::span<link::InFrame> frames) {
    return hand_over(frames, take(std::min(frames.size(), headers_.size())));
  }

 private:
  /// For what the kernel adds to a datagram: its time of arrival, and the segment size of UDP_GRO.
  struct ControlBuffer {
    alignas(cmsghdr) std::byte bytes[CMSG_SPACE(sizeof(timespec)) + CMSG_SPACE(sizeof(int))];
  };
  std::size_t take(std::size_t wanted);
  std::size_t hand_over(std::span<link::InFrame> frames, std::size_t got);
  void read_control(msghdr& header, link::InFrame& frame) const;

  std::shared_ptr<UdpPort> port_;
  int socket_;
  Counters& counters_;
  ArrivalClock arrivals_;
  std::unique_ptr<std::byte[]> memory_;
  std::vector<sockaddr_storage> names_;
  std::vector<ControlBuffer> control_buffers_;
  std::vector<iovec> iovecs_;
  std::vector<mmsghdr> headers_;
  /// How many datagrams the next call asks for. Asking for one that is not there costs as much as a datagram,
  /// so this number follows the last result.
  std::size_t expected_ = 1;
};

/// Reads the frames that wait aside during a flood (link/link.h): at most Thinning::kAsideFrames per
/// Thinning::kAsideInterval. So the flood costs a bounded part of the processor, and wakes no process. The
/// socket's buffer holds some more; the kernel drops the rest. Without a flood there are no buffers, and a
/// look costs a comparison.
class AsideReceiver {
 public:
  AsideReceiver(std::shared_ptr<UdpPort> port, const Environment& environment)
      : port_(std::move(port)), environment_(environment) {}

  /// `in_effect` is what UdpPort::thin() returned. At the end of a flood, the receiver reads what still waits
  /// before it releases the buffers.
  void begin_or_end(const link::Thinning& in_effect);
  /// Does what Link::receive_burst() does. The frames stay valid until the next call.
  std::size_t receive(std::span<link::InFrame> frames) {
    if (!receiver_ || (left_ == 0 && ++polls_ < kPollsPerClock)) return 0;
    polls_ = 0;
    return receive_some(frames);
  }
  /// Does what Link::before_sleep() does.
  void before_sleep() { polls_ = kPollsPerClock; }

 private:
  static constexpr unsigned kPollsPerClock = 16;  ///< of a caller that polls without a pause

  std::size_t receive_some(std::span<link::InFrame> frames);

  std::shared_ptr<UdpPort> port_;
  Environment environment_;
  std::optional<UdpReceiver> receiver_;
  unsigned polls_ = 0;    ///< since the last look at the clock
  bool ends_ = false;     ///< the flood is over
  Time next_{};           ///< when the next look is due
  std::size_t left_ = 0;  ///< frames that this look may still read
};

/// Sends bursts through the UDP socket of the endpoint: the kernel routes and resolves. Consecutive frames of
/// one size to one peer leave as one super-datagram, if the kernel can cut it (UDP_SEGMENT).
class UdpSender {
 public:
  UdpSender(std::shared_ptr<UdpPort> port, Counters& counters);

  /// Does what Link::send_burst() does.
  std::size_t send(std::span<const link::OutFrame> frames);

 private:
  struct Slot {
    sockaddr_storage address;
    alignas(cmsghdr) std::array<char, CMSG_SPACE(sizeof(std::uint16_t))> control;
  };

  void open_message(std::span<const link::OutFrame> run, Slot& slot);

  std::shared_ptr<UdpPort> port_;
  Counters& counters_;
  SendBatch batch_;
  std::array<Slot, link::kBurstMax> slots_;
};

}  // namespace cluster::os
