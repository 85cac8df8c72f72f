#include "os/tcp_probe.h"

#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <sys/socket.h>

#include <cerrno>
#include <cstring>
#include <deque>
#include <string>
#include <utility>

#include "os/progress_thread.h"
#include "os/system_clock.h"

namespace cluster::os {
namespace {

constexpr int kBacklog = 4096;  // the kernel cuts it to net.core.somaxconn
/// Connections that are taken out of the queue though the other side still holds them, so as to see those behind.
constexpr std::size_t kHeldMax = 32;
constexpr Duration kHeldCheck = std::chrono::seconds(1);
/// The peer's kernel is asked once a second; an older answer proves nothing about now.
constexpr Duration kFresh = std::chrono::milliseconds(1500);
constexpr int kKeepAliveSeconds = 1;
constexpr int kSynRetries = 2;

void tune(int socket, int level, int option, int value) {
  setsockopt(socket, level, option, &value, sizeof value);
}

Descriptor tcp_socket(const SocketAddress& address) {
  const int domain = address.family() == SocketAddress::Family::v6 ? AF_INET6 : AF_INET;
  return Descriptor(::socket(domain, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0));
}

template <int (*action)(int, const sockaddr*, socklen_t)>
int with_address(const Descriptor& socket, const SocketAddress& address) {
  sockaddr_storage storage;
  const std::size_t size = address.to(storage);
  const auto* const generic = reinterpret_cast<const sockaddr*>(&storage);
  return action(socket.number(), generic, static_cast<socklen_t>(size)) == 0 ? 0 : errno;
}

/// A connection that stands is watched by its kernel from now on.
void keep_alive(const Descriptor& connection) {
  tune(connection.number(), IPPROTO_TCP, TCP_KEEPIDLE, kKeepAliveSeconds);
  tune(connection.number(), IPPROTO_TCP, TCP_KEEPINTVL, kKeepAliveSeconds);
  tune(connection.number(), SOL_SOCKET, SO_KEEPALIVE, 1);
}

/// An errno; EINPROGRESS: no answer has come.
int call(const SocketAddress& peer, Descriptor& connection) {
  connection = tcp_socket(peer);
  if (!connection) return errno;
  tune(connection.number(), IPPROTO_TCP, TCP_SYNCNT, kSynRetries);
  // Nothing of it lingers when it is closed.
  const linger abort{1, 0};
  setsockopt(connection.number(), SOL_SOCKET, SO_LINGER, &abort, sizeof abort);
  const int error = with_address<::connect>(connection, peer);
  // A port of this node that is free may be given to the connection itself, which then meets itself.
  sockaddr_storage own;
  socklen_t size = sizeof own;
  ::getsockname(connection.number(), reinterpret_cast<sockaddr*>(&own), &size);
  return SocketAddress::from(reinterpret_cast<const sockaddr*>(&own), size) == peer.in_realm(0) ? EADDRINUSE : error;
}

int error_of(const Descriptor& connection) {
  pollfd watch{connection.number(), POLLOUT | POLLRDHUP, 0};
  if (::poll(&watch, 1, 0) <= 0) return EINPROGRESS;
  int error = 0;
  socklen_t size = sizeof error;
  if (::getsockopt(connection.number(), SOL_SOCKET, SO_ERROR, &error, &size) != 0) return errno;
  return error == 0 && (watch.revents & (POLLRDHUP | POLLHUP)) != 0 ? ECONNRESET : error;
}

/// Of a connection that stands.
link::ProcessProbe::Answer answer_of(const Descriptor& connection) {
  using Answer = link::ProcessProbe::Answer;
  tcp_info info{};
  socklen_t size = sizeof info;
  if (::getsockopt(connection.number(), IPPROTO_TCP, TCP_INFO, &info, &size) != 0) return Answer::none;
  return std::chrono::milliseconds(info.tcpi_last_ack_recv) > kFresh ? Answer::none : Answer::exists;
}

bool given_up(const Descriptor& connection) {
  pollfd watch{connection.number(), POLLRDHUP, 0};
  return ::poll(&watch, 1, 0) > 0;
}

/// The port, and the connections of peers that have been taken out of its queue.
struct Port {
  Descriptor listener;
  std::deque<Descriptor> held;
  Time cleared_at{};

  /// One run of the progress thread. The queue takes all that come within kHeldCheck.
  NextWake keep_clear() {
    const Time now = SystemClock().now();
    if (now - cleared_at < kHeldCheck) return {kHeldCheck - (now - cleared_at)};
    cleared_at = now;
    std::erase_if(held, given_up);
    while (held.size() < kHeldMax) {
      Descriptor next(::accept4(listener.number(), nullptr, nullptr, SOCK_NONBLOCK | SOCK_CLOEXEC));
      if (!next && errno == EAGAIN) return {NextWake::kUntilReadable, listener.number()};
      if (!next) break;
      if (!given_up(next)) held.push_back(std::move(next));
    }
    return {kHeldCheck};
  }
};

}  // namespace

std::unique_ptr<TcpProbe> TcpProbe::open(const SocketAddress& name, Log& log) {
  auto port = std::make_shared<Port>();
  port->listener = tcp_socket(name);
  int error = port->listener ? 0 : errno;
  if (error == 0) {
    // Connections of an earlier process on this port linger in the kernel.
    tune(port->listener.number(), SOL_SOCKET, SO_REUSEADDR, 1);
    error = with_address<::bind>(port->listener, name);
  }
  if (error == 0 && ::listen(port->listener.number(), kBacklog) != 0) error = errno;
  std::shared_ptr<void> client;
  if (error == 0) client = start_progress_client([port] { return port->keep_clear(); }, error);
  if (client == nullptr) {
    log.info("%s: no TCP port of this number (%s): should this process stop, peers take it for dead",
             name.text().c_str(), std::strerror(error));
  }
  return std::unique_ptr<TcpProbe>(new TcpProbe(std::move(client)));
}

link::ProcessProbe::Answer TcpProbe::ask(const SocketAddress& peer) {
  auto& [connection, watched] = asked_[peer];
  const bool again = static_cast<bool>(connection);
  const int error = again ? error_of(connection) : call(peer, connection);
  if (again && error == 0 && !std::exchange(watched, true)) keep_alive(connection);
  Answer answer = Answer::none;
  if (error == ECONNREFUSED || error == ECONNRESET) answer = Answer::ended;
  if (error == 0) answer = answer_of(connection);
  // After no route or no answer the next call asks again.
  if ((error != 0 && error != EINPROGRESS) || answer == Answer::ended) asked_.erase(peer);
  return answer;
}

}  // namespace cluster::os
