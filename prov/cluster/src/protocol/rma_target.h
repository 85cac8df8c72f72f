// Serves peers' accesses to registered memory that need this side's library. This side checks whether the
// peer may access the memory, and copies the bytes, under the lock of the region table (region_table.h).
// Therefore a closed region is never accessed again.
//
// Small writes arrive in order with messages. Large writes are announced, and this side pulls them into their
// region. The answer `done` to a write means that the bytes are in the region. If the initiator sees the
// outcome by itself (shm/local_memory.h), the write gets no answer. This side answers reads from the region,
// part by part. If both sides have an RDMA device, the device of the reader may read a long range itself. This
// side grants it that for each remote read, until the reader says that its device is done.
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
  /// Lets the peer's device read a range of a region, and says whether it may. It says no more than that. If
  /// the access is not allowed, the peer learns so when it asks for the bytes themselves.
  void on_expose(Channel& channel, const wire::Segment& segment);
  void on_device_over(Channel& channel, const wire::Segment& segment);
  /// Posts the rest of a response. Returns false if the carrier has no space.
  bool stream(ReadResponse& response);

 private:
  void store(Channel& channel, ConstBytes payload);
  void send_read_failed(Channel& channel, std::uint32_t receiver_id);
};

}  // namespace cluster::protocol
