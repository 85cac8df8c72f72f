#include "wire_port.h"

#include <linux/filter.h>
#include <net/if.h>
#include <netinet/in.h>
#include <netinet/udp.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cstddef>

#ifndef UDP_GRO
#define UDP_GRO 104
#endif

namespace perf {
namespace {

/// Refuses what came through the interface, or everything if there is none.
void attach_refusal(int socket, unsigned index) {
  const auto where = static_cast<std::uint32_t>(SKF_AD_OFF + SKF_AD_IFINDEX);
  sock_filter of_interface[] = {BPF_STMT(BPF_LD | BPF_W | BPF_ABS, where),
                                BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, index, 0, 1),
                                BPF_STMT(BPF_RET | BPF_K, 0), BPF_STMT(BPF_RET | BPF_K, 0xffffffff)};
  sock_filter everything[] = {BPF_STMT(BPF_RET | BPF_K, 0)};
  const sock_fprog filter = index != 0 ? sock_fprog{4, of_interface} : sock_fprog{1, everything};
  if (::setsockopt(socket, SOL_SOCKET, SO_ATTACH_FILTER, &filter, sizeof filter) != 0) fail("filter");
}

sockaddr_in inet_address(const WireAddress& address) {
  sockaddr_in inet{};
  inet.sin_family = AF_INET;
  inet.sin_port = address.port;
  inet.sin_addr.s_addr = address.ip;
  return inet;
}

}  // namespace

WirePort::WirePort(const WireChoice& choice, WireAddress& own) {
  if (choice.frames_as != FramesAs::udp) return;
  socket_ = ::socket(AF_INET, SOCK_DGRAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
  if (socket_ < 0) fail("UDP socket");
  const int gro = choice.behind == Behind::no_gro ? 0 : 1, least = 0;
  ::setsockopt(socket_, IPPROTO_UDP, UDP_GRO, &gro, sizeof gro);
  if (choice.behind == Behind::full) {
    ::setsockopt(socket_, SOL_SOCKET, SO_RCVBUF, &least, sizeof least);
  } else {
    attach_refusal(socket_, choice.behind == Behind::deaf ? 0 : ::if_nametoindex(choice.interface.c_str()));
  }
  sockaddr_in address = inet_address(own);
  socklen_t size = sizeof address;
  if (::bind(socket_, reinterpret_cast<sockaddr*>(&address), size) != 0 ||
      ::getsockname(socket_, reinterpret_cast<sockaddr*>(&address), &size) != 0) {
    fail("UDP port");
  }
  own.port = address.sin_port;
}

void WirePort::meet(const WireChoice& choice, const WireAddress& other) {
  if (socket_ < 0) return;
  if (choice.behind == Behind::nothing) {
    ::close(socket_);
    socket_ = -1;
  } else if (choice.behind == Behind::connected) {
    const sockaddr_in address = inet_address(other);
    if (::connect(socket_, reinterpret_cast<const sockaddr*>(&address), sizeof address) != 0) fail("connect");
  }
}

WirePort::~WirePort() {
  if (socket_ >= 0) ::close(socket_);
}

}  // namespace perf
