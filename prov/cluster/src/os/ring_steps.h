// These are the steps by which a process takes a place in a ring group, enters the kernel's fanout group, and
// leaves. A process performs each step under the lock of the group. A process may die in the middle of a
// step. The other processes notice the death from the locks, and their next step repairs the table.
//
// The steps make no system calls. They reach the kernel through an interface, so the simulator runs the same
// steps on a model of the kernel (sim/ring_kernel.h).
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "base/address.h"
#include "os/port_filter.h"
#include "os/ring_table.h"

namespace cluster::os {

/// The kernel's part of the steps. The serial of a place identifies the place's socket. All functions that
/// return an int return 0 or an errno.
class RingKernel {
 public:
  virtual ~RingKernel() = default;

  /// Returns true if the process with this number is alive.
  virtual bool lives(std::uint32_t process) = 0;
  /// Creates the socket of this process's place.
  virtual int open(std::uint64_t serial) = 0;
  /// Takes over the socket of a free place. Returns false if the socket is lost.
  virtual bool inherit(std::uint64_t serial) = 0;
  /// Puts the socket of this process's place into a fanout group. If `fresh` is true, creates a new group and
  /// writes its number to `id`. Otherwise uses the group `id`.
  virtual int enter_fanout(bool fresh, std::uint32_t& id) = 0;
  /// Returns the number of sockets in the group, or nullopt if the kernel does not report it.
  virtual std::optional<std::size_t> sockets_in_fanout(std::uint32_t id) = 0;
  /// Makes the socket of this process's place outlive the process.
  virtual int keep(std::uint64_t serial) = 0;
  /// Reverses keep() for these places. A socket leaves the fanout group when no process has it open any more.
  virtual void withdraw(std::span<const std::uint64_t> serials) = 0;
};

/// The reason if a group has no place. Another group of the user may have one.
inline constexpr const char* kGroupIsFull = "all receive rings of this user are in use";

struct RingLimits {
  std::size_t members_max = kRingsMax;
  std::size_t blocks_max = 0;  ///< limit for all rings together; beyond it, a new ring has one block
};

struct RingProgram {
  FilterProgram program;
  std::uint64_t version = 0;  ///< the value of `changes` when the program was built
};

class RingSteps {
 public:
  /// `self`: the number of this process in the group.
  RingSteps(RingTable& table, std::uint32_t self, RingKernel& kernel)
      : table_(table), self_(self), kernel_(kernel) {}

  struct Taken {
    std::uint64_t serial = 0;
    std::size_t blocks = 0;
    bool inherited = false;  ///< the socket is in the fanout group already
  };

  /// Frees or erases the places of dead processes.
  void free_dead();
  /// Takes a place. On failure, returns nullopt and writes the cause to `reason`.
  std::optional<Taken> take(RingKind kind, const SocketAddress& address, const RingLayout& layout,
                            std::size_t blocks, const RingLimits& limits, std::string& reason);
  /// Makes the socket of this place enter the fanout group. Returns false without a reason if the socket
  /// cannot enter yet. The socket must wait until the owners of earlier places have created their rings, and
  /// until the kernel has removed the sockets of erased places.
  bool enter(RingKind kind, std::uint64_t serial, std::string& reason);
  /// Returns the program to install next.
  RingProgram program(RingKind kind) const;
  /// Changes the address of this place. The next program leads the frames to `address` into the ring of this
  /// place.
  void readdress(RingKind kind, std::uint64_t serial, const SocketAddress& address);
  void leave(RingKind kind, std::uint64_t serial);

 private:
  void remove(RingList& list, const std::vector<std::uint64_t>& serials);

  RingTable& table_;
  std::uint32_t self_;
  RingKernel& kernel_;
};

}  // namespace cluster::os
