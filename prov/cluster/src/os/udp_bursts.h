// Sends and receives bursts of frames through UDP sockets of the endpoint.
#pragma once

#include <netinet/in.h>
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

/// Receives bursts. Every buffer is large enough for the largest super-datagram (UDP_GRO). Therefore there
/// are only a few buffers, and each call reuses them. The kernel can add a timestamp of the arrival to each
/// datagram. A timestamp costs about 0.2 us per frame (docs/budget.md). If any socket of the node has
/// timestamps, all packets that the node receives cost slightly more. For this reason timestamps are off on
/// sockets that receive few frames.
class UdpReceiver {
 public:
  enum class Timestamps : std::uint8_t { no, yes };
  /// `socket` is one of the sockets of the port.
  UdpReceiver(std::shared_ptr<UdpPort> port, int socket, std::size_t buffers, Timestamps stamps,
              const Environment& environment);

  /// Does what Link::receive_burst() does.
  std::size_t receive(std::span<link::InFrame> frames);
  /// Like receive(), but always requests as many datagrams as fit into the buffers and `frames`. If the
  /// kernel delivers fewer, the socket is empty.
  std::size_t receive_all(std::span<link::InFrame> frames);

 private:
  /// Space for the data that the kernel adds to a datagram: the arrival time and the segment size of UDP_GRO.
  struct ControlBuffer {
    alignas(cmsghdr) std::byte bytes[CMSG_SPACE(sizeof(timespec)) + CMSG_SPACE(sizeof(int))];
  };
  [[gnu::always_inline]] std::size_t take(std::size_t wanted);
  std::size_t take_after_error(std::size_t wanted);
  static void expect(mmsghdr& header);
  std::size_t hand_over(std::span<link::InFrame> frames, std::size_t got);
  void read_control(msghdr& header, link::InFrame& frame) const;

  std::shared_ptr<UdpPort> port_;
  int socket_;
  Counters& counters_;
  ArrivalClock arrivals_;
  std::unique_ptr<std::byte[]> memory_;
  std::vector<sockaddr_in6> names_;  ///< large enough for both families
  std::vector<ControlBuffer> control_buffers_;
  std::vector<iovec> iovecs_;
  std::vector<mmsghdr> headers_;
  /// The number of datagrams that the next call requests. A request for a datagram that has not arrived costs
  /// as much as one that has arrived. So this number follows the last result. It is at most the number of
  /// buffers.
  std::size_t expected_ = 1;
};

/// Reads the frames that wait aside during a flood (link/link.h): at most Thinning::kAsideFrames per
/// Thinning::kAsideInterval. This limit bounds the processor time that a flood costs. The frames that wait
/// aside wake no process. The socket's buffer holds a limited number of frames; the kernel drops the rest.
/// Without a flood, the receiver has no buffers, and receive() costs one comparison.
class AsideReceiver {
 public:
  AsideReceiver(std::shared_ptr<UdpPort> port, const Environment& environment)
      : port_(std::move(port)), environment_(environment) {}

  /// Called with the result of UdpPort::thin(). At the end of a flood, the receiver reads all waiting frames
  /// before it frees the buffers.
  void begin_or_end(const link::Thinning& in_effect);
  /// Returns true if receive() has nothing to do: there is no flood, and no frame of an earlier flood waits.
  bool idle() const { return !receiver_; }
  /// Does what Link::receive_burst() does. The frames stay valid until the next call.
  std::size_t receive(std::span<link::InFrame> frames) {
    if (!receiver_ || (left_ == 0 && ++polls_ < kPollsPerClock)) return 0;
    polls_ = 0;
    return receive_some(frames);
  }
  /// Does what Link::before_sleep() does.
  void before_sleep() { polls_ = kPollsPerClock; }

 private:
  static constexpr unsigned kPollsPerClock = 16;  ///< receive() reads the clock once in this number of polls

  std::size_t receive_some(std::span<link::InFrame> frames);

  std::shared_ptr<UdpPort> port_;
  Environment environment_;
  std::optional<UdpReceiver> receiver_;
  unsigned polls_ = 0;    ///< polls since receive() last read the clock
  bool ends_ = false;     ///< the flood has ended; the receiver reads the remaining frames
  Time next_{};           ///< time of the next read
  std::size_t left_ = 0;  ///< number of frames that the current read may still take
};

/// Sends bursts through the UDP socket of the endpoint. The kernel finds the route and the hardware address.
/// Consecutive frames of the same size to the same peer become one super-datagram, if the kernel supports
/// segmentation (UDP_SEGMENT).
class UdpSender {
 public:
  UdpSender(std::shared_ptr<UdpPort> port, Counters& counters);

  /// Does what Link::send_burst() does.
  std::size_t send(std::span<const link::OutFrame> frames);
  /// See SendBatch.
  bool take_no_buffer() { return batch_.take_no_buffer(); }
  void forget_refused() { batch_.forget_refused(); }

 private:
  struct Slot {
    sockaddr_storage address;
    alignas(cmsghdr) std::array<char, CMSG_SPACE(sizeof(std::uint16_t))> control;
  };

  void open_message(std::span<const link::OutFrame> run, Slot& slot);
  std::size_t send_one(const link::OutFrame& frame);

  std::shared_ptr<UdpPort> port_;
  Counters& counters_;
  SendBatch batch_;
  std::array<Slot, link::kBurstMax> slots_;
  sockaddr_storage lone_address_{};  ///< `lone_to_` as a sockaddr; the last single frame went there
  SocketAddress lone_to_{};
  socklen_t lone_size_ = 0;
};

}  // namespace cluster::os
