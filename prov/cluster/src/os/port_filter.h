// Builds classic BPF programs. The kernel runs them on a packet before it copies any byte.
//   frames_for          accepts the frames for the ring of an endpoint (packet link).
//   frames_beside_ring  accepts the frames for the endpoint's UDP socket, beside the ring (packet link).
//   steering            chooses the socket of a UDP port that receives a datagram.
//   spreading           chooses the ring of a group that receives a frame (os/ring_group.h).
//   steering_by_host    chooses the listener of a TCP port that receives a connection.
//
// Classic BPF can only jump forward. Therefore the instruction that refuses a packet, to which all conditions
// jump, comes last.
#pragma once

#include <linux/filter.h>

#include <cstdint>
#include <span>
#include <vector>

#include "base/address.h"
#include "link/link.h"

namespace cluster::os {

using FilterProgram = std::vector<sock_filter>;

/// Returns a program for a packet socket. The program accepts an Ethernet frame if the frame has this
/// EtherType, is addressed to this host, and carries an unfragmented UDP datagram to exactly `ours`. With the
/// EtherType of IP, the frame may also be addressed to all hosts. The program refuses packets with IP options
/// or extension headers. If `thinning` is on, it also refuses frames that `thinning` puts aside. With the
/// EtherType of IP, it refuses the frames with which a session or a path begins. These are frames with an
/// opening, challenges, association requests, and the answers to challenges and association requests. These
/// frames have to pass the host's firewall, which does not see the frames of a ring.
FilterProgram frames_for(const SocketAddress& ours, std::uint16_t ether_type,
                         const link::Thinning& thinning = {});

/// Returns a program for a UDP socket. The program accepts the packets with which a session or a path begins,
/// because the ring refuses them. It also accepts packets that arrived on other interfaces than `index`.
FilterProgram frames_beside_ring(int index);

/// The sockets of a reuseport group, numbered in the order in which they were bound.
struct PortSockets {
  static constexpr std::uint32_t kMain = 0;
  std::uint32_t keep_alives = kMain;
  std::uint32_t aside = kMain;
};

/// Returns a program for a reuseport group. If there is a socket for keep-alives, keep-alives go to that
/// socket. While `thinning` is on, one keep-alive in four goes to the socket `aside` instead
/// (Thinning::kKeepAliveShift). While `thinning` is on, any other frame goes to `aside` if `thinning` does
/// not let its session pass, or if the frame is too short to name a session. All remaining frames go to the
/// main socket. A keep-alive that the kernel has joined with other datagrams also goes there.
FilterProgram steering(const PortSockets& sockets, const link::Thinning& thinning = {});

/// Returns a program for a reuseport group of two listeners. Connections from `hosts` go to the first
/// listener, all others to the second. The program considers only hosts of the given family. For IPv6 it
/// compares 32-bit hashes of the addresses. The hashes depend on `secret`.
FilterProgram steering_by_host(std::span<const SocketAddress> hosts, SocketAddress::Family family,
                               std::uint64_t secret);

/// A ring of a group: the address whose frames it receives, and its number in the kernel's fanout group.
struct RingTarget {
  SocketAddress address;
  std::uint32_t index = 0;
};

/// Returns a program for a fanout group of rings. The program finds the rings with the destination port of a
/// frame by binary search. It returns the number of the ring, or 0 if no ring has this port. The program
/// compares the destination address only if several rings have this port. It checks nothing else, because
/// each ring has the filter frames_for().
FilterProgram spreading(std::span<const RingTarget> rings);

/// Returns a program that refuses all frames.
FilterProgram no_frames();

/// Attaches the program to the socket. `option` is SO_ATTACH_FILTER or SO_ATTACH_REUSEPORT_CBPF. Returns 0 or
/// an errno.
int attach_filter(int socket, int option, FilterProgram& program);

/// Installs the program in the fanout group of the socket. Returns 0 or an errno. The kernel takes
/// milliseconds to replace a program.
int install_spreading(int socket, FilterProgram& program);

}  // namespace cluster::os
