// Frames into this process: from a ring that the kernel fills (TPACKET_V2), without a system call, or
// by recv() from the socket's queue. Both wait without sleeping.
#pragma once

#include <sys/socket.h>
#include <sys/uio.h>

#include <cstddef>
#include <span>
#include <vector>

#include "wire_choice.h"
#include "wire_headers.h"

namespace perf {

class WireReceiver {
 public:
  /// Frames of the type, or of UDP, to the port of `own`. At most `window` are under way at a time.
  WireReceiver(const WireChoice& choice, const WireAddress& own, unsigned window);
  WireReceiver(const WireReceiver&) = delete;
  WireReceiver& operator=(const WireReceiver&) = delete;
  ~WireReceiver();

  /// The next frame; it stays where it is until the next call.
  std::span<const char> receive();
  /// The next frame, written to these places (not from a ring).
  void receive_to(std::span<const iovec> places);

 private:
  void open_ring(const WireChoice& choice, unsigned window);
  std::span<const char> next_in_ring();

  int socket_ = -1;
  char* ring_ = nullptr;
  std::size_t ring_bytes_ = 0;
  std::vector<char*> slots_;
  std::size_t next_ = 0;
  char* held_ = nullptr;  ///< the slot handed out last
  std::vector<char> memory_;
};

}  // namespace perf
