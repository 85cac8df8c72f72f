// One-way time of a datagram through ordinary UDP sockets, which may sleep for it or poll the driver
// meanwhile (SO_BUSY_POLL): whether there is a driver to poll, the socket knows (SO_INCOMING_NAPI_ID).
#include <sys/socket.h>

#include <cerrno>
#include <cstdio>
#include <vector>

#include "bare.h"
#include "udp_socket.h"
#include "wire_headers.h"

namespace perf {
namespace {

class Datagrams {
 public:
  Datagrams(ControlConnection& line, const WireChoice& wire, const DatagramChoice& choice, std::size_t bytes)
      : socket_(line, wire.interface), flags_(choice.sleeps ? 0 : MSG_DONTWAIT), bytes_(bytes) {
    const int polls = choice.busy_poll, prefer = polls != 0 ? 1 : 0;
    if (polls != 0 &&
        (::setsockopt(socket_.file(), SOL_SOCKET, SO_BUSY_POLL, &polls, sizeof polls) != 0 ||
         ::setsockopt(socket_.file(), SOL_SOCKET, SO_PREFER_BUSY_POLL, &prefer, sizeof prefer) != 0)) {
      fail("SO_BUSY_POLL");
    }
  }
  Datagrams(const Datagrams&) = delete;
  Datagrams& operator=(const Datagrams&) = delete;
  ~Datagrams() {
    unsigned driver = 0;
    socklen_t size = sizeof driver;
    ::getsockopt(socket_.file(), SOL_SOCKET, SO_INCOMING_NAPI_ID, &driver, &size);
    std::fprintf(stderr, driver == 0 ? "no driver queue to poll\n" : "driver queue %u\n", driver);
  }

  void send() {
    while (::send(socket_.file(), bytes_.data(), bytes_.size(), 0) < 0) {
      if (errno != ENOBUFS && errno != EAGAIN) fail("send");
    }
  }
  void receive() {
    while (::recv(socket_.file(), bytes_.data(), bytes_.size(), flags_) < 0) {
      if (errno != EAGAIN && errno != EINTR) fail("recv");
    }
  }

 private:
  UdpSocket socket_;
  int flags_;
  std::vector<char> bytes_;
};

}  // namespace

Benchmark datagram_measure(const Item& item, ControlConnection& line, const WireChoice& wire,
                           const DatagramChoice& choice, double pause) {
  return ping_pong(std::make_shared<Datagrams>(line, wire, choice, item.bytes), item, pause);
}

}  // namespace perf
