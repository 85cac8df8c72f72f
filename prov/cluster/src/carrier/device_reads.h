// The interface by which RDMA devices carry the bytes of long messages. The receiver's device reads the bytes
// out of the sender's memory, and neither processor copies them. A transport that drives such a device
// (verbs/) implements this interface for peers that another transport reaches. The carrier of that other
// transport takes the segments of the protocol:
//
//   receiver   expose       asks the sender to let the receiver's device read the message
//   sender     exposed      says where the message lies, or that the device cannot read it
//   receiver   (the device reads)
//   receiver   done         as after any long message
//
// No message depends on the device. If the sender cannot expose the message, or if a read fails, the receiver
// pulls the missing bytes as segments. The receiver alone decides which bytes are missing, so no byte is
// lost, and no message arrives twice.
#pragma once

#include <cstdint>
#include <optional>

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
  // --- this side reads. `id`: a receive of this side ---
  /// Returns true if read() may be called now. Otherwise begins to connect the devices of both sides, if that
  /// is possible now. Then ready() returns true for a later message.
  virtual bool ready() = 0;
  /// Begins to read. The transport reports the end once (Messenger::device_read), and never from inside this
  /// call. Returns false if that is not possible.
  virtual bool read(std::uint32_t id, const ExposedMemory& from, Bytes into) = 0;
  /// Ends this read without a report. When the function returns, the device writes no more bytes of this
  /// read.
  virtual void abandon(std::uint32_t id) = 0;

  // --- the peer reads. `id`: a message of this side ---
  /// Lets the peer's device read these bytes, until conceal(). Returns false if that is not possible.
  virtual bool expose(std::uint32_t id, ConstBytes bytes, ExposedMemory& exposed) = 0;
  /// When this function returns, the peer's device reads nothing more of the message. Does nothing if the
  /// message was not exposed.
  virtual void conceal(std::uint32_t id) = 0;

  /// Handles a segment of the kind queue_pair.
  virtual void on_queue_pair(const wire::Segment& segment) = 0;

 protected:
  ~DeviceReads() = default;
};

/// Returns `length` bytes of the slices from `offset` on if they are contiguous, otherwise nothing.
template <typename Slice>
Slice contiguous(std::span<const Slice> slices, std::size_t offset, std::size_t length) {
  for (const Slice& slice : slices) {
    if (offset < slice.size())
      return length <= slice.size() - offset ? slice.subspan(offset, length) : Slice{};
    offset -= slice.size();
  }
  return {};
}

}  // namespace cluster::carrier
