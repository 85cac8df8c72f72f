// What peers do to the registered memory of this side, where this side's library serves it. Only it can tell whether the
// memory may be touched, and it copies under the lock of the regions (region_table.h), so a region that has been closed is never
// touched again.
//
// Small writes arrive in the order of messages; large ones are announced, and pulled into the region that they name. Each is
// answered, but those of which the initiator sees by itself what becomes of them (shm/local_memory.h): complete means that
// the bytes are in place. Reads are answered out of the region, a part at a time.
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
  /// Posts what is left of a response. False if the carrier has no free bytes.
  bool stream(ReadResponse& response);

 private:
  void store(Channel& channel, ConstBytes payload);
  void send_read_failed(Channel& channel, std::uint32_t receiver_id);
};

}  // namespace cluster::protocol
