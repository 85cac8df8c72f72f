// Receives frames without a system call, through a ring of slots shared with the kernel (TPACKET_V2). Version
// 3 is of no use here: it delivers blocks of frames on a timer, which delays the frames by milliseconds. The
// kernel copies each frame that passes the filter into the next slot and sets the slot's status word. The
// receiver reads the frame and resets the word.
//
// A slot for IP frames holds the largest super-frame (64 KiB), because the kernel delivers a super-frame
// whole. A slot for the provider's EtherType holds one frame. If no slot is free, the kernel drops the frame
// and counts it.
//
// A ring usually belongs to a group (os/ring_group.h). Without groups, the kernel would run the filter of
// every ring on each frame. When a member leaves, its ring stays in the group, and a later member can inherit
// the ring. The new owner empties the ring, but does not know which slot the kernel fills next. The owner
// finds this slot when the first frame arrives.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "base/address.h"
#include "base/environment.h"
#include "link/link.h"
#include "os/descriptor.h"
#include "os/packet_headers.h"
#include "os/ring_group.h"
#include "os/system_clock.h"

namespace cluster::os {

/// The EtherType of the frames in a ring, and the size and number of its slots.
struct RingShape {
  /// Returns the shape of a ring for super-frames of IP.
  static RingShape of_super_frames(SocketAddress::Family family, std::size_t slots);
  /// Returns the shape of a ring for single frames of at most link::kEthertypeFrameMax bytes under the
  /// provider's EtherType. `slots`: the number of slots in the ring for super-frames.
  static RingShape of_small_frames(std::size_t slots);

  std::uint16_t ether_type;
  std::size_t slot_bytes;
  std::size_t blocks;   ///< wanted blocks of 1 MiB each; a ring of a group may have more or fewer
  bool joined = false;  ///< the kernel may join frames of this type
};

/// Why a ring cannot be opened: the errno of a failed system call, or a text about the group.
struct RingFailure {
  int error = 0;
  std::string group;
};

class PacketRing {
 public:
  /// Opens a ring for frames to `ours` that arrive on the interface `index`. No other frames enter the ring.
  /// The ring becomes a member of `group`, which has at most `members_max` members with frames of this type.
  /// If `group` is null, the ring belongs to no group. On failure, returns null and fills `failure`.
  static std::unique_ptr<PacketRing> open(int index, const SocketAddress& ours, const RingShape& shape,
                                          const std::shared_ptr<RingGroup>& group, std::size_t members_max,
                                          const Environment& environment, RingFailure& failure);
  ~PacketRing();
  PacketRing(const PacketRing&) = delete;
  PacketRing& operator=(const PacketRing&) = delete;

  /// Does what Link::receive_burst() does. First gives the slots of the frames from the previous call back to
  /// the kernel. `own`: the addresses of this node. Refuses frames from these addresses. Such frames are
  /// forged, because what this node sends to itself does not travel over the wire.
  std::size_t receive(std::span<link::InFrame> frames, const std::vector<SocketAddress>& own);
  /// Returns true if receive() has nothing to do.
  bool idle() const { return held_ == 0 && !waiting() && next_known_; }
  /// Called when this node's addresses have changed.
  void forget_source() { last_.forget(); }

  /// Makes the ring receive frames from the interface `index`, and no longer from the previous interface.
  /// Returns false if the ring cannot move, for example because it belongs to the group of its interface.
  bool move_to(int index);

  /// Makes the ring receive the frames to another address. Returns false on failure. The caller must call
  /// thin() afterwards, because the filter of the socket contains the address.
  bool readdress(const SocketAddress& ours);
  /// Returns true if a frame waits in the next slot.
  bool waiting() const { return (status_of(slots_[next_]).load(std::memory_order_relaxed) & kFilled) != 0; }

  /// Returns a descriptor that is readable while the kernel has filled a slot that receive() has not given
  /// back yet.
  int descriptor() const { return seat_->socket.number(); }
  /// Clears the error that the socket reports after the interface was down. The error would keep the
  /// descriptor readable.
  void clear_errors();
  /// Does what Link::thin() does.
  void thin(const link::Thinning& thinning);

 private:
  PacketRing(std::unique_ptr<RingSeat> seat, int index, const SocketAddress& ours, const RingShape& shape,
             std::span<std::byte> memory, const Environment& environment);
  static constexpr std::uint32_t kFilled = 1;  ///< TP_STATUS_USER, in the first word of a slot

  static std::atomic_ref<std::uint32_t> status_of(std::byte* slot) {
    return std::atomic_ref<std::uint32_t>(*reinterpret_cast<std::uint32_t*>(slot));
  }
  void release_slots();
  void empty();
  bool find_first();
  bool read_slot(std::byte* slot, std::uint32_t status, const std::vector<SocketAddress>& own,
                 link::InFrame& frame);
  bool read_source(Bytes bytes, const std::vector<SocketAddress>& own, link::InFrame& frame);
  std::size_t segment_of(const std::byte* ethernet_header) const;
  void count_losses();

  std::unique_ptr<RingSeat> seat_;
  int index_;
  SocketAddress ours_;
  std::uint16_t ether_type_;
  std::size_t slot_bytes_;
  bool has_offload_headers_;  ///< an OffloadHeader precedes each frame
  std::span<std::byte> memory_;
  Counters& counters_;
  ArrivalClock arrivals_;
  std::vector<std::byte*> slots_;
  std::size_t next_ = 0;  ///< the slot to read next
  std::size_t held_ = 0;  ///< slots before `next_` that are not released yet
  LastHeaders last_;
  bool next_known_;  ///< false if the ring is inherited and no frame has arrived yet
};

/// Returns true if the kernel can report the ends of joined frames in a ring (Linux 6.2). Earlier kernels
/// silently drop joined frames.
bool rings_know_segments();

}  // namespace cluster::os
