// A model of the kernel for ring groups: packet sockets on one interface, and their fanout groups.
//
// A fanout group is an array of sockets. A socket that enters goes to the end of the array. When a socket
// leaves, the last one takes its place. The group has no sockets while the interface is down. Afterwards
// they enter again in the order of their creation. A socket leaves when neither a process nor the keeper
// (os/ring_keeper.h) has it open any more.
#pragma once

#include <cstdint>
#include <map>
#include <span>
#include <vector>

#include "base/address.h"
#include "os/port_filter.h"

namespace cluster::sim {

class RingKernelModel {
 public:
  using Holder = std::uint64_t;
  static constexpr Holder kKeeper = 0;

  void open(std::uint64_t socket, Holder holder);
  /// Gives this holder a descriptor of the socket. Returns false if there is no such socket.
  bool hold(std::uint64_t socket, Holder holder);
  /// Closes all descriptors of this holder.
  void close(Holder holder);
  void close(std::uint64_t socket, Holder holder);
  bool holds(std::uint64_t socket, Holder holder) const;
  void set_filter(std::uint64_t socket, const SocketAddress& address) {
    sockets_.at(socket).filter = address;
  }

  /// Returns the id of a new fanout group.
  std::uint32_t make_fanout() { return ++fanouts_; }
  void enter_fanout(std::uint64_t socket, std::uint32_t id);
  std::size_t sockets_in_fanout(std::uint32_t id) const;
  void install(std::uint32_t id, const os::FilterProgram& program) { programs_[id] = program; }
  std::uint32_t fanout_of(std::uint64_t socket) const { return sockets_.at(socket).fanout; }

  bool up() const { return up_; }
  void set_up(bool up);
  std::size_t sockets() const { return sockets_.size(); }
  /// Returns the sockets that get a frame to this address.
  std::vector<std::uint64_t> deliver(const SocketAddress& address) const;

 private:
  struct Socket {
    std::vector<Holder> holders;
    std::uint32_t fanout = 0;
    SocketAddress filter;
  };

  void link(std::uint64_t socket);
  void remove(std::uint64_t socket);

  /// By serial number. Serial numbers rise in the order of creation.
  std::map<std::uint64_t, Socket> sockets_;
  std::map<std::uint32_t, std::vector<std::uint64_t>> arrays_;
  std::map<std::uint32_t, os::FilterProgram> programs_;
  std::uint32_t fanouts_ = 0;
  bool up_ = true;
};

/// Runs a program of a fanout group on a packet, as the kernel does. Knows only the instructions that
/// os::spreading() uses, and throws std::logic_error at any other.
std::uint32_t run_program(const os::FilterProgram& program, std::span<const unsigned char> packet);

}  // namespace cluster::sim
