// What peers do to the registered memory of this side, if this side's library serves it. Only this side knows
// whether the memory may be touched, and it copies under the lock of the regions (region_table.h). So a
// closed region is never touched again.
//
// Small writes arrive in the order of messages. Large writes are announced, and this side pulls them into
// their region. The answer means that the bytes are in place. A write gets no answer if its initiator sees
// the outcome by itself (shm/local_memory.h). Reads are answered from the region, part by part.
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
  /// Posts the rest of a response. Returns false if the carrier has no space.
  bool stream(ReadResponse& response);

 private:
  void store(Channel& channel, ConstBytes payload);
  void send_read_failed(Channel& channel, std::uint32_t receiver_id);
};

}  // namespace cluster::protocol
