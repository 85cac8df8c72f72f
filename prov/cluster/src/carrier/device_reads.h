// The interface by which RDMA devices carry the bytes of long messages, remote writes and remote reads. The
// device of the side that gets the bytes reads them out of the other side's memory, and neither processor
// copies them. A transport that drives such a device (verbs/) implements this interface for each peer that
// another transport reaches. The segments of the protocol still take the peer's carrier:
//
//   receiver   expose         asks the sender to let the receiver's device read the message or write
//   sender     exposed        says where the bytes lie, or that the device cannot read them
//   receiver   (the device reads)
//   receiver   done           as after any long message or write
//
//   initiator  expose_region  asks the target of a remote read to let the initiator's device read the range
//   target     exposed        as above
//   initiator  (the device reads)
//   initiator  device_over    ends the permission
//
// No operation depends on the device. If the peer cannot expose the bytes, or if a read fails, the side that
// gets the bytes pulls the missing bytes as segments. This side alone decides which bytes are missing, so no
// byte is lost, and no message arrives twice. A device writes only to memory of its own side. So the target
// of a write checks the region itself, and ends the device's access when the region is closed.
//
// If the bytes do not lie in one piece on both sides, each piece is exposed and read in turn.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>

#include "base/bytes.h"
#include "wire/segment.h"

namespace cluster::carrier {

/// The memory that a peer's device may read.
struct ExposedMemory {
  std::uint64_t address = 0;
  std::uint64_t key = 0;
  std::optional<std::uint32_t> checksum;  ///< CRC32C of the bytes, if the peer's device needs it
};

class DeviceReads {
 public:
  // --- this side reads. `id`: a receive of this side, a remote read, or a remote write of the peer ---
  /// Returns true if read() may be called now. Otherwise begins to connect the devices of both sides, if that
  /// is possible now. Then ready() returns true for a later message.
  virtual bool ready() = 0;
  /// Begins to read. The transport reports the end once (Messenger::device_read), and never from inside this
  /// call. Returns false if that is not possible.
  virtual bool read(std::uint32_t id, const ExposedMemory& from, Bytes into) = 0;
  /// Ends this read without a report. When the function returns, the device writes no more bytes of this
  /// read.
  virtual void abandon(std::uint32_t id) = 0;

  // --- the peer reads. `id`: a message or write of this side, or a grant (ReadGrant) ---
  /// Lets the peer's device read these bytes, until conceal(). Returns false if that is not possible.
  virtual bool expose(std::uint32_t id, ConstBytes bytes, ExposedMemory& exposed) = 0;
  /// When this function returns, the peer's device reads nothing more of these bytes. Does nothing if they
  /// were not exposed.
  virtual void conceal(std::uint32_t id) = 0;

  /// Handles a segment of the kind queue_pair.
  virtual void on_queue_pair(const wire::Segment& segment) = 0;

 protected:
  ~DeviceReads() = default;
};

/// Shorter pieces of memory are not read by a device: to register them takes as long as to copy them.
inline constexpr std::size_t kDeviceMin = 32 * 1024;

/// Returns the piece of memory that a device reads or fills next: bytes from `offset` on in one slice, at
/// most `length`. Returns nothing if they are too few for a device.
template <typename Slice>
Slice device_piece(std::span<const Slice> slices, std::size_t offset, std::size_t length) {
  const Slice piece = piece_at(slices, offset, length);
  return piece.size() < kDeviceMin ? Slice{} : piece;
}

}  // namespace cluster::carrier
