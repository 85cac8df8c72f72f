// The UDP port of an endpoint. The endpoint binds a UDP socket to the port, whatever link it has. This socket
// reserves the port number. It receives ICMP errors, and carries the frames that a faster link does not
// carry. Once the process is dead and the socket is closed, the kernel answers "port unreachable" to peers.
//
// Two more sockets may share the port number. One belongs to the keep-alive responder, and receives frames of
// kind keep_alive. The other receives the frames that wait aside (link/link.h). thin() opens it at the first
// flood. The main socket is bound before it gets the option SO_REUSEPORT, so that bind() fails if the number
// is in use. The kernel requires this option of all sockets that share a port number. It also requires that
// these sockets belong to one user.
#pragma once

#include <memory>
#include <mutex>
#include <span>

#include "base/address.h"
#include "link/link.h"
#include "os/descriptor.h"
#include "os/path_error_queue.h"
#include "os/port_filter.h"

namespace cluster::os {

class UdpPort {
 public:
  /// Opens a port. If the port number of `wanted` is 0, the kernel chooses a free one. On failure, returns
  /// null and sets `error` to an errno (EADDRINUSE, EADDRNOTAVAIL, EACCES...).
  static std::shared_ptr<UdpPort> open(const SocketAddress& wanted, int& error);

  /// Opens a socket that receives frames to a multicast group. `group`: the address and port of the group.
  /// `interface`: the index of the interface that has the address of `of`. Several endpoints of a node may
  /// share the group's port; each endpoint receives its own copy of a frame. After this call, `of` sends
  /// frames to groups through that interface.
  static std::shared_ptr<UdpPort> open_group(const SocketAddress& group, const UdpPort& of, int interface,
                                             int& error);

  /// Sets whether the kernel also delivers this port's group frames to the members on this node. By default
  /// it does.
  void loop_groups(bool wanted);

  /// Returns the address of the port, with the port number that the kernel chose.
  const SocketAddress& name() const { return name_; }
  /// Returns the main socket, which does not block. The link reads it and sends through it.
  int socket() const { return socket_.number(); }

  /// Does what Link::read_path_errors() does, for every type of link. This function also returns errors about
  /// raw frames, because the kernel assigns ICMP errors to sockets by port number.
  std::size_t read_path_errors(std::span<link::PathError> errors);
  /// Takes the errors from the sockets, and keeps them for read_path_errors(). The users of the port call
  /// this function after a system call on one of the sockets has reported an error. Any thread may call it.
  void drain_path_errors();
  /// Notes that this host's firewall has dropped a frame. read_path_errors() then returns an error about the
  /// frame's path. Any thread may call this function.
  void note_prohibited(const link::OutFrame& frame) { path_errors_.add_prohibited(frame); }

  /// Makes the port send through this interface, whatever the routes say. If two rails are in one network,
  /// the routes would lead the frames of both rails through the same interface. After this call, the port
  /// cannot reach peers on this node, because frames to them would have to go through the loopback interface.
  void bind_egress(int index);

  /// Makes the main socket drop the frames that a ring on this interface receives. Returns false if the
  /// kernel refuses. Closing the port does not remove this filter, because a forked child shares the socket
  /// with its parent and must not change the parent's filter.
  bool ignore_interface(int index);

  /// Called after the address of the port has moved to this interface. bind_egress() and ignore_interface(),
  /// if they were called, now apply to this interface.
  void move_to(int index);

  /// Replaces the sockets by sockets at another address. The main socket keeps the number of its descriptor.
  /// The port keeps its port number if this number is free at the other address. The frames that wait in the
  /// sockets are lost. Returns 0 or an errno; on failure nothing is changed.
  int readdress(const SocketAddress& to);

  /// Does what Link::thin() does, for every type of link. Returns the thinning that is now in effect. If
  /// there is no socket for frames that wait aside, thinning stays off. If there is no memory for a filter,
  /// thinning stays as it was.
  link::Thinning thin(link::Thinning thinning);
  const link::Thinning& thinning() const { return thinning_; }
  /// Returns the socket in which frames wait aside, or -1 before the first flood.
  int aside_socket() const { return aside_socket_.number(); }

  /// Opens the socket of the keep-alive responder. On failure, returns -1 and sets `error` to an errno. This
  /// function must be called before the first flood. While this function or close_keep_alive_socket() runs,
  /// no other thread may use a link on this port.
  int open_keep_alive_socket(int& error);
  void close_keep_alive_socket();
  /// Returns the current socket of the responder, and the address to which peers have sent the keep-alives in
  /// it. The responder calls this function before each read, and may use the returned socket only until its
  /// next call.
  struct KeepAlives {
    int socket;
    SocketAddress address;
  };
  KeepAlives keep_alives();

 private:
  UdpPort(Descriptor socket, const SocketAddress& name);
  int share(Descriptor& socket, std::uint32_t PortSockets::*place);
  Descriptor open_beside(const Descriptor& main, const SocketAddress& name, int& error) const;

  Descriptor socket_;
  Descriptor keep_alive_socket_;
  Descriptor aside_socket_;
  PathErrorQueue path_errors_;
  PortSockets places_;
  link::Thinning thinning_;  ///< the thinning in effect
  /// Guards the successor of keep_alive_socket_ and its address. The responder takes both with its next call
  /// of keep_alives().
  std::mutex replacing_;
  Descriptor next_keep_alive_socket_;
  SocketAddress keep_alive_address_;
  Descriptor former_keep_alive_socket_;
  SocketAddress name_;
  int interface_ = 0;  ///< index of the interface to send through; 0 if routes determine it
  int ignored_ = 0;    ///< index of the ignored interface; 0 if there is none
};

}  // namespace cluster::os
