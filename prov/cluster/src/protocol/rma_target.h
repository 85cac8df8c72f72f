// Serves peers' accesses to registered memory, if an access needs this side's library. Under the lock of the
// region table (region_table.h), this side checks whether a region allows the access, and copies the bytes.
// Therefore no peer accesses a region after it is closed.
//
// Small writes arrive in order with messages. Large writes are announced, and this side pulls them into their
// region. The answer `done` to a write means that the bytes are in the region. If the initiator itself can
// see the outcome of a write (shm/local_memory.h), this side does not answer the write. This side answers
// reads with bytes of the region, part by part. If both sides have an RDMA device, the device of the reader
// may read a long range itself. This side permits this for each remote read, until the reader says that its
// device is done.
#pragma once

#include "protocol/messenger_parts.h"

namespace cluster::protocol {

class RmaTarget : MessengerParts {
 public:
  explicit RmaTarget(const MessengerParts& parts) : MessengerParts(parts) {}

  void on_write(Channel& channel, const wire::Segment& segment, ConstBytes payload);
  void on_write_next(Channel& channel, ConstBytes payload);
  void on_announce(Channel& channel, const wire::Segment& segment);
  void on_read(Channel& channel, const wire::Segment& segment);
  /// Lets the peer's device read a range of a region if possible, and answers whether the device may read it.
  /// The answer says no more than that. If the access is not allowed, the peer learns this when it requests
  /// the bytes as segments.
  void on_expose(Channel& channel, const wire::Segment& segment);
  void on_device_over(Channel& channel, const wire::Segment& segment);
  /// Posts the rest of a response to a read. Returns false if the carrier has no space.
  bool stream(ReadResponse& response);

 private:
  void store(Channel& channel, ConstBytes payload);
  void send_read_failed(Channel& channel, std::uint32_t receiver_id);
};

}  // namespace cluster::protocol
