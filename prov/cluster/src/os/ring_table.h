// The members of a ring group (os/ring_group.h), in memory that all processes of the group share. A group has
// one list of members for each EtherType, because the kernel does not let sockets of different EtherTypes
// into one fanout group.
//
// The kernel numbers the sockets of a fanout group in the order in which they enter. When a socket leaves,
// the last socket takes the number that has become free. After the interface was down, the kernel numbers the
// sockets in the order of their creation. Three rules keep all these orders equal. Therefore the number of a
// socket is always its place in the list:
//
// - A process reserves a place when it creates the socket. Sockets enter in the order of the list.
// - A socket stays in the fanout group after its owner has left or died (os/ring_keeper.h). The place is free
//   then, and a later member takes the socket over.
// - Among the sockets in the fanout group, only the last one is ever removed.
//
// The caller of any function must hold the lock of the group. There are two exceptions: reports, and
// RingGroup::enter(), which first looks without the lock whether it is worth taking.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <vector>

#include "base/address.h"
#include "os/port_filter.h"

namespace cluster::os {

inline constexpr std::size_t kRingsMax = 256;  ///< the kernel's limit for one fanout group

inline constexpr std::size_t kRingBlockBytes = 1024 * 1024;  ///< the kernel allocates each block as a whole

/// The layout of a ring. A process can take over a ring of another size than it would have created, but not
/// one of another layout.
struct RingLayout {
  std::uint32_t slot_bytes = 0;
  std::uint32_t offload_headers = 0;  ///< an OffloadHeader precedes each frame
  bool operator==(const RingLayout&) const = default;
};

struct RingPlace {
  enum class State : std::uint32_t {
    reserved,  ///< the owner creates the ring
    entering,  ///< the socket may be in the fanout group
    entered,   ///< the socket is in the fanout group, and the keeper has a copy of its descriptor
    leaving,   ///< the place is being removed: the keeper drops its copy
  };

  std::uint64_t serial = 0;  ///< identifies the socket for the keeper
  SocketAddress address;     ///< the ring receives the frames to this address
  State state = State::reserved;
  std::uint32_t owner = 0;  ///< the owner's number among the processes, from 1; 0 if the place is free
  RingLayout layout;
  std::uint32_t blocks = 0;  ///< size of the ring in blocks of 1 MiB
};

/// The members whose rings receive frames of one EtherType. A list whose bytes are all zero is empty.
class RingList {
 public:
  /// Returns true if a process with this number is alive.
  using Alive = std::function<bool(std::uint32_t owner)>;

  std::size_t size() const { return count_; }
  std::size_t entered() const;
  std::size_t owned() const;
  std::size_t blocks() const;
  const RingPlace& at(std::size_t index) const { return places_[index]; }
  RingPlace* find(std::uint64_t serial);
  /// Returns a free place whose ring has this layout, or null.
  RingPlace* find_free(const RingLayout& layout);
  /// Adds a place at the end. There must be fewer than kRingsMax places.
  RingPlace& reserve(std::uint64_t serial, std::uint32_t owner, const SocketAddress& address,
                     const RingLayout& layout, std::uint32_t blocks);
  /// Returns true if this reserved place is the next to enter.
  bool is_next(std::uint64_t serial) const;
  void erase(std::uint64_t serial);
  /// Frees the places of dead owners. Returns the serials of free places whose state is not `entered`. The
  /// caller must erase these places once the keeper has no copy of their sockets. If the caller dies before
  /// that, the next call returns the serials again.
  std::vector<std::uint64_t> free_dead(const Alive& alive);
  /// Sets the free places at the end of the list to `leaving`. Returns their serials, as free_dead() does.
  std::vector<std::uint64_t> trim();
  /// Returns the address of each owned ring in the fanout group, with the ring's number in this group.
  std::vector<RingTarget> targets() const;

  std::uint32_t fanout_id = 0;  ///< the kernel's number of the fanout group, while it has sockets
  std::uint64_t changes = 0;    ///< number of changes of targets()
  std::uint64_t installed = 0;  ///< the value of `changes` when the program in the kernel was built

 private:
  std::size_t index_of(std::uint64_t serial) const;

  std::uint64_t count_ = 0;
  std::array<RingPlace, kRingsMax> places_;
};

enum class RingKind : std::uint8_t { v4, v6, ethertype };
inline constexpr std::size_t kRingKinds = 3;

struct RingUsage {
  std::size_t endpoints = 0;  ///< endpoints that have a ring
  std::size_t rings = 0;      ///< rings of all kinds, including those that wait for a new member
  std::size_t bytes = 0;      ///< the memory of all rings
};

struct RingTable {
  std::uint64_t serials = 0;  ///< the last serial that was given to a place
  std::array<RingList, kRingKinds> lists;

  RingList& list(RingKind kind) { return lists[static_cast<std::size_t>(kind)]; }
  std::size_t blocks() const;
  /// For reports. A caller that does not hold the group's lock may see a half-finished change.
  RingUsage usage() const;
};

}  // namespace cluster::os
