// Both directions between this node and the other, made of the choices: the addresses of both sides, the port
// between them, a sender and a receiver. Both sides build theirs at the same moment, and meet on the line
// meanwhile.
#pragma once

#include "control_connection.h"
#include "wire_choice.h"
#include "wire_headers.h"
#include "wire_port.h"
#include "wire_receiver.h"
#include "wire_sender.h"

namespace perf {

class Wire {
 public:
  /// For frames of at most `frame_max` bytes, at most `window` of them under way at a time.
  Wire(const WireChoice& choice, ControlConnection& line, std::size_t frame_max, unsigned window)
      : own(address_of(choice.interface)),
        port_(choice, own),
        sender(choice, frame_max),
        receiver(choice, own, window) {
    const std::string mine(reinterpret_cast<const char*>(&own), sizeof own);
    const std::string theirs = line.exchange(mine);
    theirs.copy(reinterpret_cast<char*>(&other), sizeof other);
    port_.meet(choice, other);
  }

  WireAddress own, other;

 private:
  WirePort port_;

 public:
  WireSender sender;
  WireReceiver receiver;
};

}  // namespace perf
