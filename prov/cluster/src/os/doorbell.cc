#include "os/doorbell.h"

#include <algorithm>
#include <cerrno>
#include <cstddef>

#include "os/descriptor.h"

namespace cluster::os {
namespace {

/// More than the kernel keeps for a socket unless net.unix.max_dgram_qlen is higher. With more than that the socket stays readable.
constexpr int kRingsPerClear = 64;

Descriptor open_socket() {
  return Descriptor(::socket(AF_UNIX, SOCK_DGRAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0));
}

bool send_byte(const Descriptor& socket, const LocalName& peer) {
  const char byte = 0;
  return ::sendto(socket.number(), &byte, sizeof byte, MSG_DONTWAIT | MSG_NOSIGNAL, peer.get(), peer.size) >
         0;
}

}  // namespace

LocalName::LocalName(std::string_view name) {
  const std::size_t length = std::min(name.size(), sizeof address.sun_path - 1);
  address.sun_family = AF_UNIX;
  std::copy_n(name.data(), length, address.sun_path + 1);
  size = static_cast<socklen_t>(offsetof(sockaddr_un, sun_path) + 1 + length);
}

std::shared_ptr<Doorbell> Doorbell::open(const LocalName& name, std::string& reason) {
  Descriptor socket = open_socket();
  if (!socket) {
    reason = failed("socket");
  } else if (::bind(socket.number(), name.get(), name.size) != 0) {
    reason = failed("bind");
  } else {
    return std::shared_ptr<Doorbell>(new Doorbell(std::move(socket)));
  }
  return nullptr;
}

void Doorbell::clear() const {
  char byte;
  for (int i = 0; i < kRingsPerClear; ++i) {
    if (::recv(socket_.number(), &byte, sizeof byte, MSG_DONTWAIT) < 0) return;
  }
}

/// EAGAIN has two causes. The peer's queue is full: then its doorbell is readable anyway. Or this socket has used up its send buffer,
/// because stopped peers do not receive: then another socket can still send.
void Doorbell::ring(const LocalName& peer) const {
  if (send_byte(socket_, peer) || errno != EAGAIN) return;
  if (const Descriptor other = open_socket()) send_byte(other, peer);
}

/// Where no descriptor is left it rings the peer instead, which tells the same.
bool Doorbell::exists(const LocalName& peer) const {
  if (!asking_) asking_ = open_socket();
  const bool found =
      asking_ ? ::connect(asking_.number(), peer.get(), peer.size) == 0 : send_byte(socket_, peer);
  return found || errno != ECONNREFUSED;
}

}  // namespace cluster::os
