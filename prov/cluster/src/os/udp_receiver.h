// Receives from a UDP socket of the endpoint. Every buffer holds the largest super-datagram (UDP_GRO), so their
// number is small; they are reused by the next call. Where most frames come by the socket, the kernel stamps
// their arrival: some 0.2 us each (docs/budget.md), and a little for all that the node receives, so not where
// few do.
#pragma once

#include <sys/socket.h>
#include <time.h>

#include <algorithm>
#include <cstddef>
#include <memory>
#include <span>
#include <vector>

#include "base/environment.h"
#include "link/link.h"
#include "os/arrival_clock.h"
#include "os/udp_port.h"

namespace cluster::os {

class UdpReceiver {
 public:
  enum class Timestamps : std::uint8_t { no, yes };
  UdpReceiver(std::shared_ptr<UdpPort> port, std::size_t buffers, Timestamps stamps,
              const Environment& environment);
  /// From another socket of the port.
  UdpReceiver(std::shared_ptr<UdpPort> port, int socket, std::size_t buffers, Timestamps stamps,
              const Environment& environment);

  /// As Link::receive_burst.
  std::size_t receive(std::span<link::InFrame> frames);
  /// The same, and if fewer come than there are buffers, nothing is left.
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
  /// How many to ask for: asking for one more than there are costs as much as a datagram, so this
  /// follows what came last.
  std::size_t expected_ = 1;
};

}  // namespace cluster::os
