#include "os/local_socket.h"

#include <fcntl.h>
#include <poll.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <vector>

#include "os/descriptor.h"
#include "os/system_random.h"

namespace cluster::os {
namespace {

/// A listener's queue of connections is long, because all ranks of a large node may connect at the same
/// moment. The kernel limits the length to net.core.somaxconn.
constexpr int kBacklog = 4096;
constexpr std::string_view kRefusal = "no";
constexpr int kPeerPidfd = 77;  ///< SO_PEERPIDFD, which older headers lack

/// Calls bind() or connect() with an abstract name.
template <int (*call)(int, const sockaddr*, socklen_t)>
int with_name(const Descriptor& socket, std::string_view name) {
  const LocalName address(name);
  return call(socket.number(), address.get(), address.size);
}

/// clear() receives at most this many datagrams. By default, the kernel queues fewer for a socket
/// (net.unix.max_dgram_qlen). If more datagrams wait, clear() leaves the socket readable.
constexpr int kRingsPerClear = 64;

Descriptor datagram_socket() {
  return Descriptor(::socket(AF_UNIX, SOCK_DGRAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0));
}

bool send_byte(const Descriptor& socket, const LocalName& peer) {
  const char byte = 0;
  return ::sendto(socket.number(), &byte, sizeof byte, MSG_DONTWAIT | MSG_NOSIGNAL, peer.get(), peer.size) >
         0;
}

Descriptor open_socket(std::string& reason) {
  Descriptor socket(::socket(AF_UNIX, SOCK_SEQPACKET | SOCK_NONBLOCK | SOCK_CLOEXEC, 0));
  if (!socket) reason = failed("socket");
  return socket;
}

/// A message in one buffer, with space for one descriptor.
struct RightsMessage {
  explicit RightsMessage(ConstBytes message) : part{const_cast<std::byte*>(message.data()), message.size()} {
    header.msg_iov = &part;
    header.msg_iovlen = 1;
    header.msg_control = &control;
    header.msg_controllen = sizeof control;
  }
  RightsMessage(const RightsMessage&) = delete;
  RightsMessage& operator=(const RightsMessage&) = delete;

  iovec part;
  alignas(cmsghdr) char control[CMSG_SPACE(sizeof(int))]{};
  msghdr header{};
};

/// Takes the descriptors from a received message. Moves the first one to `attachment` and closes the others.
/// Returns how many descriptors the message carried.
std::size_t take_descriptors(msghdr& message, Descriptor& attachment) {
  std::size_t count = 0;
  for (cmsghdr* control = CMSG_FIRSTHDR(&message); control != nullptr;
       control = CMSG_NXTHDR(&message, control)) {
    if (control->cmsg_level != SOL_SOCKET || control->cmsg_type != SCM_RIGHTS) continue;
    const std::size_t here = (control->cmsg_len - CMSG_LEN(0)) / sizeof(int);
    for (std::size_t i = 0; i < here; ++i) {
      int number;
      std::memcpy(&number, CMSG_DATA(control) + i * sizeof number, sizeof number);
      Descriptor owned(number);
      if (count++ == 0) attachment = std::move(owned);
    }
  }
  return count;
}

/// Reads numbers from the beginning of a file in /proc. Skips the first `skipped` numbers and returns the
/// next one, or 0 if there is none. Allocates no memory, because a failed allocation would lose the
/// connection that the caller has accepted.
unsigned read_number(const char* path, int skipped) {
  const Descriptor file(::open(path, O_RDONLY | O_CLOEXEC));
  std::array<char, 128> text{};
  if (!file || ::read(file.number(), text.data(), text.size() - 1) <= 0) return 0;
  unsigned long number = 0;
  char* at = text.data();
  for (int i = 0; i <= skipped; ++i) number = std::strtoul(at, &at, 10);
  return static_cast<unsigned>(number);
}

/// Returns true if `user` is certainly the effective user of this process. The kernel shows all users that
/// have no number in this user namespace as the overflow user (user_namespaces(7)). Two processes that appear
/// as the overflow user may therefore have different users. If the namespace maps all users, only one user
/// has the number of the overflow user, and the result is certain.
bool is_own(unsigned user) {
  constexpr unsigned kUsers = 0xFFFFFFFF;
  if (user != ::geteuid()) return false;
  const unsigned overflow_user = read_number("/proc/sys/kernel/overflowuid", 0);
  const bool may_be_it = user == (overflow_user != 0 ? overflow_user : 65534);
  return !may_be_it || read_number("/proc/self/uid_map", 2) == kUsers;
}

/// Returns the abstract name of one end of the connection, without its leading zero byte.
template <int (*call)(int, sockaddr*, socklen_t*)>
std::string name_of(const Descriptor& socket) {
  sockaddr_un address{};
  socklen_t size = sizeof address;
  constexpr socklen_t kBegin = offsetof(sockaddr_un, sun_path) + 1;
  if (call(socket.number(), reinterpret_cast<sockaddr*>(&address), &size) != 0 || size <= kBegin) return {};
  return {address.sun_path + 1, std::min<std::size_t>(size - kBegin, sizeof address.sun_path - 1)};
}

bool peer_credentials(const Descriptor& socket, ucred& credentials) {
  socklen_t size = sizeof credentials;
  return ::getsockopt(socket.number(), SOL_SOCKET, SO_PEERCRED, &credentials, &size) == 0 &&
         size == sizeof credentials;
}

}  // namespace

LocalName::LocalName(std::string_view name) {
  const std::size_t length = std::min(name.size(), sizeof address.sun_path - 1);
  address.sun_family = AF_UNIX;
  std::copy_n(name.data(), length, address.sun_path + 1);
  size = static_cast<socklen_t>(offsetof(sockaddr_un, sun_path) + 1 + length);
}

LocalSocket LocalSocket::listen(std::string_view name, std::string& reason) {
  Descriptor socket = open_socket(reason);
  if (!socket) return {};
  const bool bound = with_name<::bind>(socket, name) == 0;
  if (bound && ::listen(socket.number(), kBacklog) == 0) return LocalSocket(std::move(socket));
  reason = failed(bound ? "listen" : "bind");
  return {};
}

LocalSocket LocalSocket::connect(std::string_view name, std::string& reason, bool* full) {
  if (full != nullptr) *full = false;
  Descriptor socket = open_socket(reason);
  if (!socket) return {};
  if (with_name<::connect>(socket, name) == 0) return LocalSocket(std::move(socket));
  if (errno == ECONNREFUSED) {
    reason = "no process on this node offers it at this address";
  } else if (errno == EAGAIN) {
    reason = "too many connections to the peer wait to be accepted";
    if (full != nullptr) *full = true;
  } else {
    reason = failed("connect");
  }
  return {};
}

/// Returns true if a connection is waiting. Called before accept4(), because accept4() creates a socket even
/// if no connection is waiting. accept4() takes 2 us; this function takes 0.3 us.
bool LocalSocket::readable() const {
  pollfd watch{socket_.number(), POLLIN, 0};
  return ::poll(&watch, 1, 0) != 0;
}

LocalSocket LocalSocket::accept(std::string& reason, bool* exhausted) const {
  reason.clear();
  if (exhausted != nullptr) *exhausted = false;
  if (!readable()) return {};
  Descriptor socket(::accept4(socket_.number(), nullptr, nullptr, SOCK_NONBLOCK | SOCK_CLOEXEC));
  if (exhausted != nullptr) *exhausted = !socket && (errno == EMFILE || errno == ENFILE);
  if (!socket && errno != EAGAIN && errno != EINTR && errno != ECONNABORTED) reason = failed("accept");
  return LocalSocket(std::move(socket));
}

bool LocalSocket::same_user() const {
  const std::optional<unsigned> user = peer_user();
  return user && is_own(*user);
}

bool LocalSocket::other_user() const {
  const std::optional<unsigned> user = peer_user();
  return user && !is_own(*user);
}

std::optional<unsigned> LocalSocket::peer_user() const {
  ucred credentials;
  if (!peer_credentials(socket_, credentials)) return std::nullopt;
  return credentials.uid;
}

int LocalSocket::peer_process() const {
  ucred credentials;
  return peer_credentials(socket_, credentials) ? credentials.pid : 0;
}

std::string LocalSocket::called_name() const { return name_of<::getpeername>(socket_); }

std::string LocalSocket::answering_name() const { return name_of<::getsockname>(socket_); }

bool LocalSocket::send(ConstBytes message, const Descriptor& attachment, std::string& reason) const {
  RightsMessage out(message);
  cmsghdr* rights = CMSG_FIRSTHDR(&out.header);
  rights->cmsg_level = SOL_SOCKET;
  rights->cmsg_type = SCM_RIGHTS;
  rights->cmsg_len = CMSG_LEN(sizeof(int));
  const int number = attachment.number();
  std::memcpy(CMSG_DATA(rights), &number, sizeof number);
  if (::sendmsg(socket_.number(), &out.header, MSG_DONTWAIT | MSG_NOSIGNAL) ==
      static_cast<ssize_t>(message.size())) {
    return true;
  }
  reason = failed("sendmsg");
  return false;
}

bool LocalSocket::send(ConstBytes message) const {
  return ::send(socket_.number(), message.data(), message.size(), MSG_DONTWAIT | MSG_NOSIGNAL) ==
         static_cast<ssize_t>(message.size());
}

LocalSocket::Receipt LocalSocket::receive(Bytes message, Descriptor* attachment) {
  RightsMessage in(message);
  const ssize_t got = ::recvmsg(socket_.number(), &in.header, MSG_DONTWAIT | MSG_CMSG_CLOEXEC);
  if (got < 0) {
    const bool later = errno == EAGAIN || errno == EINTR || errno == ENOMEM || errno == ENOBUFS;
    return later ? Receipt::nothing : Receipt::end;
  }
  const auto size = static_cast<std::size_t>(got);
  Descriptor first;
  const std::size_t descriptors = take_descriptors(in.header, first);
  if (size == 0 && descriptors == 0) return Receipt::end;
  const bool cut = (in.header.msg_flags & (MSG_TRUNC | MSG_CTRUNC)) != 0;
  if (cut || size != message.size() || descriptors != (attachment != nullptr ? 1 : 0)) {
    refused_ |= descriptors == 0 && size == kRefusal.size();
    return Receipt::misfit;
  }
  if (attachment != nullptr) *attachment = std::move(first);
  return Receipt::message;
}

bool LocalSocket::refused() {
  char word;
  const auto receive = [&] { return ::recv(socket_.number(), &word, sizeof word, MSG_DONTWAIT | MSG_TRUNC); };
  ssize_t size = receive();
  // If the other side has closed without reading all messages of this side, the kernel returns this error
  // before the messages of the other side.
  if (size < 0 && errno == ECONNRESET) size = receive();
  refused_ |= size == static_cast<ssize_t>(kRefusal.size());
  return refused_;
}

void LocalSocket::send_refusal() const {
  ::send(socket_.number(), kRefusal.data(), kRefusal.size(), MSG_DONTWAIT | MSG_NOSIGNAL);
}

bool LocalSocket::hung_up() const {
  pollfd watch{socket_.number(), POLLRDHUP, 0};
  return ::poll(&watch, 1, 0) > 0 && (watch.revents & (POLLRDHUP | POLLHUP | POLLERR | POLLNVAL)) != 0;
}

void LocalSocket::wait_for_message(std::chrono::milliseconds limit) const {
  pollfd watch{socket_.number(), POLLIN | POLLRDHUP, 0};
  ::poll(&watch, 1, static_cast<int>(limit.count()));
}

/// Kernels before 6.5 cannot return a handle of the process at the other end. With such a kernel, this
/// function opens the process by its PID. The PID may meanwhile belong to another process.
Descriptor LocalSocket::open_process(bool& ended) const {
  int number = -1;
  socklen_t size = sizeof number;
  if (::getsockopt(socket_.number(), SOL_SOCKET, kPeerPidfd, &number, &size) == 0) return Descriptor(number);
  // These errors mean that the process has ended, and that its parent has collected its exit status.
  ended = errno == ESRCH || errno == EINVAL;
  if (errno != ENOPROTOOPT) return {};
  const int process = peer_process();
  number = process > 0 ? static_cast<int>(::syscall(SYS_pidfd_open, process, 0)) : -1;
  ended = number < 0 && process > 0 && errno == ESRCH;
  return Descriptor(number);
}

bool LocalSocket::peer_process_ended() const {
  bool ended = false;
  const Descriptor handle = open_process(ended);
  pollfd watch{handle.number(), POLLIN, 0};
  return ended || (handle && ::poll(&watch, 1, 0) > 0);
}

std::shared_ptr<Doorbell> Doorbell::open(const LocalName& name, std::string& reason) {
  Descriptor socket = datagram_socket();
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

/// EAGAIN has two possible causes. If the peer's queue is full, the peer's doorbell is readable already. But
/// the send buffer of this socket may be full of bytes to stopped peers, which do not receive. In this case
/// another socket can still send.
void Doorbell::ring(const LocalName& peer) const {
  if (send_byte(socket_, peer) || errno != EAGAIN) return;
  if (const Descriptor other = datagram_socket()) send_byte(other, peer);
}

/// If this process has no free descriptor to connect to the doorbell, rings the doorbell instead. If no
/// socket has the name, connect() and sendto() fail with the same error.
bool Doorbell::exists(const LocalName& peer) const {
  if (!asking_) asking_ = datagram_socket();
  const bool found =
      asking_ ? ::connect(asking_.number(), peer.get(), peer.size) == 0 : send_byte(socket_, peer);
  return found || errno != ECONNREFUSED;
}

namespace {

constexpr char kSeparator = '/';

std::string alternative(std::string_view name) {
  SystemRandom random;
  char end[17];
  std::snprintf(end, sizeof end, "%016llx", static_cast<unsigned long long>(random.next()));
  return std::string(name) + kSeparator + end;
}

/// Returns the names in the kernel's table of sockets that may be alternatives of `name`, at most
/// kAlternativesMax. In this table, an abstract name begins with @.
std::vector<std::string> alternatives_of(std::string_view name) {
  const std::string begin = "@" + std::string(name) + kSeparator;
  std::vector<std::string> found;
  std::ifstream table("/proc/net/unix");
  for (std::string line; found.size() < kAlternativesMax && std::getline(table, line);) {
    const std::size_t at = line.find(begin);
    if (at != std::string::npos) found.push_back(line.substr(at + 1));
  }
  return found;
}

}  // namespace

LocalSocket listen_as_own(std::string_view name, std::string& reason) {
  LocalSocket listener = LocalSocket::listen(name, reason);
  if (listener) return listener;
  std::string unconnected;
  const LocalSocket holder = LocalSocket::connect(name, unconnected);
  if (holder && holder.same_user()) return listener;
  return LocalSocket::listen(alternative(name), reason);
}

LocalSocket connect_to_own(std::string_view name, bool expected, std::string& reason, bool* full) {
  bool no_place = false;
  LocalSocket socket = LocalSocket::connect(name, reason, &no_place);
  if (full != nullptr) *full = expected && no_place;
  if (socket ? socket.same_user() : !expected) return socket;
  for (const std::string& other : alternatives_of(name)) {
    std::string none;
    LocalSocket connected = LocalSocket::connect(other, none, &no_place);
    if (connected && connected.same_user()) return connected;
    if (full != nullptr) *full |= expected && no_place;
  }
  if (socket) reason = "the process that listens at this address runs as another user";
  return {};
}

}  // namespace cluster::os
