#include "os/tcp_probe.h"

#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <sys/socket.h>

#include <cerrno>
#include <cstring>
#include <string>
#include <utility>
#include <vector>

#include "os/descriptor.h"
#include "os/port_filter.h"
#include "os/progress_thread.h"
#include "os/system_clock.h"
#include "os/system_random.h"

namespace cluster::os {
namespace {

constexpr int kBacklog = 4096;  // the kernel limits it to net.core.somaxconn
/// The listener accepts connections, so that connections that the other side has closed leave the queue.
/// Connections that the other side keeps open may wait in front of the closed ones. The listener accepts
/// these open connections as well, and keeps at most this number of them.
constexpr std::size_t kHeldMax = 32;
constexpr Duration kHeldCheck = std::chrono::seconds(1);
/// An answer older than this does not show that the process exists now. The kernel of this host asks the
/// peer's kernel once a second.
constexpr Duration kFresh = std::chrono::milliseconds(1500);
constexpr int kKeepAliveSeconds = 1;
/// The host of an asking endpoint sends a TCP keep-alive every second. That host is no longer reachable if it
/// sends nothing for kVanishedIdleSeconds, and then answers none of kVanishedProbes keep-alives.
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

/// Makes the kernel send TCP keep-alives on an established connection.
void keep_alive(const Descriptor& connection) {
  tune(connection.number(), IPPROTO_TCP, TCP_KEEPIDLE, kKeepAliveSeconds);
  tune(connection.number(), IPPROTO_TCP, TCP_KEEPINTVL, kKeepAliveSeconds);
  tune(connection.number(), SOL_SOCKET, SO_KEEPALIVE, 1);
}

/// Begins to connect to `peer`. Returns 0 or an errno. EINPROGRESS means that no answer has arrived yet.
int call(const SocketAddress& own, const SocketAddress& peer, Descriptor& connection) {
  connection = tcp_socket(peer);
  if (!connection) return errno;
  // Connects from this endpoint's own address, by which the peer recognizes a host in its address vector. If
  // this side cannot bind to this address, the peer's listener for all other hosts accepts the connection.
  tune(connection.number(), IPPROTO_IP, IP_BIND_ADDRESS_NO_PORT, 1);
  if (own.family() == peer.family()) with_address<::bind>(connection, own.with_port(0));
  tune(connection.number(), IPPROTO_TCP, TCP_SYNCNT, kSynRetries);
  // With this option, the kernel keeps no state of a connection after this side has closed the connection.
  const linger abort{1, 0};
  setsockopt(connection.number(), SOL_SOCKET, SO_LINGER, &abort, sizeof abort);
  const int error = with_address<::connect>(connection, peer);
  // If the peer's address is on this node and its port is free, the kernel may bind the connection to that
  // very port. In this case the socket connects to itself, which the function reports as EADDRINUSE.
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

/// Returns what an established connection shows: that the process exists, or nothing if the last
/// acknowledgement is too old.
link::ProcessProbe::Answer answer_of(const Descriptor& connection) {
  using Answer = link::ProcessProbe::Answer;
  tcp_info info{};
  socklen_t size = sizeof info;
  if (::getsockopt(connection.number(), IPPROTO_TCP, TCP_INFO, &info, &size) != 0) return Answer::none;
  return std::chrono::milliseconds(info.tcpi_last_ack_recv) > kFresh ? Answer::none : Answer::exists;
}

/// Returns true if no segment has arrived on a connection that was refused. A kernel refuses a connection to
/// a closed port with a reset, which is a segment. An ICMP error has no segment, so a firewall has sent it.
bool rejected(const Descriptor& connection) {
  // The kernel's struct tcp_info has more members than that of the C library.
  struct {
    tcp_info known;
    std::uint64_t pacing_rate, pacing_rate_max, bytes_acked, bytes_received;
    std::uint32_t segments_out, segments_in;
  } info{};
  socklen_t size = sizeof info;
  if (::getsockopt(connection.number(), IPPROTO_TCP, TCP_INFO, &info, &size) != 0) return false;
  return info.segments_out > 0 && info.segments_in == 0;
}

bool given_up(const Descriptor& connection) {
  pollfd watch{connection.number(), POLLRDHUP, 0};
  return ::poll(&watch, 1, 0) > 0;
}

}  // namespace

/// A listening socket, and the connections that were accepted from its queue.
struct ProbeListener {
  Descriptor socket;
  std::vector<Descriptor> held;
  Time cleared_at{};
  /// Runs keep_clear() on the progress thread; declared last, so that it ends first.
  std::shared_ptr<void> client;

  /// Opens the socket and binds it to `name`. Returns 0 or an errno.
  int bind(const SocketAddress& name) {
    socket = tcp_socket(name);
    if (!socket) return errno;
    // The kernel may still have connections of an earlier process on this port. With this option, bind()
    // succeeds nevertheless.
    tune(socket.number(), SOL_SOCKET, SO_REUSEADDR, 1);
    return with_address<::bind>(socket, name);
  }
  /// Begins to listen. Returns 0 or an errno. Accepted connections inherit the options below. With these, the
  /// kernel closes a connection if the host at the other end is no longer reachable.
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
  /// A client of the progress thread. Accepts waiting connections, and closes those that the other side has
  /// closed. Between two calls, the queue has space for kBacklog new connections.
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

/// The two listeners. If the second one cannot be opened, the first accepts the connections of all hosts.
struct ProbePort {
  ProbeListener members;
  ProbeListener others;
};

std::unique_ptr<TcpProbe> TcpProbe::open(const SocketAddress& name, Log& log) {
  auto port = std::make_shared<ProbePort>();
  int error = port->members.bind(name);
  if (error == 0) {
    // Sets SO_REUSEPORT only after the first bind(), so that bind() fails if another program uses the port.
    Descriptor& second = port->others.socket = tcp_socket(name);
    for (const Descriptor* each : {&port->members.socket, &second})
      tune(each->number(), SOL_SOCKET, SO_REUSEPORT, 1);
    if (second && with_address<::bind>(second, name) != 0) second.reset();
    // `members` must call listen() before `others`, because the kernel numbers the sockets for the steering
    // program in the order of their listen() calls.
    error = port->members.listen();
    if (error == 0 && second && port->others.listen() != 0) second.reset();
  }
  if (error != 0) {
    port.reset();
    log.info(
        "endpoint %s cannot listen on the TCP port with the number of its UDP port (%s), so peers "
        "may declare this process dead while it is suspended (SIGSTOP, debugger)",
        name.text().c_str(), error_text(error).c_str());
  }
  std::unique_ptr<TcpProbe> probe(new TcpProbe(name, std::move(port), SystemRandom().next()));
  probe->set_members({});
  return probe;
}

/// If the kernel refuses the program, it distributes all connections over both listeners.
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
  if (error == ECONNRESET || (error == ECONNREFUSED && !rejected(connection))) answer = Answer::ended;
  if (error == 0) answer = answer_of(connection);
  // Forgets the connection after any error, so that the next ask() connects again. Keeps an attempt that is
  // still in progress.
  if ((error != 0 && error != EINPROGRESS) || answer == Answer::ended) asked_.erase(peer);
  return answer;
}

}  // namespace cluster::os
