#include "control_connection.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <stdexcept>
#include <utility>

namespace perf {
namespace {

constexpr std::size_t kBlobMax = 1 << 20;

[[noreturn]] void fail(const char* what) {
  throw std::runtime_error(std::string(what) + ": " + std::strerror(errno));
}

sockaddr_in address_of(const std::string& host, std::uint16_t port) {
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_port = htons(port);
  if (::inet_pton(AF_INET, host.c_str(), &address.sin_addr) != 1) {
    throw std::invalid_argument("'" + host + "' is no IPv4 address");
  }
  return address;
}

void send_at_once(int socket) {
  const int on = 1;
  ::setsockopt(socket, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
}

}  // namespace

ControlConnection ControlConnection::answer(const std::function<void(std::uint16_t)>& announce) {
  const int listener = ::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  sockaddr_in address = address_of("0.0.0.0", 0);
  socklen_t size = sizeof address;
  if (listener < 0 || ::bind(listener, reinterpret_cast<sockaddr*>(&address), size) != 0 ||
      ::listen(listener, 1) != 0 ||
      ::getsockname(listener, reinterpret_cast<sockaddr*>(&address), &size) != 0) {
    fail("listen");
  }
  announce(ntohs(address.sin_port));
  const int socket = ::accept(listener, nullptr, nullptr);
  ::close(listener);
  if (socket < 0) fail("accept");
  send_at_once(socket);
  return ControlConnection(socket);
}

ControlConnection ControlConnection::call(const std::string& host, std::uint16_t port) {
  const int socket = ::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  const sockaddr_in address = address_of(host, port);
  if (socket < 0 || ::connect(socket, reinterpret_cast<const sockaddr*>(&address), sizeof address) != 0) {
    fail(("connect to " + host).c_str());
  }
  send_at_once(socket);
  return ControlConnection(socket);
}

ControlConnection::ControlConnection(ControlConnection&& other) noexcept
    : socket_(std::exchange(other.socket_, -1)) {}

ControlConnection::~ControlConnection() {
  if (socket_ >= 0) ::close(socket_);
}

void ControlConnection::send(const void* data, std::size_t size) {
  const char* at = static_cast<const char*>(data);
  while (size > 0) {
    const ssize_t sent = ::send(socket_, at, size, MSG_NOSIGNAL);
    if (sent <= 0) fail("the other side is gone");
    at += sent;
    size -= static_cast<std::size_t>(sent);
  }
}

void ControlConnection::receive(void* data, std::size_t size) {
  char* at = static_cast<char*>(data);
  while (size > 0) {
    const ssize_t got = ::recv(socket_, at, size, 0);
    if (got == 0) throw std::runtime_error("the other side is gone");
    if (got < 0) fail("receive");
    at += got;
    size -= static_cast<std::size_t>(got);
  }
}

bool ControlConnection::readable() const {
  pollfd entry{socket_, POLLIN, 0};
  return ::poll(&entry, 1, 0) > 0;
}

void ControlConnection::put_blob(const std::string& blob) {
  put(static_cast<std::uint32_t>(blob.size()));
  send(blob.data(), blob.size());
}

std::string ControlConnection::take_blob() {
  const auto size = take<std::uint32_t>();
  if (size > kBlobMax) throw std::runtime_error("the other side talks nonsense");
  std::string blob(size, '\0');
  receive(blob.data(), size);
  return blob;
}

std::string ControlConnection::exchange(const std::string& mine) {
  put_blob(mine);
  return take_blob();
}

void ControlConnection::meet(const std::function<void()>& progress) {
  put('m');
  while (!readable()) progress();
  take<char>();
}

}  // namespace perf
