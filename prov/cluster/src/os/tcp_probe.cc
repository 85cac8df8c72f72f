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

#include "os/descriptor.h"
#include "os/port_filter.h"
#include "os/progress_thread.h"
#include "os/system_clock.h"
#include "os/system_random.h"

namespace cluster::os {
namespace {

constexpr int kBacklog = 4096;  // the kernel cuts it to net.core.somaxconn
/// The listener takes up to this many connections out of the queue although the other side still holds them,
/// in order to see the connections behind them.
constexpr std::size_t kHeldMax = 32;
constexpr Duration kHeldCheck = std::chrono::seconds(1);
/// The peer's kernel is asked once a second; an older answer proves nothing about now.
constexpr Duration kFresh = std::chrono::milliseconds(1500);
constexpr int kKeepAliveSeconds = 1;
/// A host that asks sends a keep-alive each second. A host that is silent for this long, and answers no
/// keep-alive, has vanished.
constexpr int kVanishedIdleSeconds = 2;
constexpr int kVanishedProbes = 3;
constexpr int kVanishedMilliseconds = 5000;
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

/// Makes the kernel send keep-alives on an established connection from now on.
void keep_alive(const Descriptor& connection) {
  tune(connection.number(), IPPROTO_TCP, TCP_KEEPIDLE, kKeepAliveSeconds);
  tune(connection.number(), IPPROTO_TCP, TCP_KEEPINTVL, kKeepAliveSeconds);
  tune(connection.number(), SOL_SOCKET, SO_KEEPALIVE, 1);
}

/// Begins to connect. Returns an errno; EINPROGRESS means that no answer has come yet.
int call(const SocketAddress& own, const SocketAddress& peer, Descriptor& connection) {
  connection = tcp_socket(peer);
  if (!connection) return errno;
  // Connect from the address by which the peer knows this host. If that is not possible, the peer treats this
  // host like any other.
  tune(connection.number(), IPPROTO_IP, IP_BIND_ADDRESS_NO_PORT, 1);
  if (own.family() == peer.family()) with_address<::bind>(connection, own.with_port(0));
  tune(connection.number(), IPPROTO_TCP, TCP_SYNCNT, kSynRetries);
  // Nothing of the connection lingers after it is closed.
  const linger abort{1, 0};
  setsockopt(connection.number(), SOL_SOCKET, SO_LINGER, &abort, sizeof abort);
  const int error = with_address<::connect>(connection, peer);
  // If the peer's port is on this node and free, the kernel may give that port to the connection, which then
  // meets itself.
  sockaddr_storage from;
  socklen_t size = sizeof from;
  ::getsockname(connection.number(), reinterpret_cast<sockaddr*>(&from), &size);
  return SocketAddress::from(reinterpret_cast<const sockaddr*>(&from), size) == peer ? EADDRINUSE : error;
}

int error_of(const Descriptor& connection) {
  pollfd watch{connection.number(), POLLOUT | POLLRDHUP, 0};
  if (::poll(&watch, 1, 0) <= 0) return EINPROGRESS;
  int error = 0;
  socklen_t size = sizeof error;
  if (::getsockopt(connection.number(), SOL_SOCKET, SO_ERROR, &error, &size) != 0) return errno;
  return error == 0 && (watch.revents & (POLLRDHUP | POLLHUP)) != 0 ? ECONNRESET : error;
}

/// Returns the answer that an established connection gives.
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

}  // namespace

/// A socket that listens, and the connections of peers that have been taken out of its queue.
struct ProbeListener {
  Descriptor socket;
  std::deque<Descriptor> held;
  Time cleared_at{};
  std::shared_ptr<void> client;  ///< on the progress thread; ends before what it uses

  /// Returns an errno.
  int bind(const SocketAddress& name) {
    socket = tcp_socket(name);
    if (!socket) return errno;
    // Connections of an earlier process on this port may linger in the kernel.
    tune(socket.number(), SOL_SOCKET, SO_REUSEADDR, 1);
    return with_address<::bind>(socket, name);
  }
  /// Returns an errno. Connections inherit these options, by which the kernel closes a connection whose host
  /// has vanished.
  int listen() {
    tune(socket.number(), IPPROTO_TCP, TCP_KEEPIDLE, kVanishedIdleSeconds);
    tune(socket.number(), IPPROTO_TCP, TCP_KEEPINTVL, 1);
    tune(socket.number(), IPPROTO_TCP, TCP_KEEPCNT, kVanishedProbes);
    tune(socket.number(), IPPROTO_TCP, TCP_USER_TIMEOUT, kVanishedMilliseconds);
    tune(socket.number(), SOL_SOCKET, SO_KEEPALIVE, 1);
    if (::listen(socket.number(), kBacklog) != 0) return errno;
    int error = 0;
    client = start_progress_client([this] { return keep_clear(); }, error);
    return error;
  }
  /// Runs once on the progress thread. The queue has space for all connections that come within kHeldCheck.
  NextWake keep_clear() {
    const Time now = SystemClock().now();
    if (now - cleared_at < kHeldCheck) return {kHeldCheck - (now - cleared_at)};
    cleared_at = now;
    std::erase_if(held, given_up);
    while (held.size() < kHeldMax) {
      Descriptor next(::accept4(socket.number(), nullptr, nullptr, SOCK_NONBLOCK | SOCK_CLOEXEC));
      if (!next && errno == EAGAIN) return {NextWake::kUntilReadable, socket.number()};
      if (!next) break;
      if (!given_up(next)) held.push_back(std::move(next));
    }
    return {kHeldCheck};
  }
};

/// The first listener is for members. It is the only one if there cannot be two.
struct ProbePort {
  ProbeListener members;
  ProbeListener others;
};

std::unique_ptr<TcpProbe> TcpProbe::open(const SocketAddress& name, Log& log) {
  auto port = std::make_shared<ProbePort>();
  int error = port->members.bind(name);
  if (error == 0) {
    // The second listener shares the port only now, so that the bind() above notices a port in use.
    Descriptor& second = port->others.socket = tcp_socket(name);
    for (const Descriptor* each : {&port->members.socket, &second})
      tune(each->number(), SOL_SOCKET, SO_REUSEPORT, 1);
    if (second && with_address<::bind>(second, name) != 0) second.reset();
    // The steering program numbers the sockets in the order in which they began to listen.
    error = port->members.listen();
    if (error == 0 && second && port->others.listen() != 0) second.reset();
  }
  if (error != 0) {
    port.reset();
    log.info(
        "endpoint %s cannot listen on the TCP port of its number (%s); peers declare this process dead if it "
        "is stopped",
        name.text().c_str(), error_text(error).c_str());
  }
  std::unique_ptr<TcpProbe> probe(new TcpProbe(name, std::move(port), SystemRandom().next()));
  probe->set_members({});
  return probe;
}

/// If the kernel does not take the program, it divides all connections among both listeners.
void TcpProbe::set_members(std::span<const SocketAddress> hosts) {
  if (port_ == nullptr || !port_->others.socket) return;
  FilterProgram program = steering_by_host(hosts, name_.family(), secret_);
  attach_filter(port_->members.socket.number(), SO_ATTACH_REUSEPORT_CBPF, program);
}

link::ProcessProbe::Answer TcpProbe::ask(const SocketAddress& peer) {
  auto& [connection, watched] = asked_[peer];
  const bool again = static_cast<bool>(connection);
  const int error = again ? error_of(connection) : call(name_, peer, connection);
  if (again && error == 0 && !std::exchange(watched, true)) keep_alive(connection);
  Answer answer = Answer::none;
  if (error == ECONNREFUSED || error == ECONNRESET) answer = Answer::ended;
  if (error == 0) answer = answer_of(connection);
  // After no route or no answer the next call asks again.
  if ((error != 0 && error != EINPROGRESS) || answer == Answer::ended) asked_.erase(peer);
  return answer;
}

}  // namespace cluster::os
