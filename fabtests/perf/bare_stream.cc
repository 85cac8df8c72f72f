// Bulk through plain UDP sockets: one call hands the kernel up to 64 KB, which it or the NIC cuts into
// datagrams (UDP_SEGMENT), and the receiver is handed as much at once (UDP_GRO). The messages of a window
// follow each other as one row of bytes, with nothing between them: no header, no repair.
#include <netinet/in.h>
#include <netinet/udp.h>
#include <sys/socket.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <cstring>
#include <stdexcept>
#include <vector>

#include "bare.h"
#include "udp_socket.h"
#include "wire_headers.h"

#ifndef UDP_SEGMENT
#define UDP_SEGMENT 103
#define UDP_GRO 104
#endif

namespace perf {
namespace {

constexpr std::size_t kDatagramMax = 65507;  ///< what one call may send
constexpr std::size_t kStage = 65536;        ///< what one call may receive
constexpr std::size_t kSegmentsMax = 64;     ///< of one call, in any kernel
constexpr int kIpv4UdpHeaders = 28;
/// A window is answered at its end; a larger one each time that so much has come, for all that is under way
/// must fit the receiver's socket. What the kernel keeps for it takes more memory than it has bytes.
constexpr std::size_t kStretch = 16 << 20;
constexpr int kSocketBuffer = 2 * kStretch;
constexpr std::chrono::seconds kPatience{5};

class Stream {
 public:
  Stream(ControlConnection& line, const std::string& interface, const Item& item)
      : socket_(line, interface),
        message_(item.bytes),
        window_bytes_(item.bytes * item.window),
        user_(item.bytes + kStage, 'u'),
        stage_(kStage) {
    int mtu = 0;
    socklen_t size = sizeof mtu;
    if (::getsockopt(socket_.file(), IPPROTO_IP, IP_MTU, &mtu, &size) != 0) fail("IP_MTU");
    const int segment = std::min(mtu - kIpv4UdpHeaders, static_cast<int>(kDatagramMax)), on = 1;
    call_ = std::min(kSegmentsMax, kDatagramMax / static_cast<std::size_t>(segment)) *
            static_cast<std::size_t>(segment);
    if (::setsockopt(socket_.file(), IPPROTO_UDP, UDP_SEGMENT, &segment, sizeof segment) != 0 ||
        ::setsockopt(socket_.file(), IPPROTO_UDP, UDP_GRO, &on, sizeof on) != 0) {
      fail("UDP_SEGMENT and UDP_GRO, which need Linux 5.0");
    }
    for (const int buffer : {SO_SNDBUFFORCE, SO_RCVBUFFORCE}) {
      ::setsockopt(socket_.file(), SOL_SOCKET, buffer, &kSocketBuffer, sizeof kSocketBuffer);
    }
  }

  void send_window() {
    for (std::size_t done = 0; done < window_bytes_; done += kStretch) {
      send(std::min(kStretch, window_bytes_ - done));
      take();
    }
  }

  void receive_window() {
    std::size_t done = 0;
    for (std::size_t due = 0; due < window_bytes_;) {
      due = std::min(due + kStretch, window_bytes_);
      while (done < due) {
        const std::size_t got = take();
        std::memcpy(user_.data() + at_, stage_.data(), got);
        advance(got);
        done += got;
      }
      push(1);
    }
  }

 private:
  void send(std::size_t count) {
    for (std::size_t left = count; left > 0;) {
      const std::size_t part = std::min(left, call_);
      push(part);
      advance(part);
      left -= part;
    }
  }
  /// One call. The buffer goes on behind the end of a message, so none is made of two pieces.
  void push(std::size_t count) {
    while (::send(socket_.file(), user_.data() + at_, count, 0) < 0) {
      if (errno != ENOBUFS && errno != EAGAIN && errno != EINTR) fail("send");
    }
  }
  /// How many bytes came.
  std::size_t take() {
    const auto start = std::chrono::steady_clock::now();
    for (;;) {
      const ssize_t got = ::recv(socket_.file(), stage_.data(), stage_.size(), MSG_DONTWAIT);
      if (got >= 0) return static_cast<std::size_t>(got);
      if (errno != EAGAIN && errno != EINTR) fail("recv");
      if (std::chrono::steady_clock::now() - start > kPatience) {
        throw std::runtime_error(
            "stream: a datagram was lost, and none is repeated: measure as root, whose sockets may hold a "
            "whole stretch, over a network without faults or --rate");
      }
    }
  }
  void advance(std::size_t count) { at_ = (at_ + count) % message_; }

  UdpSocket socket_;
  std::size_t message_, window_bytes_;
  std::size_t call_ = 0;  ///< bytes of a call
  std::size_t at_ = 0;    ///< where in the message
  std::vector<char> user_, stage_;
};

}  // namespace

Benchmark stream_measure(const Item& item, ControlConnection& line, const WireChoice& wire) {
  if (item.bytes == 0) throw std::invalid_argument("stream: at least 1 byte");
  const auto stream = std::make_shared<Stream>(line, wire.interface, item);
  Benchmark work;
  work.figure = Figure::bytes_per_second;
  work.messages = item.window;
  work.bytes = work.messages * static_cast<double>(item.bytes);
  work.lead = [stream](std::uint64_t) { stream->send_window(); };
  work.follow = [stream](std::uint64_t) { stream->receive_window(); };
  return work;
}

}  // namespace perf
