// The receive rings of the endpoints of one user on one interface form a group. Without a group, the kernel
// would run the filter of every ring on every frame that arrives on the interface. Each filter takes about 90
// ns. In a group (PACKET_FANOUT), one program looks up the port of the frame, and only one filter runs. So a
// frame costs nearly the same with 1 ring and with 256. If a group is full, further rings form the next
// group. Each further group costs every frame about as much as one more filter.
//
// There is no daemon. All processes of the group share a table of the members' places (os/ring_table.h), a
// keeper of the sockets (os/ring_keeper.h), and a listener. The listener has an abstract name, which contains
// the index of the interface, the user ID and the number of the group. A process that joins connects to the
// listener. The progress thread of any process of the group answers with the descriptors of the table, the
// keeper and the listener. If nobody listens, the joining process founds the group. When the last process
// ends, however it ends, the kernel frees everything.
//
// Each process holds a lock on one byte of the table's file until the process closes the file or ends. From
// these locks, the other processes know which processes are dead. The kernel numbers the rings. The number of
// a ring does not change while the ring is in the group. So frames reach the right ring even when members
// join, leave or die. In addition each ring has its own filter. If the program ever chose a wrong ring, the
// filter of this ring would drop the frame.
//
// The steps of a member are in os/ring_steps.h. A member that enters installs a new program. The kernel takes
// milliseconds to replace a program, so members that enter at the same time share one installation.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <utility>

#include "base/address.h"
#include "base/log.h"
#include "os/descriptor.h"
#include "os/local_socket.h"
#include "os/ring_keeper.h"
#include "os/ring_table.h"
#include "os/shared_memory.h"

namespace cluster::os {

class RingGroup;

/// The packet socket of a ring, and the place of the ring in a group. The destructor gives up the place.
struct RingSeat {
  RingSeat(std::shared_ptr<RingGroup> its_group, RingKind its_kind)
      : group(std::move(its_group)), kind(its_kind) {}
  ~RingSeat();
  RingSeat(const RingSeat&) = delete;
  RingSeat& operator=(const RingSeat&) = delete;

  std::shared_ptr<RingGroup> group;  ///< null if the ring is in no group
  RingKind kind;
  std::uint64_t serial = 0;
  Descriptor socket;
  std::size_t blocks = 0;  ///< the size of the ring in blocks of 1 MiB
  /// An earlier member has used this socket and its ring, and has left. Slots may still contain frames to the
  /// earlier member.
  bool inherited = false;
};

class RingGroup {
 public:
  /// Returns a group of this process's user on the interface, in the network namespace of the calling thread.
  /// `number`: the number of the group, from 0. On failure, returns null and writes the cause to `reason`.
  static std::shared_ptr<RingGroup> of_interface(int index, unsigned number, std::string& reason);

  RingGroup(const RingGroup&) = delete;
  RingGroup& operator=(const RingGroup&) = delete;

  /// Takes a place for the frames to `address`. `members_max`: the limit on the number of owned places of
  /// this kind. `blocks`: the wanted size of a new ring. If the rings of the group would then take too much
  /// memory, or if the number of the group is not 0, the new ring has only one block. An inherited ring keeps
  /// its size. On failure, returns null and writes the cause to `reason`.
  static std::unique_ptr<RingSeat> take(const std::shared_ptr<RingGroup>& group, RingKind kind,
                                        const SocketAddress& address, const RingLayout& layout,
                                        std::size_t blocks, std::size_t members_max, std::string& reason);
  /// After this call, the frames to the address of the seat's place arrive in the seat's ring. Unless the
  /// seat is inherited, the seat's socket must have a ring and must be bound to the interface. On failure,
  /// returns false and writes the cause to `reason`.
  bool enter(RingSeat& seat, std::string& reason);
  /// Changes the address of the seat's place to `address`. After this call, the frames to `address` arrive in
  /// the seat's ring. On failure, returns false and writes the cause to `reason`.
  bool readdress(RingSeat& seat, const SocketAddress& address, std::string& reason);
  /// Returns the table, for reports. The table may outlive the group.
  std::shared_ptr<const RingTable> shared_table() const { return {memory_, &table()}; }

 private:
  friend struct RingSeat;
  friend class SeatKernel;  ///< in ring_group.cc

  RingGroup(LocalSocket door, RingKeeper keeper, Descriptor file, SharedMemory memory);
  static std::unique_ptr<RingGroup> open(int index, unsigned number, std::string& reason);
  static std::unique_ptr<RingGroup> found(LocalSocket door, std::string& reason);
  static std::unique_ptr<RingGroup> join(LocalSocket& member, bool& unanswered, std::string& reason);
  bool start(std::string& reason);
  void answer_joiners() const;

  RingTable& table() const { return *reinterpret_cast<RingTable*>(memory_->bytes().data()); }
  bool lives(std::uint32_t process) const;
  bool enter_fanout(RingSeat& seat, std::string& reason);
  bool install(const RingSeat& seat, RingList& list, std::string& reason);
  void install_now(const RingSeat& seat, RingList& list, std::string& reason);
  void leave(RingSeat& seat);

  LocalSocket door_;
  RingKeeper keeper_;
  Descriptor file_;  ///< the file of the table; the process locks single bytes of it
  std::shared_ptr<SharedMemory> memory_;
  std::uint32_t self_ = 0;      ///< the number of this process in the group, from 1
  std::size_t blocks_max_ = 0;  ///< limit for all rings of the group together (RingLimits)
  std::mutex table_mutex_;      ///< the locks of the file do not exclude other threads of this process
  std::array<std::mutex, kRingKinds> program_mutexes_;
  /// Declared last and so destroyed first, because the progress thread uses the other members.
  std::shared_ptr<void> client_;
};

/// Returns the number of sockets in the fanout group, in the network namespace of the calling thread, or
/// nullopt if the kernel does not report it.
std::optional<std::size_t> sockets_in_fanout(std::uint32_t id);

}  // namespace cluster::os
