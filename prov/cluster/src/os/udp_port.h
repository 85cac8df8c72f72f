// The UDP port of an endpoint. An ordinary socket binds it under every link: it reserves the number, makes
// the kernel answer "port unreachable" once the process is dead, collects ICMP errors, and carries the frames
// that a faster link does not.
//
// Two more sockets may share the number: one for the keep-alive responder, to which frames of kind keep_alive go, and from the
// first flood on one where frames wait aside (link/link.h). The main one is bound without SO_REUSEPORT, so a number in use is
// noticed, and only then opened to sharing (the kernel requires it of all sockets of a group, and that they belong to one user).
#pragma once

#include <memory>
#include <span>

#include "base/address.h"
#include "link/link.h"
#include "os/descriptor.h"
#include "os/path_error_queue.h"
#include "os/port_filter.h"

namespace cluster::os {

class UdpPort {
 public:
  /// Null with an errno in `error`: EADDRINUSE, EADDRNOTAVAIL, EACCES... Port 0 takes a free one.
  static std::shared_ptr<UdpPort> open(const SocketAddress& wanted, int& error);

  /// A socket that receives what is sent to a multicast group (address and port) on the interface that has the address of
  /// `of`; several of a node may share it, and each gets its own copy. Frames for the group that leave by `of` leave by that
  /// interface from then on.
  static std::shared_ptr<UdpPort> open_group(const SocketAddress& group, const UdpPort& of, int interface,
                                             int& error);

  /// Whether frames for groups reach members on this node as well; they do at first.
  void loop_groups(bool wanted);

  /// As bound: with the port the kernel chose.
  const SocketAddress& name() const { return name_; }
  /// Non-blocking. Belongs to the link above it.
  int socket() const { return socket_.number(); }

  /// Link::read_path_errors() of every link, also for frames that were sent raw, since the kernel attributes
  /// ICMP errors by port number.
  std::size_t read_path_errors(std::span<link::PathError> errors);
  /// Takes them out of the sockets, until they are read. Called when a call on a socket has reported one; by any thread.
  void drain_path_errors();

  /// From now on frames leave by this interface, whatever the routes say: two rails may lie in one network.
  /// Peers on this node cannot be reached by it any more.
  void bind_egress(int index);

  /// From now on frames that come in through the interface are dropped here: a ring has them already. This is
  /// permanent: a forked child that tears down its copy must not change the parent's socket.
  bool ignore_interface(int index);

  /// The interface that has the port's address is that one now: what was said of the one before holds for it.
  void move_to(int index);

  /// As Link::thin() of every link. Returns what is in effect: without a socket for what is to wait aside, or memory for a filter, the
  /// flood costs what it costs.
  link::Thinning thin(link::Thinning thinning);
  /// Where frames have waited aside since the first flood; -1: there was none.
  int aside_socket() const { return aside_socket_.number(); }

  /// The socket of the responder, or -1 with an errno in `error`. Neither call may run while another thread uses a link
  /// on this port, and the first no more once frames have waited aside.
  int open_keep_alive_socket(int& error);
  void close_keep_alive_socket();

 private:
  UdpPort(Descriptor socket, const SocketAddress& name);
  int share(Descriptor& socket, std::uint32_t PortSockets::*place);

  Descriptor socket_;
  Descriptor keep_alive_socket_;
  Descriptor aside_socket_;
  PathErrorQueue path_errors_;
  PortSockets places_;
  SocketAddress name_;
  int interface_ = 0;  ///< 0: as routed
  int ignored_ = 0;    ///< interface; 0: none
};

}  // namespace cluster::os
