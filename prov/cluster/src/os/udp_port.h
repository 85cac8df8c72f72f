// The UDP port of an endpoint. Whatever the link, an ordinary socket binds it. This socket reserves the
// number, and makes the kernel answer "port unreachable" once the process is dead. It collects ICMP errors,
// and carries the frames that a faster link does not.
//
// Two more sockets may share the number. The keep-alive responder has one, which gets frames of kind
// keep_alive. From the first flood on, frames wait aside in another (link/link.h). The main socket is bound
// without SO_REUSEPORT, so that a number in use is noticed. Only then it gets the option, which the kernel
// requires of all sockets of a group; they must also belong to one user.
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
  /// Opens a port; port 0 takes a free one. Returns null on failure, with an errno in `error`: EADDRINUSE,
  /// EADDRNOTAVAIL, EACCES...
  static std::shared_ptr<UdpPort> open(const SocketAddress& wanted, int& error);

  /// Opens a socket that receives what is sent to a multicast group (address and port) on the interface that
  /// has the address of `of`. Several endpoints of a node may share the group's port; each gets its own copy.
  /// From then on, frames that `of` sends to the group leave by that interface.
  static std::shared_ptr<UdpPort> open_group(const SocketAddress& group, const UdpPort& of, int interface,
                                             int& error);

  /// Sets whether frames for groups reach members on this node as well. At first they do.
  void loop_groups(bool wanted);

  /// The address as bound, with the port that the kernel chose.
  const SocketAddress& name() const { return name_; }
  /// Non-blocking. Belongs to the link above it.
  int socket() const { return socket_.number(); }

  /// Does what Link::read_path_errors() does, for every link. It also finds errors about raw frames, because
  /// the kernel attributes ICMP errors by port number.
  std::size_t read_path_errors(std::span<link::PathError> errors);
  /// Takes the errors out of the sockets, and keeps them until they are read. Call it when a call on a socket
  /// has reported an error. Any thread may call.
  void drain_path_errors();

  /// Makes frames leave by this interface, whatever the routes say, because two rails may lie in one network.
  /// From then on, the port cannot reach peers on this node.
  void bind_egress(int index);

  /// Makes the socket drop frames that come in through the interface, because a ring has them already.
  /// Returns false if the kernel refuses. This is permanent: a forked child that closes its copy must not
  /// change the parent's socket.
  bool ignore_interface(int index);

  /// Says that the port's address is now on this interface. bind_egress() and ignore_interface() then apply
  /// to it.
  void move_to(int index);

  /// Does what Link::thin() does, for every link. Returns what is in effect: without a socket for frames
  /// aside, or memory for a filter, thinning stays off.
  link::Thinning thin(link::Thinning thinning);
  /// The socket where frames wait aside; -1 before the first flood.
  int aside_socket() const { return aside_socket_.number(); }

  /// Opens the socket of the responder. Returns -1 on failure, with an errno in `error`. Do not call it after
  /// frames have waited aside. Neither this call nor the next may run while another thread uses a link on
  /// this port.
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
  int interface_ = 0;  ///< of frames that leave; 0: as routed
  int ignored_ = 0;    ///< the ignored interface; 0: none
};

}  // namespace cluster::os
