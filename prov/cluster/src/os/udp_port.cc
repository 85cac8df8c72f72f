#include "os/udp_port.h"

#include <arpa/inet.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <netinet/udp.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <utility>

#include "os/system_clock.h"

namespace cluster::os {
namespace {

// This size is enough for bursts of many small frames, for which the kernel accounts at least 768 bytes each.
// It is also small enough that an endpoint that reads nothing does not fill the machine's memory.
constexpr int kReceiveBuffer = 8 * 1024 * 1024;
constexpr int kSendBuffer = 2 * 1024 * 1024;
constexpr int kAsideBuffer = 64 * 1024;  // space for twice the frames of one read

bool set_option(int socket, int level, int option, int value) {
  return setsockopt(socket, level, option, &value, sizeof value) == 0;
}

void enlarge(int socket, int forced, int ordinary, int size) {
  // `forced` needs CAP_NET_ADMIN. `ordinary` cannot exceed the limit of the system.
  if (!set_option(socket, SOL_SOCKET, forced, size)) set_option(socket, SOL_SOCKET, ordinary, size);
}

/// Sets the options of a new socket. Ignores failures, because the endpoint works without these options.
void prepare(int socket, SocketAddress::Family family) {
  enlarge(socket, SO_RCVBUFFORCE, SO_RCVBUF, kReceiveBuffer);
  enlarge(socket, SO_SNDBUFFORCE, SO_SNDBUF, kSendBuffer);
  // With UDP_GRO, the kernel delivers a super-datagram whole and does not divide it again. A socket filter
  // drops or passes the whole super-datagram.
  set_option(socket, SOL_UDP, UDP_GRO, 1);
  // With IP_PMTUDISC_PROBE, the kernel always sets "don't fragment". It also ignores the MTU in ICMP errors,
  // so a forged error cannot reduce the size of our frames.
  if (family == SocketAddress::Family::v6) {
    set_option(socket, IPPROTO_IPV6, IPV6_V6ONLY, 1);
    set_option(socket, IPPROTO_IPV6, IPV6_RECVERR, 1);
    set_option(socket, IPPROTO_IPV6, IPV6_MTU_DISCOVER, IPV6_PMTUDISC_PROBE);
    set_option(socket, IPPROTO_IPV6, IPV6_DONTFRAG, 1);
  } else {
    set_option(socket, IPPROTO_IP, IP_RECVERR, 1);
    set_option(socket, IPPROTO_IP, IP_MTU_DISCOVER, IP_PMTUDISC_PROBE);
  }
}

Descriptor make_socket(SocketAddress::Family family, int& error) {
  const int domain = family == SocketAddress::Family::v6 ? AF_INET6 : AF_INET;
  Descriptor socket(::socket(domain, SOCK_DGRAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0));
  error = socket ? 0 : errno;
  if (socket) prepare(socket.number(), family);
  return socket;
}

int bind_to(int socket, const SocketAddress& address) {
  sockaddr_storage storage;
  const std::size_t size = address.to(storage);
  return bind(socket, reinterpret_cast<sockaddr*>(&storage), static_cast<socklen_t>(size)) == 0 ? 0 : errno;
}

/// Opens a socket at this address. Sets `name` to the address of the socket. If the port number of `wanted`
/// is 0, `name` has the port number that the kernel has chosen.
Descriptor open_at(const SocketAddress& wanted, SocketAddress& name, int& error) {
  Descriptor socket = make_socket(wanted.family(), error);
  if (!socket) return socket;
  error = bind_to(socket.number(), wanted);
  if (error != 0) return {};
  sockaddr_storage storage;
  socklen_t size = sizeof storage;
  if (getsockname(socket.number(), reinterpret_cast<sockaddr*>(&storage), &size) != 0) error = errno;
  name = SocketAddress::from(reinterpret_cast<sockaddr*>(&storage), size);
  return socket;
}

void copy_option(int from, int to, int level, int option) {
  int value = 0;
  socklen_t size = sizeof value;
  if (getsockopt(from, level, option, &value, &size) == 0) set_option(to, level, option, value);
}

/// Makes the socket send through the interface. If the kernel lacks the option, routes determine the
/// interface.
void bind_interface(int socket, SocketAddress::Family family, int interface) {
  const auto index = static_cast<int>(htonl(static_cast<std::uint32_t>(interface)));
  if (family == SocketAddress::Family::v6) {
    set_option(socket, IPPROTO_IPV6, IPV6_UNICAST_IF, index);
  } else {
    set_option(socket, IPPROTO_IP, IP_UNICAST_IF, index);
  }
}

/// Makes `socket` join the group, and `sender` send to groups through the same interface. The kernel reports
/// the membership to switches and routers (IGMP, MLD). The membership ends when the socket is closed.
bool join_group(int socket, int sender, const SocketAddress& group, int interface) {
  if (group.family() == SocketAddress::Family::v6) {
    ipv6_mreq request{};
    std::memcpy(&request.ipv6mr_multiaddr, group.ip().data(), sizeof request.ipv6mr_multiaddr);
    request.ipv6mr_interface = static_cast<unsigned>(interface);
    return setsockopt(socket, IPPROTO_IPV6, IPV6_JOIN_GROUP, &request, sizeof request) == 0 &&
           set_option(sender, IPPROTO_IPV6, IPV6_MULTICAST_IF, interface);
  }
  ip_mreqn request{};
  std::memcpy(&request.imr_multiaddr, group.ip().data(), sizeof request.imr_multiaddr);
  request.imr_ifindex = interface;
  return setsockopt(socket, IPPROTO_IP, IP_ADD_MEMBERSHIP, &request, sizeof request) == 0 &&
         setsockopt(sender, IPPROTO_IP, IP_MULTICAST_IF, &request, sizeof request) == 0;
}

}  // namespace

UdpPort::UdpPort(Descriptor socket, const SocketAddress& name)
    : socket_(std::move(socket)), path_errors_(name.family()), keep_alive_address_(name), name_(name) {
  path_errors_.add(socket_.number());
}

std::shared_ptr<UdpPort> UdpPort::open(const SocketAddress& wanted, int& error) {
  error = EAFNOSUPPORT;
  if (wanted.empty()) return nullptr;
  SocketAddress name;
  Descriptor socket = open_at(wanted, name, error);
  if (error != 0) return nullptr;
  return std::shared_ptr<UdpPort>(new UdpPort(std::move(socket), name));
}

std::shared_ptr<UdpPort> UdpPort::open_group(const SocketAddress& group, const UdpPort& of, int interface,
                                             int& error) {
  error = EAFNOSUPPORT;
  if (group.family() != of.name_.family()) return nullptr;
  Descriptor socket = make_socket(group.family(), error);
  if (!socket) return nullptr;
  set_option(socket.number(), SOL_SOCKET, SO_REUSEADDR, 1);
  error = bind_to(socket.number(), group);
  if (error != 0) return nullptr;
  if (!join_group(socket.number(), of.socket(), group, interface)) {
    error = errno;
    return nullptr;
  }
  return std::shared_ptr<UdpPort>(new UdpPort(std::move(socket), group));
}

void UdpPort::loop_groups(bool wanted) {
  const bool v6 = name_.family() == SocketAddress::Family::v6;
  set_option(socket_.number(), v6 ? IPPROTO_IPV6 : IPPROTO_IP, v6 ? IPV6_MULTICAST_LOOP : IP_MULTICAST_LOOP,
             wanted ? 1 : 0);
}

std::size_t UdpPort::read_path_errors(std::span<link::PathError> errors) {
  drain_path_errors();
  return path_errors_.take(errors);
}

void UdpPort::drain_path_errors() { path_errors_.drain(SystemClock().now()); }

void UdpPort::bind_egress(int index) {
  interface_ = index;
  bind_interface(socket_.number(), name_.family(), index);
}

bool UdpPort::ignore_interface(int index) {
  FilterProgram program = frames_beside_ring(index);
  if (attach_filter(socket_.number(), SO_ATTACH_FILTER, program) != 0) return false;
  ignored_ = index;
  return true;
}

void UdpPort::move_to(int index) {
  if (interface_ != 0 && interface_ != index) {
    bind_egress(index);
    for (const Descriptor* more : {&keep_alive_socket_, &aside_socket_}) {
      if (*more) bind_interface(more->number(), name_.family(), index);
    }
  }
  if (ignored_ != 0 && ignored_ != index) ignore_interface(index);
}

link::Thinning UdpPort::thin(link::Thinning thinning) {
  if (thinning.on && !aside_socket_) {
    thinning.on = share(aside_socket_, &PortSockets::aside) == 0;
    if (aside_socket_) enlarge(aside_socket_.number(), SO_RCVBUFFORCE, SO_RCVBUF, kAsideBuffer);
  }
  if (aside_socket_) {
    FilterProgram program = steering(places_, thinning);
    if (attach_filter(socket_.number(), SO_ATTACH_REUSEPORT_CBPF, program) != 0) return thinning_;
  }
  thinning_ = thinning;
  return thinning;
}

/// Opens another socket at the address of the socket `main`, which is `name`.
Descriptor UdpPort::open_beside(const Descriptor& main, const SocketAddress& name, int& error) const {
  Descriptor made = make_socket(name.family(), error);
  if (!made) return made;
  if (!set_option(main.number(), SOL_SOCKET, SO_REUSEPORT, 1) ||
      !set_option(made.number(), SOL_SOCKET, SO_REUSEPORT, 1)) {
    error = errno;
    return made;
  }
  error = bind_to(made.number(), name);
  if (interface_ != 0) bind_interface(made.number(), name.family(), interface_);
  return made;
}

/// The progress thread sleeps on the keep-alive socket. Therefore the old socket stays open until the thread
/// uses the new one. shutdown() of the old socket wakes the thread.
int UdpPort::readdress(const SocketAddress& to) {
  int error = 0;
  SocketAddress name;
  Descriptor main = open_at(to.with_port(name_.port()), name, error);
  if (error == EADDRINUSE) main = open_at(to.with_port(0), name, error);
  Descriptor keep_alives;
  Descriptor aside;
  if (error == 0 && keep_alive_socket_) keep_alives = open_beside(main, name, error);
  if (error == 0 && aside_socket_) aside = open_beside(main, name, error);
  PortSockets places;
  if (keep_alives) places.keep_alives = 1;
  if (aside) places.aside = keep_alives ? 2 : 1;
  FilterProgram program = steering(places, thinning_);
  if (error == 0 && (keep_alives || aside))
    error = attach_filter(main.number(), SO_ATTACH_REUSEPORT_CBPF, program);
  if (error != 0) return error;
  copy_option(socket_.number(), main.number(), SOL_SOCKET, SO_TIMESTAMPNS);
  dup3(main.number(), socket_.number(), O_CLOEXEC);
  if (aside) dup3(aside.number(), aside_socket_.number(), O_CLOEXEC);
  places_ = places;
  name_ = name;
  if (interface_ != 0) bind_egress(interface_);
  if (ignored_ != 0) ignore_interface(ignored_);
  if (!keep_alives) return 0;
  const std::lock_guard guard(replacing_);
  next_keep_alive_socket_ = std::move(keep_alives);
  keep_alive_address_ = name;
  shutdown(keep_alive_socket_.number(), SHUT_RD);
  return 0;
}

UdpPort::KeepAlives UdpPort::keep_alives() {
  const std::lock_guard guard(replacing_);
  if (next_keep_alive_socket_) {
    path_errors_.remove(keep_alive_socket_.number());
    former_keep_alive_socket_ = std::exchange(keep_alive_socket_, std::move(next_keep_alive_socket_));
    path_errors_.add(keep_alive_socket_.number());
  } else {
    former_keep_alive_socket_.reset();
  }
  return {keep_alive_socket_.number(), keep_alive_address_};
}

/// Opens another socket with this port number into `socket`, and enters the socket's number within the
/// reuseport group in `places_`. Returns 0 or an errno.
int UdpPort::share(Descriptor& socket, std::uint32_t PortSockets::*place) {
  int error = 0;
  Descriptor made = open_beside(socket_, name_, error);
  if (error != 0) return error;
  PortSockets places = places_;
  places.*place = keep_alive_socket_ ? 2 : 1;
  FilterProgram program = steering(places);
  error = attach_filter(socket_.number(), SO_ATTACH_REUSEPORT_CBPF, program);
  if (error != 0) return error;  // without the program, the kernel would deliver data to the new socket
  places_ = places;
  socket = std::move(made);
  path_errors_.add(socket.number());
  return 0;
}

int UdpPort::open_keep_alive_socket(int& error) {
  error = share(keep_alive_socket_, &PortSockets::keep_alives);
  return error == 0 ? keep_alive_socket_.number() : -1;
}

void UdpPort::close_keep_alive_socket() {
  next_keep_alive_socket_.reset();
  former_keep_alive_socket_.reset();
  path_errors_.remove(keep_alive_socket_.number());
  keep_alive_socket_.reset();
}

}  // namespace cluster::os
