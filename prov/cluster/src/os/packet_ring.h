// Receives frames without a system call, through a ring of slots shared with the kernel (TPACKET_V2; the
// later V3 delivers in blocks on a timer, which costs milliseconds). The kernel copies each frame that passes
// the filter into the next slot and sets the slot's status word. The receiver reads the frame and resets the
// word.
//
// Slots for IP hold the largest super-frame (64 KiB), since segmentation-offloaded frames arrive whole. Slots
// for the provider's EtherType hold one frame. A frame that finds no free slot is lost; the kernel counts it.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "base/address.h"
#include "base/environment.h"
#include "link/link.h"
#include "os/descriptor.h"
#include "os/system_clock.h"

namespace cluster::os {

/// Which frames a ring takes, and how many.
struct RingShape {
  /// For super-frames under IP.
  static RingShape of_super_frames(SocketAddress::Family family, std::size_t slots);
  /// For single frames of at most link::kEthertypeFrameMax bytes, under the provider's EtherType. `slots`
  /// counts the slots of the other shape.
  static RingShape of_small_frames(std::size_t slots);

  std::uint16_t ether_type;
  std::size_t slot_bytes;
  std::size_t blocks;   ///< of 1 MiB
  bool joined = false;  ///< the kernel may join frames of this type
};

class PacketRing {
 public:
  /// Opens a ring for frames to `ours` that arrive on the interface `index`; nothing else ever enters the
  /// ring. Returns null on failure, with an errno in `error`.
  static std::unique_ptr<PacketRing> open(int index, const SocketAddress& ours, const RingShape& shape,
                                          const Environment& environment, int& error);
  ~PacketRing();
  PacketRing(const PacketRing&) = delete;
  PacketRing& operator=(const PacketRing&) = delete;

  /// Does what Link::receive_burst() does. First returns the slots of the last call to the kernel.
  std::size_t receive(std::span<link::InFrame> frames);

  /// From now on the ring takes frames that arrive on that interface.
  void move_to(int index);

  /// Returns true if the next frame is there.
  bool waiting() const;

  /// Readable while there is a frame in a slot that has not been released.
  int descriptor() const { return socket_.number(); }
  /// Clears the socket's error (the interface was down). The error would keep the descriptor readable.
  void clear_errors();
  /// Does what Link::thin() does.
  void thin(const link::Thinning& thinning);

 private:
  PacketRing(Descriptor socket, int index, const SocketAddress& ours, const RingShape& shape,
             bool offload_headers, std::span<std::byte> memory, const Environment& environment);
  static std::atomic_ref<std::uint32_t> status_of(std::byte* slot);
  void release_slots();
  bool read_slot(std::byte* slot, std::uint32_t status, link::InFrame& frame);
  std::size_t segment_of(const std::byte* ethernet_header) const;
  void count_losses();

  Descriptor socket_;
  int index_;
  SocketAddress ours_;
  std::uint16_t ether_type_;
  std::size_t slot_bytes_;
  bool has_offload_headers_;  ///< an OffloadHeader lies in front of each frame
  std::span<std::byte> memory_;
  Counters& counters_;
  ArrivalClock arrivals_;
  std::vector<std::byte*> slots_;
  std::size_t next_ = 0;  ///< the slot the kernel fills next
  std::size_t held_ = 0;  ///< slots before `next_` that are not released yet
};

// Limits the receive rings on an interface. The kernel runs the filter of each packet socket on every frame
// that comes in there. So each ring makes every frame some 90 ns more expensive, whatever its destination.
// (The kernel finds an ordinary socket by a hash of its port.) So an interface has a few rings, and further
// endpoints use the udp link.
//
// An endpoint claims a ring by holding one of a few abstract UNIX socket names. Each name has at most one
// holder in the network namespace, even if many processes start at once. The kernel releases the names of a
// process that dies. A claim grants no access. A user who takes all names forces the other endpoints of this
// node to the slower udp link.

/// Takes one of the first `rings` names for the interface `index` and frames of the family. The open
/// descriptor holds the name. Returns nothing if all names are taken. Returns an empty descriptor if the
/// kernel gives no names; then there is no limit.
std::optional<Descriptor> claim_ring(int index, SocketAddress::Family family, std::size_t rings);

/// Returns true if the kernel can say in a ring where joined frames end (Linux 6.2). Earlier kernels silently
/// drop such frames.
bool rings_know_segments();

}  // namespace cluster::os
