#include "udp_socket.h"

#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include "wire_headers.h"

namespace perf {

UdpSocket::UdpSocket(ControlConnection& line, const std::string& interface) {
  file_ = ::socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
  if (file_ < 0) fail("UDP socket");
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = address_of(interface).ip;
  socklen_t size = sizeof address;
  if (::bind(file_, reinterpret_cast<sockaddr*>(&address), size) != 0 ||
      ::getsockname(file_, reinterpret_cast<sockaddr*>(&address), &size) != 0) {
    fail("UDP port");
  }
  const std::string theirs = line.exchange({reinterpret_cast<const char*>(&address), sizeof address});
  theirs.copy(reinterpret_cast<char*>(&address), sizeof address);
  if (::connect(file_, reinterpret_cast<sockaddr*>(&address), size) != 0) fail("connect");
  line.exchange("connected");
}

UdpSocket::~UdpSocket() { ::close(file_); }

}  // namespace perf
