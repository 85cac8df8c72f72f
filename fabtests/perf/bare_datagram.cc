// One-way time of a datagram through ordinary UDP sockets, which may sleep for it or poll the driver
// meanwhile (SO_BUSY_POLL): whether there is a driver to poll, the socket knows (SO_INCOMING_NAPI_ID).
#include <arpa/inet.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <vector>

#include "bare.h"
#include "wire_headers.h"

namespace perf {
namespace {

class Datagrams {
 public:
  Datagrams(ControlConnection& line, const WireChoice& wire, const DatagramChoice& choice, std::size_t bytes)
      : flags_(choice.sleeps ? 0 : MSG_DONTWAIT), bytes_(bytes) {
    socket_ = ::socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
    if (socket_ < 0) fail("UDP socket");
    const int polls = choice.busy_poll, prefer = polls != 0 ? 1 : 0;
    if (polls != 0 && (::setsockopt(socket_, SOL_SOCKET, SO_BUSY_POLL, &polls, sizeof polls) != 0 ||
                       ::setsockopt(socket_, SOL_SOCKET, SO_PREFER_BUSY_POLL, &prefer, sizeof prefer) != 0)) {
      fail("SO_BUSY_POLL");
    }
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_addr.s_addr = address_of(wire.interface).ip;
    socklen_t size = sizeof address;
    if (::bind(socket_, reinterpret_cast<sockaddr*>(&address), size) != 0 ||
        ::getsockname(socket_, reinterpret_cast<sockaddr*>(&address), &size) != 0) {
      fail("UDP port");
    }
    const std::string theirs = line.exchange({reinterpret_cast<const char*>(&address), sizeof address});
    theirs.copy(reinterpret_cast<char*>(&address), sizeof address);
    if (::connect(socket_, reinterpret_cast<sockaddr*>(&address), size) != 0) fail("connect");
    line.exchange("connected");
  }
  Datagrams(const Datagrams&) = delete;
  Datagrams& operator=(const Datagrams&) = delete;
  ~Datagrams() {
    unsigned driver = 0;
    socklen_t size = sizeof driver;
    ::getsockopt(socket_, SOL_SOCKET, SO_INCOMING_NAPI_ID, &driver, &size);
    std::fprintf(stderr, driver == 0 ? "no driver queue to poll\n" : "driver queue %u\n", driver);
    ::close(socket_);
  }

  void send() {
    while (::send(socket_, bytes_.data(), bytes_.size(), 0) < 0) {
      if (errno != ENOBUFS && errno != EAGAIN) fail("send");
    }
  }
  void receive() {
    while (::recv(socket_, bytes_.data(), bytes_.size(), flags_) < 0) {
      if (errno != EAGAIN && errno != EINTR) fail("recv");
    }
  }

 private:
  int socket_ = -1;
  int flags_;
  std::vector<char> bytes_;
};

}  // namespace

Benchmark datagram_measure(const Item& item, ControlConnection& line, const WireChoice& wire,
                           const DatagramChoice& choice) {
  const auto datagrams = std::make_shared<Datagrams>(line, wire, choice, item.bytes);
  Benchmark work;
  work.figure = Figure::one_way_us;
  work.messages = 2;
  work.bytes = 2 * static_cast<double>(item.bytes);
  work.lead = [datagrams](std::uint64_t) {
    datagrams->send();
    datagrams->receive();
  };
  work.follow = [datagrams](std::uint64_t) {
    datagrams->receive();
    datagrams->send();
  };
  return work;
}

}  // namespace perf
